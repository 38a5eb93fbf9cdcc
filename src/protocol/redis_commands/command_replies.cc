#include "protocol/redis_commands/command_replies.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "protocol/redis_commands/command_errors.h"
#include "protocol/redis_commands/command_names.h"
#include "protocol/redis_commands/command_table.h"
#include "protocol/redis_commands/glob.h"
#include "protocol/redis_commands/key_places.h"
#include "protocol/redis_commands/key_spec.h"
#include "protocol/redis_commands/packed_word.h"

namespace kvferry::redis {
namespace {

using Args = std::span<const std::string_view>;

constexpr std::array<std::string_view, 9> kHelp{
    "COMMAND <subcommand> [<argument> ...]. Subcommands are:",
    "(none), INFO [<name> ...]: counts of arguments, flags and places of keys of commands.",
    "COUNT: how many commands there are.",
    "DOCS [<name> ...]: since when there are commands, and to which group they belong.",
    "GETKEYS <command> <argument> ...: the keys of a request.",
    "GETKEYSANDFLAGS <command> <argument> ...: the keys of a request, and what becomes of them.",
    "LIST [FILTERBY MODULE <name> | ACLCAT <category> | PATTERN <pattern>]: the names of commands.",
    "HELP: this text.",
    "What is told is what this client may use here."};

bool is_subcommand(const Command& command) noexcept {
  return command.name.find('|') != std::string_view::npos;
}

/// Calls `take` with each word of `words`.
template <typename Take>
void for_each_word(std::string_view words, const Take& take) {
  while (!words.empty()) {
    const std::size_t end = words.find(' ');
    take(words.substr(0, end));
    words = end == std::string_view::npos ? std::string_view() : words.substr(end + 1);
  }
}

/// Composes one reply.
class Composer {
 public:
  Composer(Args args, const CommandFilter& is_shown, resp::ReplyWriter& reply)
      : args_(args), is_shown_(is_shown), reply_(reply) {}

  void compose();

 private:
  bool is_shown(const Command& command) const { return !is_shown_ || is_shown_(command); }
  /// The command `name` when the client is told of it, else null.
  const Command* find_shown(std::string_view name) const;
  template <typename Chosen>
  std::size_t count(const Chosen& is_chosen) const;

  void info();
  void list();
  void docs();
  void keys(bool with_flags);
  void help();

  void one_info(const Command& command);
  void one_key_spec(const KeySpec& spec);
  void begin_search(const KeySpec& spec);
  void find_keys_of(const KeySpec& spec);
  void one_doc(const Command& command);
  /// The names of the bits of `bits`, as a set of simple strings.
  void names(std::uint32_t bits, std::span<const std::string_view> names, std::string_view prefix);
  void field(std::string_view name, std::int64_t number) {
    reply_.bulk(name);
    reply_.integer(number);
  }
  template <typename Chosen>
  void list_of(const Chosen& is_chosen);

  Args args_;
  const CommandFilter& is_shown_;
  resp::ReplyWriter& reply_;
};

const Command* Composer::find_shown(std::string_view name) const {
  const Command* const found = find_full_name(name);
  return found != nullptr && is_shown(*found) ? found : nullptr;
}

template <typename Chosen>
std::size_t Composer::count(const Chosen& is_chosen) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      all_commands(), [&](const Command& one) { return is_chosen(one) && is_shown(one); }));
}

void Composer::names(std::uint32_t bits, std::span<const std::string_view> names,
                     std::string_view prefix) {
  std::string text;
  reply_.set(static_cast<std::uint64_t>(std::popcount(bits)));
  for (std::size_t bit = 0; bit < names.size(); ++bit) {
    if ((bits >> bit & 1U) != 0) {
      reply_.simple(text.assign(prefix).append(names[bit]));
    }
  }
}

void Composer::begin_search(const KeySpec& spec) {
  reply_.bulk("begin_search");
  reply_.map(2);
  reply_.bulk("type");
  switch (spec.begin) {
    case KeySpec::Begin::Unknown:
      reply_.bulk("unknown");
      reply_.bulk("spec");
      reply_.map(0);
      break;
    case KeySpec::Begin::Index:
      reply_.bulk("index");
      reply_.bulk("spec");
      reply_.map(1);
      field("index", spec.begin_at);
      break;
    case KeySpec::Begin::Keyword:
      reply_.bulk("keyword");
      reply_.bulk("spec");
      reply_.map(2);
      reply_.bulk("keyword");
      reply_.bulk(spec.keyword);
      field("startfrom", spec.begin_at);
      break;
  }
}

void Composer::find_keys_of(const KeySpec& spec) {
  reply_.bulk("find_keys");
  reply_.map(2);
  reply_.bulk("type");
  switch (spec.find) {
    case KeySpec::Find::Unknown:
      reply_.bulk("unknown");
      reply_.bulk("spec");
      reply_.map(0);
      break;
    case KeySpec::Find::Range:
      reply_.bulk("range");
      reply_.bulk("spec");
      reply_.map(3);
      field("lastkey", spec.last);
      field("keystep", spec.step);
      field("limit", spec.limit);
      break;
    case KeySpec::Find::KeyNum:
      reply_.bulk("keynum");
      reply_.bulk("spec");
      reply_.map(3);
      field("keynumidx", spec.last);
      field("firstkey", spec.limit);
      field("keystep", spec.step);
      break;
  }
}

void Composer::one_key_spec(const KeySpec& spec) {
  reply_.map(3);
  reply_.bulk("flags");
  names(spec.access, kAccessNames, "");
  begin_search(spec);
  find_keys_of(spec);
}

void Composer::one_info(const Command& command) {
  reply_.array(10);
  reply_.bulk(command.name);
  reply_.integer(command.arity);
  names(command.flags, kFlagNames, "");
  reply_.integer(command.first_key);
  reply_.integer(command.last_key);
  reply_.integer(command.key_step);
  names(command.categories, kCategoryNames, "@");
  const std::string_view tips = facts(command).tips;
  reply_.set(tips.empty() ? 0 : static_cast<std::uint64_t>(std::ranges::count(tips, ' ')) + 1);
  for_each_word(tips, [this](std::string_view tip) { reply_.bulk(tip); });
  reply_.set(command.key_specs.size());
  for (const KeySpec& spec : command.key_specs) {
    one_key_spec(spec);
  }
  const auto is_part_shown = [this](CommandId id) { return is_shown(redis::command(id)); };
  reply_.set(static_cast<std::uint64_t>(std::ranges::count_if(command.subcommands, is_part_shown)));
  for (const CommandId id : command.subcommands) {
    if (is_part_shown(id)) {
      one_info(redis::command(id));
    }
  }
}

void Composer::info() {
  if (args_.size() > 2) {
    reply_.array(args_.size() - 2);
    for (const std::string_view name : args_.subspan(2)) {
      const Command* const found = find_shown(name);
      if (found == nullptr) {
        reply_.null();
      } else {
        one_info(*found);
      }
    }
    return;
  }
  const auto is_top = [](const Command& one) { return !is_subcommand(one); };
  reply_.array(count(is_top));
  for (const Command& one : all_commands()) {
    if (is_top(one) && is_shown(one)) {
      one_info(one);
    }
  }
}

template <typename Chosen>
void Composer::list_of(const Chosen& is_chosen) {
  reply_.array(count(is_chosen));
  for (const Command& one : all_commands()) {
    if (is_chosen(one) && is_shown(one)) {
      reply_.bulk(one.name);
    }
  }
}

void Composer::list() {
  if (args_.size() == 2) {
    list_of([](const Command&) { return true; });
    return;
  }
  if (args_.size() != 5 || !equal_letters(args_[2], "filterby")) {
    reply_.error("ERR syntax error");
    return;
  }
  const std::string_view value = args_[4];
  if (equal_letters(args_[3], "pattern")) {
    list_of(
        [value](const Command& one) { return matches_glob(value, one.name, LetterCase::Ignored); });
  } else if (equal_letters(args_[3], "aclcat")) {
    const auto is_it = [value](std::string_view name) { return equal_letters(name, value); };
    const auto at = std::ranges::find_if(kCategoryNames, is_it);
    const std::uint32_t bit = at == kCategoryNames.end() ? 0 : category_bit(*at);
    list_of([bit](const Command& one) { return (one.categories & bit) != 0; });
  } else if (equal_letters(args_[3], "module")) {
    reply_.array(0);
  } else {
    reply_.error("ERR syntax error");
  }
}

void Composer::one_doc(const Command& command) {
  const CommandFacts& told = facts(command);
  const auto is_part_shown = [this](CommandId id) { return is_shown(redis::command(id)); };
  const auto part_count =
      static_cast<std::uint64_t>(std::ranges::count_if(command.subcommands, is_part_shown));
  reply_.bulk(command.name);
  reply_.map(2U + (told.doc_flag.empty() ? 0U : 1U) + (part_count == 0 ? 0U : 1U));
  reply_.bulk("since");
  reply_.bulk(told.since);
  reply_.bulk("group");
  reply_.bulk(told.group);
  if (!told.doc_flag.empty()) {
    reply_.bulk("doc_flags");
    reply_.set(1);
    reply_.simple(told.doc_flag);
  }
  if (part_count == 0) {
    return;
  }
  reply_.bulk("subcommands");
  reply_.map(part_count);
  for (const CommandId id : command.subcommands) {
    if (is_part_shown(id)) {
      one_doc(redis::command(id));
    }
  }
}

void Composer::docs() {
  if (args_.size() == 2) {
    const auto is_top = [](const Command& one) { return !is_subcommand(one); };
    reply_.map(count(is_top));
    for (const Command& one : all_commands()) {
      if (is_top(one) && is_shown(one)) {
        one_doc(one);
      }
    }
    return;
  }
  const Args asked = args_.subspan(2);
  reply_.map(static_cast<std::uint64_t>(std::ranges::count_if(
      asked, [this](std::string_view name) { return find_shown(name) != nullptr; })));
  for (const std::string_view name : asked) {
    if (const Command* const found = find_shown(name); found != nullptr) {
      one_doc(*found);
    }
  }
}

void Composer::keys(bool with_flags) {
  const Args request = args_.subspan(2);
  const Resolution named = resolve(request);
  const Command& command = *named.command;
  if (named.state != Resolution::State::Known || !is_shown(command)) {
    reply_.error("ERR Invalid command specified");
    return;
  }
  const auto is_channel = [](const KeySpec& spec) { return (spec.access & kAccessNotKey) != 0; };
  if (std::ranges::all_of(command.key_specs, is_channel)) {
    reply_.error("ERR The command has no key arguments");
    return;
  }
  if (!has_good_count(command, static_cast<std::uint32_t>(request.size()))) {
    reply_.error("ERR Invalid number of arguments specified for command");
    return;
  }
  KeyPlaces places;
  const bool is_found = find_keys(command, request, places) == KeyOutcome::Found;
  if ((!is_found || places.is_empty()) && (command.flags & kNoMandatoryKeys) == 0) {
    reply_.error("ERR Invalid arguments specified for command");
    return;
  }
  reply_.array(is_found ? places.size() : 0);
  for (const KeyPlace& place : is_found ? places.all() : std::span<const KeyPlace>()) {
    if (with_flags) {
      reply_.array(2);
    }
    reply_.bulk(request[place.index]);
    if (with_flags) {
      names(place.access, kAccessNames, "");
    }
  }
}

void Composer::help() {
  reply_.array(kHelp.size());
  for (const std::string_view line : kHelp) {
    reply_.simple(line);
  }
}

void Composer::compose() {
  const std::string_view word = args_.size() < 2 ? "info" : args_[1];
  if (equal_letters(word, "info")) {
    info();
  } else if (equal_letters(word, "count")) {
    reply_.integer(
        static_cast<std::int64_t>(count([](const Command& one) { return !is_subcommand(one); })));
  } else if (equal_letters(word, "list")) {
    list();
  } else if (equal_letters(word, "docs")) {
    docs();
  } else if (equal_letters(word, "getkeys")) {
    keys(false);
  } else if (equal_letters(word, "getkeysandflags")) {
    keys(true);
  } else {
    help();
  }
}

}  // namespace

void compose_command_reply(std::span<const std::string_view> args, const CommandFilter& is_shown,
                           resp::ReplyWriter& reply) {
  Composer(args, is_shown, reply).compose();
}

}  // namespace kvferry::redis
