// How the replies of all backends to one command become one reply.
//
// Lifetime:  of views: those of the replies.
// Threads:   pure functions; they allocate, and are for commands of administrators.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "protocol/redis_commands/command.h"

namespace kvferry::pool {

/// Whether `reply` is an error.
inline bool is_error_reply(std::string_view reply) noexcept {
  return reply.starts_with('-') || reply.starts_with('!');
}

/// Merges whole `replies`, of which there is at least one and none is an error. False when one of
/// them is not what such a command is answered with; `out` is undefined then.
bool merge_replies(redis::Merge merge, std::span<const std::string> replies, std::string& out);

/// Reads ":12\r\n".
bool read_number_reply(std::string_view reply, std::int64_t& number) noexcept;

}  // namespace kvferry::pool
