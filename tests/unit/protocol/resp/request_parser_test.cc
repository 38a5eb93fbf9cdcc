#include "protocol/resp/request_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/protocol/resp/run_feeder.h"

namespace kvferry::resp {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

struct Row {
  std::string bytes;
  std::vector<std::string> told;
};

void expect_for_all_cuts(const Row& row, const ParserLimits& limits = {}) {
  for (const test::Pieces& pieces : test::all_cuts(row.bytes)) {
    ASSERT_EQ(tell(pieces, limits), row.told)
        << testing::PrintToString(row.bytes) << " first piece " << pieces.front().size();
  }
}

TEST(RespRequestParser, CutsRequestsOutOfAnyPieces) {
  const Row rows[] = {
      {"*1\r\n$4\r\nPING\r\n", {"PING"}},
      {"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nab\r\n*2\r\n$3\r\nget\r\n$1\r\nk\r\n",
       {"SET|k|ab", "get|k"}},
      {"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\n\r\n\r\n\r\n", {"SET||\r\n\r\n"}},
      // Nothing was asked for.
      {"*0\r\n*-1\r\n*-5\r\n\r\n\n   \r\n*1\r\n$4\r\nPING\r\n", {"PING"}},
      {"PING\r\nping \n  set  'a b' \"\\x41\"\r\n*1\r\n$4\r\nPING\r\n",
       {"PING", "ping", "set|a b|A", "PING"}},
      // Types of replies are no requests: each line is one.
      {"~1\r\n$1\r\n", {"~1", "$1"}},
  };
  for (const Row& row : rows) {
    expect_for_all_cuts(row);
  }
}

TEST(RespRequestParser, RefusesWhatHasNoFrame) {
  const std::string error = "-ERR Protocol error: ";
  const Row rows[] = {
      {"*x\r\n", {error + "invalid multibulk length"}},
      {"*\r\n", {error + "invalid multibulk length"}},
      {"*02\r\n", {error + "invalid multibulk length"}},
      {"*1\n", {error + "invalid multibulk length"}},
      {"*1 \r\n", {error + "invalid multibulk length"}},
      {"*1048577\r\n", {error + "invalid multibulk length"}},
      {"*9999999999\r\n", {error + "invalid multibulk length"}},
      {"*1\r\n:1\r\n", {error + "expected '$', got ':'"}},
      {"*1\r\n\r\n", {error + "expected '$', got ' '"}},
      {"*1\r\n$\r\n", {error + "invalid bulk length"}},
      {"*1\r\n$-1\r\n", {error + "invalid bulk length"}},
      {"*1\r\n$03\r\nabc\r\n", {error + "invalid bulk length"}},
      {"*1\r\n$536870913\r\n", {error + "invalid bulk length"}},
      {"*1\r\n$3\r\nabcd\r\n", {error + "expected CRLF after bulk"}},
      {"*1\r\n$3\r\nabc\n\n", {error + "expected CRLF after bulk"}},
      {"get \"k\r\n", {error + "unbalanced quotes in request"}},
      {"POST / HTTP/1.1\r\n", {"closed"}},
      {"HOST: localhost\r\n", {"closed"}},
  };
  for (const Row& row : rows) {
    expect_for_all_cuts({row.bytes + "PING\r\n", row.told});
    // What came before was asked for.
    std::vector<std::string> told = {"a|b"};
    told.insert(told.end(), row.told.begin(), row.told.end());
    expect_for_all_cuts({"*2\r\n$1\r\na\r\n$1\r\nb\r\n" + row.bytes, told});
  }
}

TEST(RespRequestParser, BoundsLines) {
  const std::string error = "-ERR Protocol error: ";
  const auto last_told = [](const std::string& bytes) {
    // One line that comes whole, one that never ends, and pieces.
    const std::vector<std::string> whole = tell({bytes + "\r\n"});
    EXPECT_EQ(tell({bytes}), whole);
    EXPECT_EQ(tell(test::cut_in_two(bytes, bytes.size() - 1)), whole);
    return whole.empty() ? "" : whole.back();
  };
  const std::string zeros(kLineBytesMax, '0');
  EXPECT_EQ(last_told("*" + zeros), error + "too big mbulk count string");
  EXPECT_EQ(last_told("*1\r\n$" + zeros), error + "too big bulk count string");
  EXPECT_EQ(last_told("x" + zeros), error + "too big inline request");
  EXPECT_THAT(tell({zeros.substr(1) + "\n"}), ElementsAre(zeros.substr(1)));
}

TEST(RespRequestParser, KnowsWhoHasNotAuthenticated) {
  const ParserLimits limits{.is_client_known = false};
  const std::string error = "-ERR Protocol error: ";
  EXPECT_THAT(tell({"*11\r\n"}, limits), ElementsAre(error + "unauthenticated multibulk length"));
  EXPECT_THAT(tell({"*1\r\n$16385\r\n"}, limits),
              ElementsAre(error + "unauthenticated bulk length"));
  EXPECT_THAT(tell({"*10\r\n$16384\r\n"}, limits), IsEmpty());
  RunFeeder feeder(limits);
  feeder.feed("*1\r\n$4\r\nAUTH\r\n");
  feeder.parser().set_client_known(true);
  feeder.feed("*11\r\n$16385\r\n");
  EXPECT_THAT(feeder.told(), ElementsAre("AUTH"));
}

TEST(RespRequestParser, DoesNotWaitForLongArguments) {
  const ParserLimits limits{.bulk_bytes_max = 100, .stream_bytes_min = 5};
  const Row rows[] = {
      {"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\n12345\r\n*1\r\n$1\r\nx\r\n", {"SET|k|<5>", "x"}},
      {"*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$6\r\n\r\n\r\n\r\n\r\n$2\r\nNX\r\n*1\r\n$1\r\nx\r\n",
       {"SET|k|<6>|...", "...|NX", "x"}},
      {"*3\r\n$5\r\n12345\r\n$5\r\n12345\r\n$5\r\n12345\r\n",
       {"<5>|...", "...|<5>|...", "...|<5>"}},
      {"*2\r\n$4\r\nECHO\r\n$101\r\n", {"-ERR Protocol error: invalid bulk length"}},
      // Inline requests are whole.
      {"echo 123456\r\n", {"echo|123456"}},
  };
  for (const Row& row : rows) {
    expect_for_all_cuts(row, limits);
  }
}

TEST(RespRequestParser, LooksAtBytesOnce) {
  std::string bytes = "*1000\r\n";
  for (int i = 0; i < 1000; ++i) {
    bytes += "$3\r\nabc\r\n";
  }
  RunFeeder feeder{ParserLimits{}};
  for (const std::string_view piece : test::cut_to_bytes(bytes)) {
    feeder.feed(piece);
  }
  ASSERT_THAT(feeder.told(), SizeIs(1));
  EXPECT_LE(feeder.parser().scanned_bytes_for_test(), bytes.size());
}

TEST(RespRequestParser, TellsWhatARunIsOf) {
  RequestParser parser(ParserLimits{.stream_bytes_min = 4});
  const std::string bytes = "*4\r\n$1\r\na\r\n$1\r\nb\r\n$9\r\n";
  const auto first = parser.parse(bytes + "streamed!\r\n$1\r\nc\r\n");
  ASSERT_TRUE(first.is_done());
  EXPECT_TRUE(first.value().is_first() && !first.value().is_last());
  EXPECT_EQ(first.value().arg_count, 4U);
  EXPECT_EQ(first.value().size_bytes, bytes.size());
  EXPECT_EQ(first.value().streamed_bytes, 9U);
  const std::string rest = "$1\r\nc\r\n";
  const auto second = parser.parse(rest);
  ASSERT_TRUE(second.is_done());
  EXPECT_TRUE(!second.value().is_first() && second.value().is_last());
  EXPECT_EQ(second.value().first_index, 3U);
  EXPECT_THAT(second.value().args, ElementsAre("c"));
  EXPECT_EQ(second.value().size_bytes, rest.size());
}

/// A request with a long argument in its middle, and one behind it.
std::string long_request() {
  return "*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$100\r\n" + std::string(100, 'v') +
         "\r\n$7\r\nKEEPTTL\r\n*1\r\n$4\r\nPING\r\n";
}

TEST(RespRequestParser, GathersARequestThatNobodyTakesInPieces) {
  const std::string bytes = long_request();
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    RequestParser parser({.stream_bytes_min = 50});
    bool is_gathered = false;
    std::size_t length = cut;
    RequestParser::Outcome parsed = parser.parse(std::string_view(bytes).substr(0, length));
    while (parsed.is_need_more() || parsed.value().streamed_bytes != 0) {
      if (parsed.is_done()) {
        ASSERT_FALSE(is_gathered);
        is_gathered = true;
        parser.gather();
      } else {
        length = bytes.size();
      }
      parsed = parser.parse(std::string_view(bytes).substr(0, length));
    }
    ASSERT_THAT(parsed.value().args, ElementsAre("SET", "k", std::string(100, 'v'), "KEEPTTL"))
        << cut;
    const auto next = parser.parse(std::string_view(bytes).substr(parsed.value().size_bytes));
    ASSERT_TRUE(next.is_done());
    ASSERT_THAT(next.value().args, ElementsAre("PING"));
  }
}

TEST(RespRequestParser, GathersOneRequestOnly) {
  const std::string bytes = long_request();
  RequestParser parser({.stream_bytes_min = 50});
  ASSERT_EQ(parser.parse(bytes).value().streamed_bytes, 100U);
  parser.gather();
  const std::size_t size_bytes = parser.parse(bytes).value().size_bytes;
  ASSERT_TRUE(parser.parse(std::string_view(bytes).substr(size_bytes)).is_done());
  EXPECT_EQ(parser.parse(bytes).value().streamed_bytes, 100U);
}

TEST(RespRequestParser, RewindsToTheBeginOfARequest) {
  const std::string bytes = long_request();
  RequestParser parser({.stream_bytes_min = 50});
  ASSERT_EQ(parser.parse(bytes).value().streamed_bytes, 100U);
  parser.rewind();
  const auto again = parser.parse(bytes);
  EXPECT_EQ(again.value().streamed_bytes, 100U);
  EXPECT_THAT(again.value().args, ElementsAre("SET", "k"));

  // In the middle of a request that has not come whole, too.
  RequestParser other({});
  ASSERT_TRUE(other.parse("*2\r\n$3\r\nGET\r\n$5\r\nab").is_need_more());
  other.rewind();
  EXPECT_THAT(other.parse("*2\r\n$3\r\nGET\r\n$1\r\na\r\n").value().args, ElementsAre("GET", "a"));
}

}  // namespace
}  // namespace kvferry::resp
