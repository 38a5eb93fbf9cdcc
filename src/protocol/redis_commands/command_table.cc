#include "protocol/redis_commands/command_table.h"

#include <array>

#include "protocol/redis_commands/command_names.h"
#include "protocol/redis_commands/command_rows.h"
#include "protocol/redis_commands/key_spec.h"
#include "protocol/redis_commands/packed_word.h"

namespace kvferry::redis {
namespace {

constexpr std::array kUnknownKeySpecs{KeySpec{.begin = KeySpec::Begin::Index,
                                              .find = KeySpec::Find::Range,
                                              .begin_at = 1,
                                              .access = kAccessRw | kAccessAccess | kAccessUpdate}};
constexpr CommandFacts kUnknownFacts;

}  // namespace

std::size_t command_count() noexcept {
  return kCommandRows.commands.size();
}

std::span<const Command> all_commands() noexcept {
  return kCommandRows.commands;
}

const Command& command(CommandId id) noexcept {
  return id < kCommandRows.commands.size() ? kCommandRows.commands[id] : unknown_command();
}

const CommandFacts& facts(const Command& command) noexcept {
  return command.id < kCommandRows.facts.size() ? kCommandRows.facts[command.id] : kUnknownFacts;
}

const Command* find_command(std::string_view name) noexcept {
  PackedWord word;
  if (!pack_word(name, word)) {
    return nullptr;
  }
  const CommandRows& rows = kCommandRows;
  const std::size_t last_slot = rows.slots.size() - 1;
  for (std::size_t at = slot_of(word, rows.multiplier, rows.slot_bits);;
       at = (at + 1) & last_slot) {
    const CommandId id = rows.slots[at];
    if (id == kNoCommandId) {
      return nullptr;
    }
    if (rows.words[id] == word) {
      return &rows.commands[id];
    }
  }
}

const Command* find_subcommand(const Command& container, std::string_view word) noexcept {
  PackedWord packed;
  if (!pack_word(word, packed)) {
    return nullptr;
  }
  for (const CommandId id : container.subcommands) {
    if (kCommandRows.words[id] == packed) {
      return &kCommandRows.commands[id];
    }
  }
  return nullptr;
}

const Command* find_full_name(std::string_view name) noexcept {
  const std::size_t bar = name.find('|');
  const Command* const found = find_command(name.substr(0, bar));
  return found == nullptr || bar == std::string_view::npos
             ? found
             : find_subcommand(*found, name.substr(bar + 1));
}

const Command& unknown_command() noexcept {
  static const Command kUnknown{.name = "unknown",
                                .id = static_cast<CommandId>(command_count()),
                                .flags = kWrite,
                                .categories = category_bit("write") | category_bit("slow"),
                                .first_key = 1,
                                .last_key = 1,
                                .key_step = 1,
                                .key_specs = kUnknownKeySpecs,
                                .key_rule = KeyRule::One,
                                .sole_key = 1};
  return kUnknown;
}

Resolution resolve(std::span<const std::string_view> args, std::uint32_t arg_count) noexcept {
  const Command* const named = args.empty() ? nullptr : find_command(args[0]);
  if (named == nullptr) {
    return {.state = Resolution::State::UnknownCommand, .command = &unknown_command()};
  }
  if (!named->is_container() || arg_count < 2) {
    return {.state = Resolution::State::Known, .command = named};
  }
  // A subcommand that is so long that it is not here is none.
  const Command* const part = args.size() < 2 ? nullptr : find_subcommand(*named, args[1]);
  return part == nullptr
             ? Resolution{.state = Resolution::State::UnknownSubcommand, .command = named}
             : Resolution{.state = Resolution::State::Known, .command = part};
}

}  // namespace kvferry::redis
