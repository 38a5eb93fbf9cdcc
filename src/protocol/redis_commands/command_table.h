// The command table: which command a request names, and all commands for those who list them.
//
// Source:    commands.csv (command.h).
// Lifetime:  commands are constants of the program.
// Threads:   any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "protocol/redis_commands/command.h"

namespace kvferry::redis {

/// What is told of a command but not needed to route it.
struct CommandFacts {
  std::string_view group;     // "sorted-set"
  std::string_view since;     // "7.0.0"
  std::string_view doc_flag;  // "deprecated", "syscmd" or nothing.
  std::string_view tips;      // Words with a blank between them.
  std::string_view note;      // What our own columns leave open, for people.
};

/// What a request names.
struct Resolution {
  enum class State : std::uint8_t {
    Known,           // The command; of a container the subcommand, or itself when it stands alone.
    UnknownCommand,  // unknown_command()
    UnknownSubcommand,  // The container.
  };
  State state = State::UnknownCommand;
  const Command* command = nullptr;  // Never null.
};

/// Commands of the table, subcommands included. Their ids are 0 and up; unknown_command() has this
/// one.
std::size_t command_count() noexcept;
/// All commands by id: sorted by name, subcommands behind their container.
std::span<const Command> all_commands() noexcept;
/// `id` is one of the table, or that of unknown_command().
const Command& command(CommandId id) noexcept;
/// `command` is one of the table, or unknown_command(), of which nothing is told.
const CommandFacts& facts(const Command& command) noexcept;

/// The command `name`, in any letter case, that is no subcommand; null when the table has none.
/// Once a request: see bench.
const Command* find_command(std::string_view name) noexcept;
/// The subcommand `word` of `container`, in any letter case; null when it has none of that name.
const Command* find_subcommand(const Command& container, std::string_view word) noexcept;
/// `name` as the table has it, "client|list" too, in any letter case; for tables by id that are
/// made at start, and COMMAND INFO.
const Command* find_full_name(std::string_view name) noexcept;

/// What is assumed of a command that the table does not have: it writes, and its key is argument 1.
const Command& unknown_command() noexcept;

/// Which command a request of `arg_count` arguments names, of which `args` are there
/// (redis::Request).
Resolution resolve(std::span<const std::string_view> args, std::uint32_t arg_count) noexcept;
inline Resolution resolve(std::span<const std::string_view> args) noexcept {
  return resolve(args, static_cast<std::uint32_t>(args.size()));
}

}  // namespace kvferry::redis
