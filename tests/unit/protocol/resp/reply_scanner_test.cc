#include "protocol/resp/reply_scanner.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/splitter.h"

namespace kvferry::resp {
namespace {

using testing::ElementsAre;
using State = ReplyScanner::State;

/// The replies with their types, as "type size"; "bad" where no reply is, "more" for one that goes
/// on.
std::vector<std::string> scan(const test::Pieces& pieces) {
  ReplyScanner scanner;
  std::vector<std::string> told;
  std::size_t size = 0;
  for (std::string_view piece : pieces) {
    while (!piece.empty()) {
      const ReplyScanner::Scan found = scanner.scan(piece);
      size += found.taken_bytes;
      piece.remove_prefix(found.taken_bytes);
      if (found.state == State::Bad) {
        told.emplace_back("bad");
        return told;
      }
      if (found.state == State::End) {
        told.push_back(std::string(1, scanner.type()) + " " + std::to_string(size));
        size = 0;
      }
    }
  }
  if (!scanner.is_between()) {
    told.emplace_back("more");
  }
  return told;
}

void expect_for_all_cuts(std::string_view bytes, const std::vector<std::string>& told) {
  for (const test::Pieces& pieces : test::all_cuts(bytes)) {
    ASSERT_EQ(scan(pieces), told) << testing::PrintToString(bytes);
  }
}

TEST(ReplyScanner, FindsTheEndOfEveryType) {
  const std::string_view replies[] = {
      "+OK\r\n",
      "+\r\n",
      "-ERR bad\r\n",
      ":-12\r\n",
      "$0\r\n\r\n",
      "$3\r\n\r\n:\r\n",
      "$-1\r\n",
      "*0\r\n",
      "*-1\r\n",
      "*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
      "_\r\n",
      ",1.5\r\n",
      ",inf\r\n",
      "#t\r\n",
      "!5\r\nERR x\r\n",
      "=7\r\ntxt:abc\r\n",
      "(123456789012345678901234567890\r\n",
      "%1\r\n+a\r\n*2\r\n_\r\n#f\r\n",
      "%0\r\n",
      "~2\r\n:1\r\n:2\r\n",
      ">2\r\n+message\r\n$1\r\nx\r\n",
      "*3\r\n*0\r\n%0\r\n$-1\r\n",
  };
  std::string all;
  std::vector<std::string> told;
  for (const std::string_view reply : replies) {
    const std::string is = std::string(1, reply.front()) + " " + std::to_string(reply.size());
    expect_for_all_cuts(reply, {is});
    all += reply;
    told.push_back(is);
  }
  expect_for_all_cuts(all, told);
}

TEST(ReplyScanner, CountsAnAttributeToWhatItDescribes) {
  expect_for_all_cuts("|1\r\n+ttl\r\n:5\r\n$1\r\nx\r\n+OK\r\n", {"$ 21", "+ 5"});
  expect_for_all_cuts("*2\r\n|1\r\n+a\r\n|1\r\n+b\r\n:1\r\n:2\r\n:3\r\n:4\r\n", {"* 36"});
  expect_for_all_cuts("|0\r\n+OK\r\n", {"+ 9"});
  expect_for_all_cuts("|1\r\n+a\r\n+b\r\n", {"more"});
}

TEST(ReplyScanner, RefusesWhatIsNoReply) {
  for (const std::string_view bytes : {"x",
                                       "\r\n",
                                       "$x\r\n",
                                       "$\r\n",
                                       "$3\n",
                                       "$-2\r\n",
                                       "!-1\r\n",
                                       "*-2\r\n",
                                       "%-1\r\n",
                                       "~-1\r\n",
                                       "$01\r\n",
                                       "$3\r\nabcd\r\n",
                                       "$3\r\nabc\n\n",
                                       "+OK\n",
                                       "*2\r\n+a\r\n>1\r\n",
                                       "*2147483648\r\n",
                                       "%1073741824\r\n",
                                       "$?\r\n",
                                       "*?\r\n",
                                       "$9223372036854775808\r\n",
                                       "$00000000000000000000000\r\n"}) {
    expect_for_all_cuts(bytes, {"bad"});
  }
}

TEST(ReplyScanner, BoundsNestingAndLines) {
  std::string nested;
  for (std::size_t i = 0; i < kNestingMax; ++i) {
    nested += "*1\r\n";
  }
  EXPECT_THAT(scan({nested + "+x\r\n"}), ElementsAre("* " + std::to_string(nested.size() + 4)));
  EXPECT_THAT(scan({nested + "*1\r\n"}), ElementsAre("bad"));
  const std::string longest = "+" + std::string(kReplyLineBytesMax - 1, 'x') + "\r\n";
  EXPECT_THAT(scan({longest}), ElementsAre("+ " + std::to_string(longest.size())));
  const std::string too_long = "+" + std::string(kReplyLineBytesMax, 'x') + "\r\n";
  EXPECT_THAT(scan({too_long}), ElementsAre("bad"));
}

TEST(ReplyScanner, PassesLongStringsOnAsTheyCome) {
  ReplyScanner scanner;
  EXPECT_EQ(scanner.scan("$1000000000000\r\n").state, State::More);
  const std::string piece(1000, '\n');
  for (int i = 0; i < 10; ++i) {
    const ReplyScanner::Scan found = scanner.scan(piece);
    EXPECT_EQ(found.state, State::More);
    EXPECT_EQ(found.taken_bytes, piece.size());
  }
  EXPECT_FALSE(scanner.is_between());
  EXPECT_EQ(scanner.type(), '$');
}

}  // namespace
}  // namespace kvferry::resp
