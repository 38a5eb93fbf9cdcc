#include "protocol/redis_commands/table_writer.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "protocol/redis_commands/command_rows.h"
#include "protocol/redis_commands/packed_word.h"

namespace kvferry::redis {
namespace {

/// A quarter of the slots is taken by some 240 commands, so that most are found at once.
constexpr unsigned kSlotBits = 10;
constexpr std::size_t kSlotCount = std::size_t{1} << kSlotBits;
/// So many multipliers are tried for the one with the fewest collisions.
constexpr int kMultiplierTries = 2000;

struct Slots {
  std::vector<CommandId> ids;
  std::uint64_t multiplier = 0;
  std::size_t steps = 0;  // That all words together take beyond their first slot.
};

template <typename Number>
std::string decimal(Number number) {
  return std::to_string(static_cast<std::int64_t>(number));
}

std::string quoted(std::string_view text) {
  return '"' + std::string(text) + '"';
}

PackedWord packed(const CommandRow& row) {
  PackedWord word;
  pack_word(row.word(), word);
  return word;
}

Slots fill_slots(std::span<const CommandRow> rows, std::uint64_t multiplier) {
  Slots slots{.ids = std::vector<CommandId>(kSlotCount, kNoCommandId), .multiplier = multiplier};
  for (std::size_t id = 0; id < rows.size(); ++id) {
    if (!rows[id].container().empty()) {
      continue;
    }
    std::size_t at = slot_of(packed(rows[id]), multiplier, kSlotBits);
    while (slots.ids[at] != kNoCommandId) {
      at = (at + 1) % kSlotCount;
      ++slots.steps;
    }
    slots.ids[at] = static_cast<CommandId>(id);
  }
  return slots;
}

Slots best_slots(std::span<const CommandRow> rows) {
  std::uint64_t multiplier = 0x9e3779b97f4a7c15;
  Slots best = fill_slots(rows, multiplier);
  for (int tries = 0; tries < kMultiplierTries && best.steps > 0; ++tries) {
    // The next one of a linear generator, made odd.
    multiplier = (multiplier * 6364136223846793005U + 1442695040888963407U) | 1U;
    if (Slots slots = fill_slots(rows, multiplier); slots.steps < best.steps) {
      best = std::move(slots);
    }
  }
  return best;
}

void append_key_specs(std::span<const CommandRow> rows, std::string& out) {
  out += "constexpr KeySpec kKeySpecs[] = {\n";
  for (const CommandRow& row : rows) {
    for (const KeySpec& spec : row.key_specs) {
      out += "  {KeySpec::Begin{" + decimal(spec.begin) + "}, KeySpec::Find{" + decimal(spec.find) +
             "}, " + decimal(spec.begin_at) + ", " + decimal(spec.last) + ", " +
             decimal(spec.step) + ", " + decimal(spec.limit) + ", " + decimal(spec.access) + ", " +
             quoted(spec.keyword) + "},  // " + std::string(row.command.name) + "\n";
    }
  }
  out += "};\n\n";
}

void append_ids(std::span<const CommandRow> rows, std::string& out) {
  out +=
      "// Each number at its own place: subcommands of one container are a part of it.\nconstexpr "
      "CommandId kIds[] = {";
  for (std::size_t id = 0; id < rows.size(); ++id) {
    out += decimal(id) + ", ";
  }
  out += "};\n\n";
}

void append_command(std::span<const CommandRow> rows, std::size_t id, std::size_t first_spec,
                    std::string& out) {
  const CommandRow& row = rows[id];
  const Command& command = row.command;
  std::size_t subcommand_count = 0;
  while (id + 1 + subcommand_count < rows.size() &&
         rows[id + 1 + subcommand_count].container() == command.name) {
    ++subcommand_count;
  }
  const auto part = [](std::string_view array, std::size_t first, std::size_t count) {
    return count == 0 ? std::string("{}")
                      : "std::span(" + std::string(array) + ").subspan(" + decimal(first) + ", " +
                            decimal(count) + ")";
  };
  out += "  {.name = " + quoted(command.name) + ", .id = " + decimal(id) +
         ", .arity = " + decimal(command.arity) + ", .flags = " + decimal(command.flags) +
         ", .categories = " + decimal(command.categories) +
         ", .first_key = " + decimal(command.first_key) +
         ", .last_key = " + decimal(command.last_key) +
         ", .key_step = " + decimal(command.key_step) +
         ", .key_specs = " + part("kKeySpecs", first_spec, row.key_specs.size()) +
         ", .routing = Routing{" + decimal(command.routing) + "}, .merge = Merge{" +
         decimal(command.merge) + "}, .retry = Retry{" + decimal(command.retry) +
         "}, .in_multi = InMulti{" + decimal(command.in_multi) + "}, .key_rule = KeyRule{" +
         decimal(command.key_rule) + "}, .sole_key = " + decimal(command.sole_key) +
         ", .may_ask_replica = " + (command.may_ask_replica ? "true" : "false") +
         ", .is_gated = " + (command.is_gated ? "true" : "false") +
         ", .subcommands = " + part("kIds", id + 1, subcommand_count) + "},\n";
}

void append_commands(std::span<const CommandRow> rows, std::string& out) {
  out += "constexpr Command kCommands[] = {\n";
  std::size_t first_spec = 0;
  for (std::size_t id = 0; id < rows.size(); ++id) {
    append_command(rows, id, first_spec, out);
    first_spec += rows[id].key_specs.size();
  }
  out += "};\n\nconstexpr CommandFacts kFacts[] = {\n";
  for (const CommandRow& row : rows) {
    out += "  {" + quoted(row.group) + ", " + quoted(row.since) + ", " + quoted(row.doc_flag) +
           ", " + quoted(row.tips) + ", " + quoted(row.note) + "},\n";
  }
  out += "};\n\n";
}

void append_words(std::span<const CommandRow> rows, std::string& out) {
  out += "constexpr PackedWord kWords[] = {\n";
  for (const CommandRow& row : rows) {
    const PackedWord word = packed(row);
    out += "  {" + std::to_string(word.first) + "U, " + std::to_string(word.middle) + "U, " +
           std::to_string(word.last) + "U, " + std::to_string(word.size_bytes) + "},  // " +
           std::string(row.word()) + "\n";
  }
  out += "};\n\n";
}

void append_slots(const Slots& slots, std::string& out) {
  out += "// " + decimal(slots.steps) +
         " steps beyond the first slot, over all names.\nconstexpr CommandId kSlots[] = {\n";
  for (const CommandId id : slots.ids) {
    out += decimal(id) + ",\n";
  }
  out += "};\n\n";
}

}  // namespace

std::string compose_table(std::span<const CommandRow> rows) {
  const Slots slots = best_slots(rows);
  std::string out =
      "// Made from commands.csv when the program is built.\n"
      "#include \"protocol/redis_commands/command_rows.h\"\n"
      "#include \"protocol/redis_commands/key_spec.h\"\n\n"
      "namespace kvferry::redis {\nnamespace {\n\n";
  append_key_specs(rows, out);
  append_ids(rows, out);
  append_commands(rows, out);
  append_words(rows, out);
  append_slots(slots, out);
  out +=
      "}  // namespace\n\nconstinit const CommandRows kCommandRows{kCommands, kFacts, kWords, "
      "kSlots, " +
      decimal(kSlotBits) + ", " + std::to_string(slots.multiplier) +
      "U};\n\n}  // namespace kvferry::redis\n";
  return out;
}

}  // namespace kvferry::redis
