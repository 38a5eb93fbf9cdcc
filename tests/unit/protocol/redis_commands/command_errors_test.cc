#include "protocol/redis_commands/command_errors.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "protocol/redis_commands/command_table.h"
#include "protocol/redis_commands/key_places.h"
#include "protocol/resp/reply_writer.h"
#include "tests/unit/protocol/redis_commands/recorded.h"

namespace kvferry::redis {
namespace {

/// The line that says what is wrong with a request before it runs; empty when nothing is.
std::string error_line(std::span<const std::string_view> args) {
  const Resolution named = resolve(args);
  const auto count = static_cast<std::uint32_t>(args.size());
  std::string text;
  if (named.state == Resolution::State::UnknownCommand) {
    append_unknown_command(args, text);
  } else if (check_count(named, args, count, text)) {
    KeyPlaces places;
    text = key_error(*named.command, find_keys(*named.command, args, places));
  }
  std::string line;
  if (!text.empty()) {
    resp::ReplyWriter(resp::Version::Two, line).error(text);
  }
  return line;
}

TEST(CommandErrors, AreThoseOfTheServer) {
  int count = 0;
  for (const RecordedReply& recorded : read_recorded_replies(KVF_TEST_DATA)) {
    if (!recorded.line.starts_with("command get") && recorded.version_two.starts_with('-')) {
      const std::string got = error_line(views_of(recorded.words));
      if (!got.empty() || !recorded.line.starts_with("command list")) {
        EXPECT_EQ(got, recorded.version_two) << recorded.line;
      }
      ++count;
    }
  }
  EXPECT_GT(count, 40);
}

TEST(CommandErrors, AboutCountsAreThoseOfTheServerForEachCommand) {
  int count = 0;
  for (const std::vector<std::string>& row : read_recorded_commands(KVF_TEST_DATA)) {
    ASSERT_EQ(row.size(), 14U) << row[0];
    const Command* const named = find_full_name(row[0]);
    ASSERT_NE(named, nullptr) << row[0];
    const auto right = static_cast<std::uint32_t>(named->arity < 0 ? -named->arity : named->arity);
    EXPECT_TRUE(has_good_count(*named, right)) << row[0];
    EXPECT_EQ(has_good_count(*named, right + 1), named->arity < 0) << row[0];
    EXPECT_FALSE(has_good_count(*named, right - 1)) << row[0];
    std::string text = "-";
    append_wrong_count(*named, text);
    for (const std::string& recorded : {row[12], row[13]}) {
      if (recorded != "-") {
        EXPECT_EQ(text, recorded);
        ++count;
      }
    }
    EXPECT_EQ(row[13] == "-", named->arity < 0) << row[0];
  }
  EXPECT_GT(count, 400);
}

TEST(CommandErrors, LeaveOutWhatHasNotCome) {
  constexpr std::array<std::string_view, 1> kArgs{"client"};
  std::string text;
  EXPECT_FALSE(check_count(resolve(kArgs, 2), kArgs, 2, text));
  EXPECT_EQ(text, "ERR unknown subcommand ''. Try CLIENT HELP.");
  text.clear();
  append_unknown_command({}, text);
  EXPECT_EQ(text, "ERR unknown command '', with args beginning with: ");
}

TEST(CommandErrors, LetAnyCountOfAnUnknownCommandPass) {
  constexpr std::array<std::string_view, 3> kArgs{"foo", "a", "b"};
  std::string text;
  EXPECT_TRUE(check_count(resolve(kArgs), kArgs, 3, text));
  EXPECT_TRUE(has_good_count(unknown_command(), 1));
  EXPECT_EQ(text, "");
}

TEST(CommandErrors, AFunctionHasAWordOfItsOwnForABadNumberOfKeys) {
  const Command& fcall = *find_command("fcall");
  EXPECT_EQ(key_error(fcall, KeyOutcome::BadCount), "ERR Bad number of keys provided");
  EXPECT_EQ(key_error(fcall, KeyOutcome::CountNegative), "ERR Number of keys can't be negative");
  EXPECT_EQ(key_error(fcall, KeyOutcome::Refused), "");
}

}  // namespace
}  // namespace kvferry::redis
