// RedisSplits: makes the RedisSplits of one pool: places keys, numbers parts, sends them.
//
// Threads: one worker.
#pragma once

#include <cstdint>
#include <string>
#include <sys/uio.h>
#include <vector>

#include "call/call.h"
#include "pool/kept_backends.h"
#include "pool/redis_backend.h"
#include "pool/redis_split.h"
#include "protocol/redis_commands/request.h"

namespace kvferry::pool {

class RedisSplits {
 public:
  using Kept = KeptBackends<RedisBackend>;

  /// Both outlive it.
  RedisSplits(const PoolContext& context, Kept& kept)
      : loop_(context.loop), calls_(context.calls), kept_(kept) {}
  RedisSplits(const RedisSplits&) = delete;
  RedisSplits& operator=(const RedisSplits&) = delete;

  /// Where the keys of a split command are: from argument 1 on, every `stride`-th.
  static std::uint32_t stride_of(const redis::Command& command) {
    return static_cast<std::uint32_t>(command.key_step);
  }

  /// Places the keys of `request`, which is complete and has whole strides of arguments. The
  /// backend of all of them, or kSeveral, or kNoServer when none is live.
  std::uint32_t place(const redis::Request& request);
  static constexpr std::uint32_t kSeveral = kNoServer - 1;
  /// Sends the parts of `request`, whose keys were just placed on several backends.
  void start(call::Call& parent, const redis::Request& request);

 private:
  friend class RedisSplit;

  const PoolOptions& options() const { return kept_.options(); }
  void number_parts();
  RedisSplit& make(call::Call& parent, const redis::Request& request);
  void send_part(RedisSplit& split, std::uint32_t index, const redis::Request& request);
  void release(RedisSplit& split);
  void trim();

  net::Loop& loop_;
  call::CallPool& calls_;
  Kept& kept_;
  // Scratch, kept to spare allocations.
  std::vector<std::uint32_t> places_;  // Of each key, its backend; then its part.
  std::vector<std::uint32_t> part_of_backend_;
  std::vector<std::uint32_t> backend_of_part_;
  std::vector<iovec> runs_;
  std::string text_;
};

}  // namespace kvferry::pool
