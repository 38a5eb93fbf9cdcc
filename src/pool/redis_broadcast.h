// RedisBroadcast: one command for all backends of a pool, whose replies are merged as the command
// table says.
//
// A part that is missing makes it an error, never a smaller sum: a backend that cannot be reached,
// or has not answered within the pool's broadcast_timeout. Late parts are dropped. Replies are kept
// whole, within max_merge_bytes; the merged one flows to the client.
//
// For administration; never on the steady request path, so it allocates.
// Lifetime:  from start() until all backends have answered and the parent has its reply.
// Threads:   one worker.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "call/call.h"
#include "net/loop.h"
#include "net/timer.h"
#include "pool/kept_backends.h"
#include "pool/redis_backend.h"
#include "protocol/redis_commands/request.h"

namespace kvferry::pool {

/// Parts in which a merged reply is passed on.
inline constexpr std::size_t kMergedPartBytes = std::size_t{64} * 1024;

class RedisBroadcast final : public call::ReplySink, public call::ReplySource {
 public:
  using Kept = KeptBackends<RedisBackend>;

  /// Sends `request`, which is complete, to all backends of `kept` and answers `parent`.
  static void start(const PoolContext& context, const Kept& kept, call::Call& parent,
                    const redis::Request& request);

  call::Flow on_reply(call::Call& call, const call::ReplyPart& reply) override;
  void resume(call::Call& call) override;
  void discard(call::Call& call) override;

 private:
  RedisBroadcast(const PoolContext& context, const Kept& kept, call::Call& parent,
                 const redis::Command& command);

  const PoolOptions& options() const { return kept_.options(); }
  void send(call::Call& parent, const redis::Request& request);
  void take(std::string& reply, const call::ReplyPart& part);
  void on_timeout();
  void answer_merged();
  void answer_failed();
  void answer(std::string line);
  void pass_on();
  void leave_if_over();

  PoolContext context_;
  const Kept& kept_;
  call::Call* parent_;  // Null once it has its whole reply.
  const redis::Command& command_;
  net::Timer timer_;
  net::Task resume_task_;
  std::vector<std::string> replies_;  // Of each backend; empty while it has none.
  std::vector<bool> is_over_;         // Of each backend: its reply is whole.
  std::size_t left_ = 0;              // Backends that have not answered; one more while sending.
  std::size_t kept_bytes_ = 0;
  std::string merged_;
  std::size_t passed_bytes_ = 0;
  bool is_answered_ = false;  // merged_ is the reply.
  bool is_too_large_ = false;
  bool is_paused_ = false;
  bool is_discarding_ = false;
};

}  // namespace kvferry::pool
