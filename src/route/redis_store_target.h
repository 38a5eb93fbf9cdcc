// RedisStoreTarget: makes the embedded store a target for clients of Redis: requests in, replies
// out, before send() returns.
//
// The items are those of memcached's clients (redis/README.md).
// Source:    redis.io, commands; texts as redis-server 7.0 has them.
// Threads:   one worker; the store is shared by all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "call/redis_target.h"
#include "protocol/resp/request_parser.h"
#include "redis/store_commands.h"
#include "store/store.h"

namespace kvferry::route {

/// A buffer of replies that has grown beyond this is given back after the reply.
inline constexpr std::size_t kRedisReplyBytesKept = std::size_t{64} * 1024;

class RedisStoreTarget final : public call::RedisTarget {
 public:
  /// `store` outlives it.
  explicit RedisStoreTarget(store::Store& store) : commands_(store) {}

  void send(call::Call& call, const redis::Request& request) override;
  /// Command by command: those of other clients may run in between.
  void execute(call::Call& call, const redis::Block& block) override;

 private:
  void run(std::span<const std::string_view> args, std::int64_t now_ms, resp::ReplyWriter& reply);
  void answer(call::Call& call);

  redis::StoreCommands commands_;
  std::string reply_;
};

}  // namespace kvferry::route
