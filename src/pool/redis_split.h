// RedisSplit: one command of several keys, run part by part, one for each backend, and merged.
//
//   MGET a b c d    parts  0: MGET a c   1: MGET b d    elements return to the places of their keys
//   DEL a b c       parts  0: DEL a c    1: DEL b       integers are added
//   MSET a 1 b 2    parts  0: MSET a 1   1: MSET b 2    OK when all say so
//
// Unlike items of memcached (MultiGet), elements do not name their keys: a part is known by its
// order alone. All parts are kept until the last one has come, within the pool's max_merge_bytes,
// so a part that fails can still change what is said of the others (on_partial).
//
// Lifetime:  from RedisSplits::start() to the last part of the parent's reply. It owns the calls of
// its parts. Threads:   one worker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/byte_chain.h"
#include "call/call.h"
#include "net/loop.h"
#include "pool/options.h"
#include "pool/room.h"
#include "protocol/redis_commands/command.h"
#include "protocol/resp/array_walker.h"
#include "protocol/resp/reply_writer.h"

namespace kvferry::pool {

class RedisSplits;

/// Merged replies up to this are passed on in one piece.
inline constexpr std::size_t kComposeBytesMax = std::size_t{16} * 1024;

class RedisSplit final : public call::ReplySink, public call::ReplySource {
 public:
  RedisSplit(RedisSplits& home, call::Call& parent, const redis::Command& command,
             resp::Version version, OnPartial on_partial);

  call::Flow on_reply(call::Call& call, const call::ReplyPart& reply) override;
  void resume(call::Call& call) override;
  void discard(call::Call& call) override;

 private:
  friend class RedisSplits;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Key {
    std::uint32_t part = 0;
    std::uint32_t next_of_part = kNone;  // The following key of the same part.
    std::uint32_t element_bytes = 0;     // What of Part::bytes is its element.
  };
  struct Part {
    call::Call* call = nullptr;  // Null once its last reply part has come.
    base::ByteChain bytes;       // Its reply; without the head once that has come whole.
    std::string error;           // The whole error reply, when it failed.
    std::uint32_t first_key = kNone;
    std::uint32_t last_key = kNone;
    std::uint32_t key_count = 0;
    std::int64_t number = 0;
    bool is_failed = false;
  };

  bool is_keyed() const { return command_.merge == redis::Merge::KeyedArray; }
  void take(Part& part, const call::ReplyPart& reply);
  void take_elements(Part& part, const call::ReplyPart& reply);
  /// Finds the elements of `part` in `bytes`, in which its reply goes on. False when it is none.
  bool measure(std::string_view bytes, resp::ArrayWalker& walker, std::uint32_t& key,
               std::size_t& head_bytes);
  bool measure_kept(Part& part);
  void keep(Part& part, std::string_view bytes);
  void fail(Part& part, std::string_view error);
  void finish_part(Part& part);
  /// All parts are there. This object is gone when it returns, or waits for its parent.
  void finish_all();
  void finish_elements();
  void finish_numbers();
  /// What stands for the keys of `part`, which failed.
  std::string_view substitute(const Part& part) const;
  std::size_t merged_bytes_max() const;
  void compose();
  void pass_on();
  void pass_element(Key& key);
  void pass(std::string_view bytes);
  void finish(std::string_view bytes, memcache::ReplyCode code);
  const Part* first_failed() const;
  std::size_t failed_count() const;
  base::BlockPool& blocks() const;
  const PoolOptions& options() const;

  RedisSplits& home_;
  call::Call& parent_;
  const redis::Command& command_;
  net::Task resume_task_;
  Key* keys_ = nullptr;
  Part* parts_ = nullptr;
  Room room_;
  std::size_t kept_bytes_ = 0;
  std::uint32_t key_count_ = 0;
  std::uint32_t part_count_ = 0;
  std::uint32_t parts_left_ = 0;
  std::uint32_t next_key_ = 0;  // First one that was not passed on.
  resp::Version version_;
  OnPartial on_partial_;
  bool is_starting_ = true;  // Parts are being sent: nothing is passed on yet.
  bool is_too_large_ = false;
  bool has_passed_ = false;  // The parent's sink has taken something.
  bool is_parent_paused_ = false;
  bool is_discarding_ = false;
};

}  // namespace kvferry::pool
