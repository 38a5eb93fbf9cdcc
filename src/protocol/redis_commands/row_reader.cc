#include "protocol/redis_commands/row_reader.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <span>
#include <system_error>

#include "protocol/redis_commands/command_names.h"
#include "protocol/redis_commands/packed_word.h"

namespace kvferry::redis {
namespace {

constexpr std::string_view kColumns =
    "name,arity,flags,categories,first_key,last_key,key_step,key_specs,key_rule,group,since,doc_"
    "flag,tips,"
    "routing,merge,replica,retry,"
    "in_multi,gate,note";
constexpr std::size_t kColumnCount = 20;
/// Words about the place before the access flags of a key spec with an index, a range and so on.
constexpr std::int32_t kPlaceMax = 100;

using Fields = std::array<std::string_view, kColumnCount>;

/// Cuts what is before `separator` off `text`; all of it when there is none.
std::string_view cut(std::string_view& text, std::string_view separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + separator.size());
  return part;
}

/// Reads one row; the first thing that is wrong stays in error().
class RowReader {
 public:
  CommandRow read(std::string_view line);
  const std::string& error() const noexcept { return error_; }

 private:
  void fail(std::string_view what, std::string_view value, std::string_view why);
  std::int8_t number(std::string_view what, std::string_view text);
  std::uint32_t bits(std::string_view what, std::string_view words,
                     std::span<const std::string_view> names);
  std::size_t place(std::string_view what, std::string_view word,
                    std::span<const std::string_view> names);
  bool yes_or_no(std::string_view what, std::string_view word, std::string_view yes,
                 std::string_view no);
  bool split(std::string_view line, Fields& fields);
  void check_name(std::string_view name);
  void check_key_rule(CommandRow& row);
  KeySpec read_key_spec(std::string_view text);
  void read_find(std::string_view& words, KeySpec& spec);

  std::string error_;
};

void RowReader::fail(std::string_view what, std::string_view value, std::string_view why) {
  if (error_.empty()) {
    error_.append(what).append(" \"").append(value).append("\": ").append(why);
  }
}

std::int8_t RowReader::number(std::string_view what, std::string_view text) {
  std::int32_t value = 0;
  const char* const end = text.data() + text.size();
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the end goes with it.
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc{} || stop != end || value < -kPlaceMax || value > kPlaceMax) {
    fail(what, text, "not a number from -100 to 100");
  }
  return static_cast<std::int8_t>(value);
}

std::uint32_t RowReader::bits(std::string_view what, std::string_view words,
                              std::span<const std::string_view> names) {
  std::uint32_t all = 0;
  while (!words.empty()) {
    const std::string_view word = cut(words, " ");
    const std::uint32_t bit = std::uint32_t{1} << place(what, word, names);
    if (bit <= all) {
      fail(what, word, "twice, or not in the order of command_names.h");
    }
    all |= bit;
  }
  return all;
}

std::size_t RowReader::place(std::string_view what, std::string_view word,
                             std::span<const std::string_view> names) {
  const std::optional<std::size_t> at = find_name(names, word);
  if (!at) {
    fail(what, word, "no such word");
  }
  return at.value_or(0);
}

bool RowReader::yes_or_no(std::string_view what, std::string_view word, std::string_view yes,
                          std::string_view no) {
  if (word != yes && word != no) {
    fail(what, word, "no such word");
  }
  return word == yes;
}

bool RowReader::split(std::string_view line, Fields& fields) {
  std::size_t count = 0;
  bool is_more = true;
  while (is_more) {
    is_more = line.find(',') != std::string_view::npos;
    const std::string_view field = cut(line, ",");
    if (count < fields.size()) {
      fields.at(count) = field;
    }
    ++count;
  }
  if (count != fields.size()) {
    fail("row", fields[0],
         "has " + std::to_string(count) + " fields, not " + std::to_string(kColumnCount));
  }
  return error_.empty();
}

void RowReader::check_name(std::string_view name) {
  std::string_view rest = name;
  const std::string_view first = cut(rest, "|");
  const bool is_sub = name.size() != first.size();
  for (const std::string_view word : {first, is_sub ? rest : first}) {
    if (word.empty() || word.size() > kWordBytesMax) {
      fail("name", name, "a word of it is empty or too long");
    }
    if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") !=
        std::string_view::npos) {
      fail("name", name, "has other bytes than small letters, digits, _ and -");
    }
  }
}

void RowReader::read_find(std::string_view& words, KeySpec& spec) {
  const std::string_view find = cut(words, " ");
  if (find == "unknown") {
    return;
  }
  const bool is_range = yes_or_no("key_specs", find, "range", "keynum");
  spec.find = is_range ? KeySpec::Find::Range : KeySpec::Find::KeyNum;
  spec.last = number("key_specs", cut(words, " "));
  std::int8_t second = number("key_specs", cut(words, " "));
  std::int8_t third = number("key_specs", cut(words, " "));
  // COMMAND INFO tells last, step, limit of a range, but place, first, step of a number of keys.
  spec.step = is_range ? second : third;
  spec.limit = is_range ? third : second;
  if (spec.step < 1 || spec.limit < 0 || (!is_range && spec.last < 0)) {
    fail("key_specs", find, "numbers that make no sense");
  }
}

KeySpec RowReader::read_key_spec(std::string_view text) {
  KeySpec spec;
  std::string_view words = text;
  const std::string_view begin = cut(words, " ");
  if (begin != "unknown") {
    const bool is_index = yes_or_no("key_specs", begin, "index", "keyword");
    spec.begin = is_index ? KeySpec::Begin::Index : KeySpec::Begin::Keyword;
    spec.keyword = is_index ? std::string_view() : cut(words, " ");
    spec.begin_at = number("key_specs", cut(words, " "));
    if (spec.begin_at == 0 || (is_index && spec.begin_at < 0)) {
      fail("key_specs", text, "begins at the name of the command or before it");
    }
  }
  read_find(words, spec);
  spec.access = static_cast<std::uint16_t>(bits("key_specs", words, kAccessNames));
  if (spec.access == 0) {
    fail("key_specs", text, "does not say what becomes of the key");
  }
  return spec;
}

/// Sets sole_key.
void RowReader::check_key_rule(CommandRow& row) {
  Command& command = row.command;
  const std::string_view name = kKeyRuleNames.at(static_cast<std::size_t>(command.key_rule));
  if (row.key_specs.empty() != (command.key_rule == KeyRule::None)) {
    fail("key_rule", name, "key_specs say something else");
    return;
  }
  if (command.key_rule != KeyRule::One && command.key_rule != KeyRule::Set &&
      command.key_rule != KeyRule::Bitfield) {
    return;
  }
  const KeySpec& spec = row.key_specs.front();
  if (spec.begin != KeySpec::Begin::Index || spec.find != KeySpec::Find::Range || spec.last != 0) {
    fail("key_rule", name, "key_specs do not begin with one key at a fixed place");
    return;
  }
  command.sole_key = static_cast<std::uint8_t>(spec.begin_at);
}

CommandRow RowReader::read(std::string_view line) {
  CommandRow row;
  Fields fields;
  if (!split(line, fields)) {
    return row;
  }
  const auto& [name, arity, flags, categories, first_key, last_key, key_step, key_specs, key_rule,
               group, since, doc_flag, tips, routing, merge, replica, retry, in_multi, gate, note] =
      fields;
  check_name(name);
  Command& command = row.command;
  command.name = name;
  command.arity = number("arity", arity);
  command.flags = bits("flags", flags, kFlagNames);
  command.categories = bits("categories", categories, kCategoryNames);
  command.first_key = number("first_key", first_key);
  command.last_key = number("last_key", last_key);
  command.key_step = number("key_step", key_step);
  for (std::string_view specs = key_specs; !specs.empty();) {
    row.key_specs.push_back(read_key_spec(cut(specs, "; ")));
  }
  command.key_rule = KeyRule{static_cast<std::uint8_t>(place("key_rule", key_rule, kKeyRuleNames))};
  check_key_rule(row);
  command.routing = Routing{static_cast<std::uint8_t>(place("routing", routing, kRoutingNames))};
  command.merge = Merge{static_cast<std::uint8_t>(place("merge", merge, kMergeNames))};
  command.retry = Retry{static_cast<std::uint8_t>(place("retry", retry, kRetryNames))};
  command.in_multi = InMulti{static_cast<std::uint8_t>(place("in_multi", in_multi, kInMultiNames))};
  command.may_ask_replica = yes_or_no("replica", replica, "yes", "no");
  command.is_gated = yes_or_no("gate", gate, "admin", "-");
  if (command.may_ask_replica && command.is_write()) {
    fail("replica", replica, "of a command that writes");
  }
  if (command.routing == Routing::SingleKey && command.sole_key == 0) {
    fail("routing", routing, "of a command without a key at a fixed place");
  }
  row.group = group;
  row.since = since;
  row.doc_flag = doc_flag;
  row.tips = tips;
  row.note = note;
  return row;
}

/// What is wrong with the place of `row` in the file.
std::string_view order_error(const std::vector<CommandRow>& rows, const CommandRow& row) {
  const std::string_view container = row.container();
  if (rows.empty()) {
    return container.empty() ? "" : "a subcommand without its container";
  }
  const CommandRow& before = rows.back();
  const std::string_view top =
      before.container().empty() ? before.command.name : before.container();
  if (container.empty()) {
    return top < row.command.name ? "" : "not in the order of names";
  }
  if (container != top) {
    return "a subcommand without its container";
  }
  return before.container().empty() || before.word() < row.word() ? ""
                                                                  : "not in the order of names";
}

}  // namespace

std::vector<CommandRow> read_command_rows(std::string_view text, std::string& error) {
  std::vector<CommandRow> rows;
  const auto fail = [&error](std::size_t line, std::string_view why) {
    error = std::to_string(line);
    error.append(": ").append(why);
  };
  if (cut(text, "\n") != kColumns) {
    fail(1, "not the columns that are expected");
    return rows;
  }
  for (std::size_t line = 2; !text.empty(); ++line) {
    RowReader reader;
    CommandRow row = reader.read(cut(text, "\n"));
    if (!reader.error().empty()) {
      fail(line, reader.error());
      return rows;
    }
    if (const std::string_view why = order_error(rows, row); !why.empty()) {
      fail(line, why);
      return rows;
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty()) {
    fail(1, "no commands");
  }
  return rows;
}

}  // namespace kvferry::redis
