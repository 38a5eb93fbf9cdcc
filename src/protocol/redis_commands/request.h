// Request: one request of a Redis client, on its way to whoever answers it.
//
// Lifetime:  everything it views is valid while it is being sent (call::RedisTarget::send), like a
// memcache::Request. Threads:   values.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "protocol/redis_commands/command.h"
#include "protocol/resp/reply_writer.h"

namespace kvferry::redis {

struct Request {
  const Command& command;
  /// The arguments that are there, the name first: all of them, unless one is so long that it is
  /// streamed.
  std::span<const std::string_view> args;
  std::uint32_t arg_count = 0;  // Of the whole request.
  /// The request as an array of bulk strings. Of a streamed one its begin, up to the line that
  /// tells the length of the streamed argument; what follows goes through call::Call::body_sink,
  /// whatever it is, until its last byte.
  std::string_view bytes;
  resp::Version version = resp::Version::Two;  // What the reply has to be in.
  std::uint32_t database = 0;

  bool is_complete() const noexcept { return args.size() == arg_count; }
};

/// A command that waits for EXEC: where it lies in the bytes of its block.
struct QueuedCommand {
  const Command* command = nullptr;
  std::uint32_t arg_count = 0;
  std::uint64_t begin = 0;
  std::uint64_t size_bytes = 0;
};

/// The commands between MULTI and EXEC, to be run with nothing in between.
struct Block {
  std::span<const QueuedCommand> commands;
  std::string_view bytes;  // Theirs, as arrays of bulk strings, one behind the other.
  resp::Version version = resp::Version::Two;
  std::uint32_t database = 0;
};

}  // namespace kvferry::redis
