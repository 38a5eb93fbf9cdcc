// RedisBlock: a transaction on its way to one Redis server: MULTI, the commands, EXEC, with nothing
// in between, as one call on a link that others share.
//
//   MULTI  command ... command  EXEC  [SELECT]
//   +OK    +QUEUED     +QUEUED  reply [+OK]      of which the parent sees that of EXEC
//
// A command that the server did not queue is why EXEC fails, so the client is told that. SELECT
// inside leaves the connection in another database: the one behind EXEC brings it back, and the
// connection is closed when it does not.
//
// Lifetime:  from start() to the last part of its call; the parent may be answered before.
// Threads:   one worker.
#pragma once

#include <cstdint>
#include <string>

#include "call/call.h"
#include "pool/backend.h"
#include "pool/pool_context.h"
#include "pool/room.h"
#include "protocol/redis_commands/request.h"

namespace kvferry::pool {

class RedisBlock final : public call::ReplySink, public call::ReplySource {
 public:
  /// Writes `block` to a link of `lane` that is `parent`'s, or answers `parent` with the reason why
  /// not.
  static void start(const PoolContext& context, Backend& lane, call::Call& parent,
                    const redis::Block& block);

  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override;
  void on_blocked(call::Call& call) override;
  void resume(call::Call& call) override;
  void discard(call::Call& call) override;

 private:
  RedisBlock(const PoolContext& context, Backend& lane, Link& link, call::Call& parent)
      : context_(context), lane_(lane), link_(link), parent_(&parent) {}

  void write(const redis::Block& block, bool has_select);
  void send(std::uint32_t replies);
  void note_queued(bool is_multi, const call::ReplyPart& part);
  call::Flow pass_on(const call::ReplyPart& part, bool is_last);
  void leave();

  PoolContext context_;
  Backend& lane_;
  Link& link_;
  call::Call* parent_;  // Null once it has its whole reply.
  call::Call* call_ = nullptr;
  std::string refusal_;          // The error line that takes the place of EXEC's.
  std::uint32_t left_ = 0;       // Replies that have not ended.
  std::uint32_t total_ = 0;      // Replies in all.
  std::uint32_t exec_left_ = 1;  // left_ while it is EXEC's turn.
  bool is_begun_ = false;        // The parent has a part of its reply.
  bool is_discarding_ = false;   // It wants no more of it.
  bool is_replaced_ = false;     // The reply is an error in place of which refusal_ is passed on.
  Room room_;
};

}  // namespace kvferry::pool
