// What the program that makes the table (generate_table.cc) writes, for command_table.cc and
// command_replies.cc.
//
// Lifetime:  constants of the program.
// Threads:   any.
#pragma once

#include <cstdint>
#include <span>

#include "protocol/redis_commands/command.h"
#include "protocol/redis_commands/command_table.h"
#include "protocol/redis_commands/packed_word.h"

namespace kvferry::redis {

/// An empty slot of CommandRows::slots.
inline constexpr CommandId kNoCommandId = 0xffff;

struct CommandRows {
  std::span<const Command>
      commands;  // By CommandId, sorted; subcommands stand behind their container.
  std::span<const CommandFacts> facts;
  std::span<const PackedWord> words;  // The names; of a subcommand what is behind the bar.
  /// Commands that are no subcommands, by slot_of(); 2^slot_bits of them. What finds its slot taken
  /// is in the next free one.
  std::span<const CommandId> slots;
  unsigned slot_bits;
  std::uint64_t multiplier;
};

extern const CommandRows kCommandRows;

}  // namespace kvferry::redis
