// MultiGet: one get of several keys, asked as one request per backend and merged in request order.
//
//   keys    a   b   c   d          parts   0: "get a c"   1: "get b d"
//   parts   0   1   0   1          items   as they come, kept per part; a key without an item is a
//   miss
//
// Nothing is passed on before every part is complete, so that a failed part can still turn the
// whole into one error line (on_partial: error). When a part grows above kMergeBufferBytes passing
// on starts early: items leave as their turn comes, and a part that is ahead is paused. A failure
// after that ends the reply with the error line in place of END.
//
// Lifetime:  from MultiGets::start() to the last part of the parent's reply. It owns the calls of
// its parts. Threads:   one worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/byte_chain.h"
#include "base/slab_pool.h"
#include "call/call.h"
#include "net/loop.h"
#include "pool/options.h"
#include "pool/placement.h"
#include "protocol/memcache/request.h"
#include "protocol/memcache/value_scanner.h"

namespace kvferry::pool {

class Backend;
class MultiGets;

/// Bytes of one part that are kept before passing on starts early, and the window of a part that is
/// ahead of its turn.
inline constexpr std::size_t kMergeBufferBytes = std::size_t{256} * 1024;

class MultiGet final : public call::ReplySink, public call::ReplySource {
 public:
  MultiGet(MultiGets& home, call::Call& parent, OnPartial on_partial);

  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override;
  void on_blocked(call::Call& call) override;
  void resume(call::Call& call) override;
  void discard(call::Call& call) override;

 private:
  friend class MultiGets;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  enum class KeyState : std::uint8_t {
    Waiting,  // Its part has not come to it.
    Item,     // An item came, or is coming; nothing of it was passed on.
    Passing,  // ... and all but item_left bytes of it were passed on.
    Miss,     // Its part went past it.
  };
  struct Key {
    std::uint32_t text_begin = 0;    // Its bytes within texts_.
    std::uint32_t next_of_part = 0;  // The following key of the same part, or kNone.
    std::uint32_t item_left = 0;
    std::uint16_t part = 0;
    std::uint8_t text_bytes = 0;
    KeyState state = KeyState::Waiting;
  };
  struct Part {
    call::Call* call = nullptr;  // Null once its last reply part has come.
    memcache::ValueScanner scanner;
    base::ByteChain items;  // Items whose turn has not come, in key order.
    std::string_view
        direct;  // Items that lie in the receive buffer, for as long as on_reply() runs.
    bool is_direct = false;      // They go to `direct` instead of `items`.
    base::ByteChain error;       // The error line, when it failed.
    std::uint32_t next_key = 0;  // First key that no item was seen for, or kNone.
    std::uint32_t last_key = 0;
    bool is_in_item = false;  // An item has begun and not ended.
    bool is_failed = false;
    bool is_cut = false;  // Failed inside an item.
  };

  std::string_view text_of(const Key& key) const {
    return {texts_ + key.text_begin, key.text_bytes};
  }
  void take(Part& part, const call::ReplyPart& reply);
  bool take_item(Part& part, const memcache::ScanEvent& event);
  void fail(Part& part, std::string_view line);
  void finish_part(Part& part);
  /// True when the whole is finished and this object is gone.
  bool pass_on();
  /// False when it must wait for a part or for the parent.
  bool pass_on_key(Key& key);
  bool pass_on_item(Key& key, Part& part);
  void finish(std::string_view bytes, memcache::ReplyCode code, bool is_broken);
  void finish_all();
  void give_up();
  void pass(std::string_view bytes);
  void unpause(Part& part) const;
  void on_resumed() { pass_on(); }
  const Part* first_failed() const;
  base::BlockPool& blocks();

  MultiGets& home_;
  call::Call& parent_;
  net::Task resume_task_;
  Key* keys_ = nullptr;
  Part* parts_ = nullptr;
  char* texts_ = nullptr;
  base::Block* block_ = nullptr;  // Holds keys, parts and texts ...
  std::size_t heap_bytes_ = 0;
  std::uint32_t key_count_ = 0;
  std::uint32_t next_key_ = 0;                    // First key that was not passed on.
  std::size_t window_bytes_ = kMergeBufferBytes;  // Of a part that is ahead of its turn.
  std::uint32_t parts_left_ = 0;
  std::uint16_t part_count_ = 0;
  OnPartial on_partial_;
  bool is_starting_ = true;  // Parts are being sent: nothing is passed on yet.
  bool is_early_ = false;
  bool has_passed_ = false;  // The parent's sink has taken something.
  bool is_parent_paused_ = false;
  bool is_discarding_ = false;
  bool is_broken_ = false;
};

/// Places of keys that are kept from one get to the next; the room for more is given back.
inline constexpr std::size_t kPlacesKeptMax = 4096;

/// Makes MultiGets; one a pool and worker.
class MultiGets {
 public:
  MultiGets(net::Loop& loop, call::CallPool& calls, base::MemoryBudget& budget);

  /// Splits `request` (a retrieval of two keys or more) over `backends` as `placement` says and
  /// answers `parent`. When all keys belong to one backend the request goes there as it came.
  /// False, with nothing done, when no server is live.
  bool start(call::Call& parent, const memcache::Request& request, const Placement& placement,
             const std::vector<std::unique_ptr<Backend>>& backends, OnPartial on_partial,
             std::uint64_t& random_state);
  /// How many places of keys there is room for.
  std::size_t places_kept() const { return places_.capacity(); }

 private:
  friend class MultiGet;
  struct Place {
    std::string_view key;
    std::uint32_t backend;
  };

  bool split(call::Call& parent, const memcache::Request& request, const Placement& placement,
             const std::vector<std::unique_ptr<Backend>>& backends, OnPartial on_partial,
             std::uint64_t& random_state);
  bool place_keys(const memcache::Request& request, const Placement& placement,
                  std::uint64_t& random_state);
  void number_parts(std::size_t backend_count);
  MultiGet& make(call::Call& parent, std::size_t text_bytes, OnPartial on_partial);
  void fill(MultiGet& multiget, call::Call& parent);
  void send_part(MultiGet& multiget, std::uint16_t index, Backend& backend,
                 std::string_view prefix);
  void release(MultiGet& multiget);

  net::Loop& loop_;
  call::CallPool& calls_;
  base::MemoryBudget& budget_;
  // Scratch of start(), kept to spare allocations.
  std::vector<Place> places_;
  std::vector<std::uint32_t> part_of_backend_;
  std::vector<std::uint32_t> backend_of_part_;
};

}  // namespace kvferry::pool
