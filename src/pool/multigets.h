// MultiGets: makes the MultiGets of one worker and keeps their scratch. What kinds of pools do
// differently, choosing servers and sending, is in those who inherit it: PoolGets, McpGets.
//
//   begin() -> add_place() for each key -> make() -> the parts are sent -> start_passing() -> end()
//
// Threads: one worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "call/call.h"
#include "net/loop.h"
#include "pool/multiget.h"
#include "protocol/memcache/command.h"

namespace kvferry::pool {

/// Places of keys that are kept from one get to the next; the room for more is given back.
inline constexpr std::size_t kPlacesKeptMax = 4096;
/// Parts of one get.
inline constexpr std::size_t kGetPartsMax = 65535;

/// memcached closes a connection on a longer line that it has not got whole when its next byte is
/// due, unless it begins with "get " or "gets ". Line end included. (1024 before version 1.6, now
/// 2048.)
inline constexpr std::size_t kTouchLineBytesMax = 1024;

/// Whether a retrieval of several keys may be longer than kTouchLineBytesMax.
inline bool may_line_be_long(memcache::Command command) {
  return command == memcache::Command::Get || command == memcache::Command::Gets;
}

class MultiGets {
 public:
  MultiGets(net::Loop& loop, call::CallPool& calls, base::MemoryBudget& budget);
  virtual ~MultiGets() = default;
  MultiGets(const MultiGets&) = delete;
  MultiGets& operator=(const MultiGets&) = delete;

  /// How many places of keys there is room for.
  std::size_t places_kept() const { return places_.capacity(); }

 protected:
  struct Place {
    std::string_view key;
    std::uint32_t part = 0;
  };

  // Making one.

  void begin(std::size_t key_count);
  void end();
  std::vector<Place>& places() { return places_; }
  /// Makes one for the keys in places(), whose parts are numbered, as the source of `parent`.
  MultiGet& make(call::Call& parent, std::size_t text_bytes, std::size_t part_count,
                 const MergeRules& rules);
  static std::uint16_t part_count(const MultiGet& multiget) { return multiget.part_count_; }
  static call::Call& call_of(const MultiGet& multiget, std::uint16_t part) {
    return *multiget.parts_[part].call;
  }
  static std::uint32_t key_count_of(const MultiGet& multiget, std::uint16_t part) {
    return multiget.parts_[part].key_count;
  }
  /// Before the part is sent.
  template <typename Visit>
  static void for_each_key(const MultiGet& multiget, std::uint16_t part, Visit visit) {
    for (std::uint32_t i = multiget.parts_[part].next_key; i != MultiGet::kNone;
         i = multiget.keys_[i].next_of_part) {
      visit(multiget.text_of(multiget.keys_[i]));
    }
  }
  /// All parts have been sent, and may have been answered; the object may be gone after it.
  static void start_passing(MultiGet& multiget);

 private:
  friend class MultiGet;

  /// A get of `key_count` keys is about to be answered to its end.
  virtual void on_over(std::uint32_t /*key_count*/) {}
  /// So many bytes more of replies are kept; and so many are not any more.
  virtual void on_kept(std::size_t /*bytes*/) {}
  virtual void on_dropped(std::size_t /*bytes*/) {}
  void fill(MultiGet& multiget, call::Call& parent);
  void release(MultiGet& multiget);

  net::Loop& loop_;
  call::CallPool& calls_;
  base::MemoryBudget& budget_;
  std::vector<Place> places_;       // Scratch, kept to spare allocations.
  std::size_t charged_places_ = 0;  // Those of a line of very many keys.
};

}  // namespace kvferry::pool
