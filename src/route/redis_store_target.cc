#include "route/redis_store_target.h"

#include <chrono>

#include "base/clock.h"
#include "protocol/redis_commands/command_errors.h"
#include "protocol/redis_commands/command_table.h"
#include "protocol/redis_commands/request.h"

namespace kvferry::route {

namespace {

std::int64_t now_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<base::Millis>(now).count();
}

}  // namespace

void RedisStoreTarget::run(std::span<const std::string_view> args, std::int64_t now_ms,
                           resp::ReplyWriter& reply) {
  if (!commands_.run(args, now_ms, reply)) {
    // It is in the table, and the store does not have it: for its clients the same as not being
    // there.
    std::string error;
    redis::append_unknown_command(args, error);
    reply.error(error);
  }
}

void RedisStoreTarget::send(call::Call& call, const redis::Request& request) {
  reply_.clear();
  resp::ReplyWriter reply(request.version, reply_);
  if (request.is_complete()) {
    run(request.args, now_ms(), reply);
  } else {
    reply.error("ERR kvferry: the value is larger than the store takes");
  }
  answer(call);
}

void RedisStoreTarget::execute(call::Call& call, const redis::Block& block) {
  reply_.clear();
  resp::ReplyWriter reply(block.version, reply_);
  reply.array(block.commands.size());
  resp::RequestParser parser({.stream_bytes_min = block.bytes.size() + 1});
  const std::int64_t now = now_ms();
  for (const redis::QueuedCommand& queued : block.commands) {
    const auto parsed = parser.parse(block.bytes.substr(queued.begin, queued.size_bytes));
    KVF_CHECK(parsed.is_done());  // It was parsed when it was queued.
    run(parsed.value().args, now, reply);
  }
  answer(call);
}

void RedisStoreTarget::answer(call::Call& call) {
  call::answer(call, reply_, call::redis_reply_code(reply_[0], reply_[1]));
  if (reply_.capacity() > kRedisReplyBytesKept) [[unlikely]] {
    std::string().swap(reply_);
  }
}

}  // namespace kvferry::route
