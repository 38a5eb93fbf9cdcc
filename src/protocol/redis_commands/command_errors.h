// Error texts about requests, in the words of redis-server 7.0: what is said before a command runs.
//
// Texts begin with "ERR ", or another word, and are for ReplyWriter::error(): one line, since line
// ends in them have become blanks. Threads:   pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "protocol/redis_commands/command.h"
#include "protocol/redis_commands/command_table.h"
#include "protocol/redis_commands/key_places.h"

namespace kvferry::redis {

/// Names and lists of arguments are cut to this length in error texts.
inline constexpr std::size_t kErrorPartBytesMax = 128;

/// `arg_count` counts the name and the subcommand.
constexpr bool has_good_count(const Command& command, std::uint32_t arg_count) noexcept {
  const std::int64_t count = arg_count;
  return command.arity > 0 ? count == command.arity : count >= -command.arity;
}

/// unknown command 'FOO', with args beginning with: 'a' 'b'
void append_unknown_command(std::span<const std::string_view> args, std::string& text);
/// unknown subcommand 'foo'. Try CLIENT HELP. `args` are at least two, unless the second one is too
/// long to be here.
void append_unknown_subcommand(std::span<const std::string_view> args, std::string& text);
/// wrong number of arguments for 'get' command
void append_wrong_count(const Command& command, std::string& text);
/// What find_keys() found to be wrong; empty when that is for the server to say.
std::string_view key_error(const Command& command, KeyOutcome outcome) noexcept;

/// Whether the request can be run as far as name and count tell; otherwise `text` gets the error.
/// Unknown commands can: they may be known to a backend.
bool check_count(const Resolution& resolution, std::span<const std::string_view> args,
                 std::uint32_t arg_count, std::string& text);

}  // namespace kvferry::redis
