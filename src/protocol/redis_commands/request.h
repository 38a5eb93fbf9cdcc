// Request: one request of a Redis client, on its way to whoever answers it.
//
// Lifetime:  everything it views is valid while it is being sent (call::RedisTarget::send), like a memcache::Request.
// Threads:   values.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "protocol/redis_commands/command.h"
#include "protocol/resp/reply_writer.h"

namespace kvferry::redis {

struct Request {
  const Command& command;
  /// The arguments that are there, the name first: all of them, unless one is so long that it is streamed.
  std::span<const std::string_view> args;
  std::uint32_t arg_count = 0;  // Of the whole request.
  /// The request as an array of bulk strings. Of a streamed one its begin, up to the line that tells the length of the
  /// streamed argument; what follows goes through call::Call::body_sink, whatever it is, until its last byte.
  std::string_view bytes;
  resp::Version version = resp::Version::Two;  // What the reply has to be in.
  std::uint32_t database = 0;

  bool is_complete() const noexcept { return args.size() == arg_count; }
};

}  // namespace kvferry::redis
