#include "protocol/redis_commands/command_replies.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "protocol/redis_commands/command_errors.h"
#include "protocol/redis_commands/command_table.h"
#include "protocol/resp/reply_scanner.h"
#include "tests/unit/protocol/redis_commands/recorded.h"

namespace kvferry::redis {
namespace {

using resp::Version;

/// Shows the commands that the recorded server has.
class ServerCommands {
 public:
  ServerCommands() {
    for (const std::vector<std::string>& row : read_recorded_commands(KVF_TEST_DATA)) {
      names_.insert(row[0]);
    }
  }
  bool has(const Command& command) { return names_.contains(std::string(command.name)); }
  CommandFilter filter() { return CommandFilter::to<&ServerCommands::has>(this); }

 private:
  std::set<std::string> names_;
};

std::string ask(const std::vector<std::string>& words, Version version,
                const CommandFilter& filter) {
  const std::vector<std::string_view> args = views_of(words);
  std::string text;
  resp::ReplyWriter reply(version, text);
  std::string error;
  if (check_count(resolve(args), args, static_cast<std::uint32_t>(args.size()), error)) {
    compose_command_reply(args, filter, reply);
  } else {
    reply.error(error);
  }
  resp::ReplyScanner scanner;
  const resp::ReplyScanner::Scan found = scanner.scan(text);
  EXPECT_EQ(found.state, resp::ReplyScanner::State::End);
  EXPECT_EQ(found.taken_bytes, text.size());
  return text;
}

/// The lines of a reply, sorted: names of commands have no order.
std::vector<std::string> sorted_lines(std::string_view reply) {
  std::vector<std::string> lines;
  while (!reply.empty()) {
    const std::size_t end = std::min(reply.find("\r\n"), reply.size() - 2) + 2;
    lines.emplace_back(reply.substr(0, end));
    reply.remove_prefix(end);
  }
  std::ranges::sort(lines);
  return lines;
}

constexpr std::string_view kGetKeys = "command getkeysandflags ";

/// Where we find other keys than COMMAND GETKEYS does: those that the request reads and writes when
/// it is run.
const std::map<std::string, std::string>& other_keys() {
  static const std::map<std::string, std::string> kOther{
      // The last destination is the one that is written.
      {"georadius k 1 2 3 km store a store b", "k:RO,access a:OW,update b:OW,update"},
      {"georadius k 1 2 3 km store store store b", "k:RO,access store:OW,update b:OW,update"},
      // The first destination is called limit.
      {"sort a store limit store b", "a:RO,access b:OW,update"},
      // The group is called streams.
      {"xreadgroup count 1 group streams c streams a >", "a:RO,access"},
      // EVAL finds that these are no numbers of keys.
      {"eval s 4294967297 a", ""},
      {"eval s 01 a", ""},
      // Runs, and makes an empty value.
      {"pfmerge d", "d:RW,access,insert"}};
  return kOther;
}

/// "key:flag,flag key:flag" of a reply to COMMAND GETKEYSANDFLAGS, version 2.
std::string keys_text(std::string_view reply) {
  std::string text;
  for (std::string_view rest = reply; !rest.empty();) {
    const std::size_t end = rest.find("\r\n");
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    if (line.starts_with('$')) {
      const std::size_t size = std::stoul(std::string(line.substr(1)));
      text.append(text.empty() ? "" : " ").append(rest.substr(0, size)).append(":");
      rest.remove_prefix(size + 2);
    } else if (line.starts_with('+')) {
      text.append(text.ends_with(':') ? "" : ",").append(line.substr(1));
    }
  }
  return text;
}

TEST(CommandReplies, AreThoseOfTheServer) {
  ServerCommands commands;
  int count = 0;
  for (const RecordedReply& recorded : read_recorded_replies(KVF_TEST_DATA)) {
    if (!recorded.line.starts_with("command ")) {
      continue;
    }
    const std::string request =
        recorded.line.substr(std::min(kGetKeys.size(), recorded.line.size()));
    const auto other =
        recorded.line.starts_with(kGetKeys) ? other_keys().find(request) : other_keys().end();
    for (const Version version : {Version::Two, Version::Three}) {
      const std::string got = ask(recorded.words, version, commands.filter());
      const std::string& wanted =
          version == Version::Two ? recorded.version_two : recorded.version_three;
      if (recorded.line.starts_with("command list")) {
        EXPECT_EQ(sorted_lines(got), sorted_lines(wanted)) << recorded.line;
      } else if (other == other_keys().end()) {
        EXPECT_EQ(got, wanted) << recorded.line;
      } else {
        EXPECT_EQ(keys_text(got), other->second) << recorded.line;
        EXPECT_NE(got, wanted) << recorded.line << " is no exception";
      }
    }
    ++count;
  }
  EXPECT_GT(count, 200);
}

/// A reply of version 3, read.
struct Value {
  std::string text;           // Of a string or a number.
  std::vector<Value> values;  // Of an array, a set or a map.

  const Value& at(std::string_view name) const {
    for (std::size_t place = 0; place + 1 < values.size(); place += 2) {
      if (values[place].text == name) {
        return values[place + 1];
      }
    }
    static const Value kNone;
    return kNone;
  }
  std::string joined(std::string_view separator = " ") const {
    std::string all;
    for (const Value& value : values) {
      all.append(&value == values.data() ? "" : separator).append(value.text);
    }
    return all;
  }
};

Value read_value(std::string_view& rest) {
  const std::size_t end = rest.find("\r\n");
  const char type = rest.front();
  Value value{.text = std::string(rest.substr(1, end - 1)), .values = {}};
  rest.remove_prefix(end + 2);
  if (type == '$') {
    const std::size_t size = std::stoul(value.text);
    value.text = rest.substr(0, size);
    rest.remove_prefix(size + 2);
  } else if (type != '+' && type != ':') {
    EXPECT_NE(std::string_view("*~%").find(type), std::string_view::npos) << type;
    for (std::size_t left = std::stoul(value.text) * (type == '%' ? 2 : 1); left > 0; --left) {
      value.values.push_back(read_value(rest));
    }
    value.text.clear();
  }
  return value;
}

std::string key_spec_text(const Value& spec) {
  const Value& begin = spec.at("begin_search");
  const Value& find = spec.at("find_keys");
  std::string text = begin.at("type").text;
  for (std::size_t place = 1; place < begin.at("spec").values.size(); place += 2) {
    text.append(" ").append(begin.at("spec").values[place].text);
  }
  text.append(" ").append(find.at("type").text);
  for (const std::string_view name : {"lastkey", "keynumidx", "firstkey", "keystep", "limit"}) {
    const std::string& number = find.at("spec").at(name).text;
    text.append(number.empty() ? "" : " ").append(number);
  }
  return text.append(" ").append(spec.at("flags").joined());
}

/// What the rows of commands.txt say, from our own replies.
void add_rows(const Value& info, const Value& doc, std::vector<std::string>& rows) {
  const std::vector<Value>& parts = info.values;
  ASSERT_EQ(parts.size(), 10U);
  std::string row;
  for (const std::string& field :
       {parts[0].text, parts[1].text, parts[2].joined(), parts[6].joined(), parts[3].text,
        parts[4].text, parts[5].text}) {
    row.append(field).append(",");
  }
  for (const Value& spec : parts[8].values) {
    row.append(&spec == parts[8].values.data() ? "" : "; ").append(key_spec_text(spec));
  }
  row.append(",")
      .append(parts[7].joined())
      .append(",")
      .append(doc.at("group").text)
      .append(",")
      .append(doc.at("since").text);
  rows.push_back(row.append(",").append(doc.at("doc_flags").joined()));
  EXPECT_EQ(parts[9].values.size() * 2, doc.at("subcommands").values.size());
  for (const Value& part : parts[9].values) {
    add_rows(part, doc.at("subcommands").at(part.values[0].text), rows);
  }
}

TEST(CommandReplies, TellTheFactsOfTheServerOfEachCommand) {
  ServerCommands commands;
  const std::string infos = ask({"command"}, Version::Three, commands.filter());
  const std::string docs = ask({"command", "docs"}, Version::Three, commands.filter());
  EXPECT_EQ(ask({"COMMAND", "INFO"}, Version::Three, commands.filter()), infos);
  std::string_view rest = infos;
  const Value all_infos = read_value(rest);
  rest = docs;
  const Value all_docs = read_value(rest);
  std::vector<std::string> rows;
  for (const Value& info : all_infos.values) {
    add_rows(info, all_docs.at(info.values[0].text), rows);
  }
  std::vector<std::string> recorded;
  for (std::vector<std::string> fields : read_recorded_commands(KVF_TEST_DATA)) {
    std::string row = fields[0];
    for (std::size_t at = 1; at < 12; ++at) {
      row.append(",").append(fields[at]);
    }
    recorded.push_back(row);
  }
  EXPECT_EQ(rows, recorded);
  EXPECT_EQ(ask({"command", "count"}, Version::Two, commands.filter()), ":240\r\n");
}

/// Hides one command and one subcommand.
struct Hiding {
  bool is_shown(const Command& command) {
    return command.name != "get" && command.name != "client|list";
  }
};

TEST(CommandReplies, SayNothingOfWhatIsHidden) {
  Hiding hiding;
  const CommandFilter filter = CommandFilter::to<&Hiding::is_shown>(&hiding);
  const auto lines = [](const std::string& reply) { return sorted_lines(reply); };
  const auto has = [&](const std::string& reply, const std::string& line) {
    return std::ranges::count(lines(reply), line + "\r\n");
  };
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"command"},
                                             {"command", "docs"},
                                             {"command", "list"},
                                             {"command", "list", "filterby", "pattern", "*"}}) {
    const std::string reply = ask(words, Version::Three, filter);
    EXPECT_EQ(has(reply, "get"), 0) << words.back();
    EXPECT_EQ(has(reply, "client|list"), 0) << words.back();
    EXPECT_EQ(has(reply, "client|id"), 1) << words.back();
  }
  EXPECT_EQ(ask({"command", "info", "get", "client|list"}, Version::Three, filter),
            "*2\r\n_\r\n_\r\n");
  EXPECT_EQ(ask({"command", "docs", "get", "client|list"}, Version::Two, filter), "*0\r\n");
  EXPECT_EQ(ask({"command", "getkeys", "get", "a"}, Version::Two, filter),
            "-ERR Invalid command specified\r\n");
  EXPECT_EQ(ask({"command", "count"}, Version::Two, filter), ":" + std::to_string(257) + "\r\n");
}

TEST(CommandReplies, TellOfAllCommandsWithoutAFilter) {
  EXPECT_EQ(ask({"command", "count"}, Version::Two, {}), ":258\r\n");
  EXPECT_EQ(
      ask({"command", "docs", "hexpire"}, Version::Two, {}),
      "*2\r\n$7\r\nhexpire\r\n*4\r\n$5\r\nsince\r\n$5\r\n7.4.0\r\n$5\r\ngroup\r\n$4\r\nhash\r\n");
  EXPECT_EQ(ask({"command", "docs", "SUBSTR"}, Version::Three, {}),
            "%1\r\n$6\r\nsubstr\r\n%3\r\n$5\r\nsince\r\n$5\r\n1.0.0\r\n$5\r\ngroup\r\n$"
            "6\r\nstring\r\n$9\r\ndoc_flags\r\n~1\r\n"
            "+deprecated\r\n");
}

TEST(CommandReplies, HelpIsAnArrayOfSimpleStrings) {
  const std::string reply = ask({"command", "help"}, Version::Two, {});
  EXPECT_TRUE(reply.starts_with("*9\r\n+COMMAND <subcommand> ")) << reply;
}

}  // namespace
}  // namespace kvferry::redis
