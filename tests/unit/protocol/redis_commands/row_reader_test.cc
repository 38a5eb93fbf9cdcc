#include "protocol/redis_commands/row_reader.h"

#include <string>

#include <gtest/gtest.h>

#include "protocol/redis_commands/table_writer.h"

namespace kvferry::redis {
namespace {

const std::string kHead =
    "name,arity,flags,categories,first_key,last_key,key_step,key_specs,key_rule,group,since,"
    "doc_flag,tips,routing,merge,replica,retry,in_multi,gate,note\n";
const std::string kGet =
    "get,2,readonly fast,read string fast,1,1,1,index 1 range 0 1 0 RO "
    "access,one,string,1.0.0,,,single-key,one,yes,read,queued,-,\n";
const std::string kObject =
    "object,-2,,slow,0,0,0,,-,generic,2.2.3,,,local,local,no,no,refused,-,a note\n";
const std::string kObjectHelp =
    "object|help,2,loading stale,slow,0,0,0,,-,generic,2.2.3,,,local,local,no,no,refused,-,\n";

std::string error_of(const std::string& text) {
  std::string error;
  read_command_rows(text, error);
  return error;
}

/// kGet, in a file, with `from` replaced by `to`.
std::string error_with(const std::string& from, const std::string& to) {
  std::string row = kGet;
  row.replace(row.find(from), from.size(), to);
  return error_of(kHead + row);
}

TEST(RowReader, ReadsRows) {
  const std::string text = kHead + kGet + kObject + kObjectHelp;
  std::string error;
  const std::vector<CommandRow> rows = read_command_rows(text, error);
  EXPECT_EQ(error, "");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].command.name, "get");
  EXPECT_EQ(rows[0].command.flags, kReadonly | kFast);
  ASSERT_EQ(rows[0].key_specs.size(), 1U);
  EXPECT_EQ(rows[0].key_specs[0].begin_at, 1);
  EXPECT_EQ(rows[0].key_specs[0].access, kAccessRo | kAccessAccess);
  EXPECT_EQ(rows[1].note, "a note");
  EXPECT_EQ(rows[2].container(), "object");
  EXPECT_EQ(rows[2].word(), "help");
}

TEST(RowReader, SaysWhereAndWhatIsWrong) {
  EXPECT_EQ(error_of(""), "1: not the columns that are expected");
  EXPECT_EQ(error_of(kHead), "1: no commands");
  EXPECT_EQ(error_of(kHead + kGet + "x,1\n"), "3: row \"x\": has 2 fields, not 20");
  EXPECT_EQ(error_with(",2,", ",two,"), "2: arity \"two\": not a number from -100 to 100");
  EXPECT_EQ(error_with(",2,", ",101,"), "2: arity \"101\": not a number from -100 to 100");
  EXPECT_EQ(error_with("readonly fast", "fast readonly"),
            "2: flags \"readonly\": twice, or not in the order of command_names.h");
  EXPECT_EQ(error_with("readonly fast", "slow"), "2: flags \"slow\": no such word");
  EXPECT_EQ(error_with("get", "Get"),
            "2: name \"Get\": has other bytes than small letters, digits, _ and -");
  EXPECT_EQ(error_with("get", ""), "2: name \"\": a word of it is empty or too long");
  EXPECT_EQ(error_with("get", std::string(25, 'a')),
            "2: name \"" + std::string(25, 'a') + "\": a word of it is empty or too long");
  EXPECT_EQ(error_with("single-key", "one-key"), "2: routing \"one-key\": no such word");
  EXPECT_EQ(error_with("yes", "maybe"), "2: replica \"maybe\": no such word");
  EXPECT_EQ(error_with("readonly", "write"), "2: replica \"yes\": of a command that writes");
  EXPECT_EQ(error_with("index 1", "index 0"),
            "2: key_specs \"index 0 range 0 1 0 RO access\": begins at the name of the command or "
            "before it");
  EXPECT_EQ(error_with(" RO access", ""),
            "2: key_specs \"index 1 range 0 1 0\": does not say what becomes of the key");
  EXPECT_EQ(error_with("0 1 0", "0 0 0"), "2: key_specs \"range\": numbers that make no sense");
  EXPECT_EQ(error_with("index 1 range 0 1 0 RO access,one", ",-"),
            "2: routing \"single-key\": of a command without a key at a fixed place");
}

TEST(RowReader, WantsAKeyRuleThatFitsTheKeySpecs) {
  EXPECT_EQ(error_with(",one,", ",-,"), "2: key_rule \"-\": key_specs say something else");
  EXPECT_EQ(error_with("index 1 range 0 1 0 RO access,one", ",one"),
            "2: key_rule \"one\": key_specs say something else");
  EXPECT_EQ(error_with("range 0", "range 1"),
            "2: key_rule \"one\": key_specs do not begin with one key at a fixed place");
}

TEST(RowReader, WantsRowsInOrder) {
  EXPECT_EQ(error_of(kHead + kObject + kGet), "3: not in the order of names");
  EXPECT_EQ(error_of(kHead + kGet + kGet), "3: not in the order of names");
  EXPECT_EQ(error_of(kHead + kGet + kObjectHelp), "3: a subcommand without its container");
  EXPECT_EQ(error_of(kHead + kObjectHelp), "2: a subcommand without its container");
  EXPECT_EQ(error_of(kHead + kObject + kObjectHelp + kObjectHelp), "4: not in the order of names");
}

TEST(TableWriter, WritesEachRowOnce) {
  const std::string text = kHead + kGet + kObject + kObjectHelp;
  std::string error;
  const std::string source = compose_table(read_command_rows(text, error));
  EXPECT_NE(source.find("{.name = \"get\", .id = 0, .arity = 2"), std::string::npos);
  EXPECT_NE(source.find("{.name = \"object|help\", .id = 2"), std::string::npos);
  EXPECT_NE(source.find(".subcommands = std::span(kIds).subspan(2, 1)"), std::string::npos);
}

}  // namespace
}  // namespace kvferry::redis
