#include "protocol/memcache/request_parser.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/protocol/memcache/request_feeder.h"

namespace kvferry::memcache {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

struct Conversation {
  std::string bytes;
  std::vector<std::string> told;
};

const std::string kLongestKey(kKeyBytesMax, 'k');
const std::string kTooLongKey(kKeyBytesMax + 1, 'k');

std::vector<Conversation> conversations() {
  return {
      // Each command, with the blanks that clients put behind their lines.
      {"get a\r\n", {"get a"}},
      {"get   a   b  \r\ngets a\n", {"get a b", "gets a"}},
      {"gat 0 a b\r\ngats -1 a \r\n", {"gat a b", "gats a"}},
      {"set k 1 0 3 \r\nabc\r\n", {"set k =abc"}},
      {"add k 1 0 0\r\n\r\nreplace k 1 0 2\r\n\r\n\r\n", {"add k =", "replace k =\r\n"}},
      {"append k 0 0 1 noreply\r\nx\r\nprepend k 0 0 1 noreply \r\ny\r\n",
       {"append k noreply =x", "prepend k noreply =y"}},
      {"cas k 0 0 1 77\r\nx\r\ncas k 0 0 1 77 noreply\nx\r\n", {"cas k =x", "cas k noreply =x"}},
      {"incr k 1\r\ndecr k 2 noreply\r\n", {"incr k", "decr k noreply"}},
      {"touch k 0\r\ndelete k \r\ndelete k 0 noreply\r\n",
       {"touch k", "delete k", "delete k noreply"}},
      {"mg k\r\nmg k v q\r\nmg Zm9v b q\r\n", {"mg k", "mg k quiet", "mg Zm9v quiet base64"}},
      {"ms k 2 T0 q\nhi\r\nms k 0\r\n\r\n", {"ms k quiet =hi", "ms k ="}},
      {"md k  Oq Ib\r\nma k q\r\nme k\r\n", {"md k", "ma k quiet", "me k"}},
      {"mn\r\nmn\nmn and words\r\n", {"mn", "mn", "mn"}},
      {"version\r\nquit now\r\nstats items\r\nwatch\r\n", {"version", "quit", "stats", "watch"}},
      {"flush_all 0 noreply\r\nverbosity 1\r\nslabs x\r\nlru x\r\nlru_crawler x\r\n",
       {"flush_all noreply", "verbosity", "slabs", "lru", "lru_crawler"}},
      {"cache_memlimit 64\r\nshutdown\r\nextstore x\r\nrefresh_certs\r\n",
       {"cache_memlimit", "shutdown", "extstore", "refresh_certs"}},
      {"debugtime p\r\ndebugitem\r\nmisbehave\r\n", {"debugtime", "debugitem", "misbehave"}},

      // noreply is the last word only; elsewhere it is a word like others.
      {"set noreply 0 0 1\r\n1\r\nget noreply\r\ndelete noreply\r\n",
       {"set noreply =1", "get noreply", "delete noreply noreply"}},
      {"set k 0 0 1 xnoreply\r\n1\r\nset k 0 0 1 noreply x\r\n1\r\n", {"set k =1", "set k =1"}},
      // A tab is part of a word; control bytes may stand in a key.
      {"set k\x01\x7f\xff\t 0 0 1\r\nv\r\n", {"set k\x01\x7f\xff\t =v"}},
      {"get\tk\r\n get k\r\nGET k\r\n", {"ERROR", "ERROR", "ERROR"}},

      // Too few words.
      {"get\r\nget \r\ngat 0\r\ngat\r\nmg\r\nms k\r\nme \r\n",
       std::vector<std::string>(7, "CLIENT_ERROR parsing request")},
      {"set k 0 0\r\nincr k\r\ndecr\r\ntouch k\r\ndelete\r\n\r\n\nxx\n",
       std::vector<std::string>(8, "CLIENT_ERROR parsing request")},

      // A value whose length is readable is skipped, whatever else is wrong with the line.
      {"set " + kTooLongKey + " 0 0 4 noreply\r\nmn\r\n\r\nmn\r\n",
       {"CLIENT_ERROR key too long (noreply)", "mn"}},
      {"ms " + kTooLongKey + " 4\r\nmn\r\n\r\nmn\r\n", {"CLIENT_ERROR key too long", "mn"}},
      {"ms k 4 !x\r\nmn\r\n\r\nmn\r\n", {"CLIENT_ERROR parsing request", "mn"}},
      {"set k 0 0 -1\r\nmn\r\nset k 0 0 1x\r\nmn\r\nms k abc\r\nmn\r\n",
       {"CLIENT_ERROR parsing request", "mn", "CLIENT_ERROR parsing request", "mn",
        "CLIENT_ERROR parsing request", "mn"}},
      {"set k 0 0 2147483646\r\nmn\r\nset k 0 0 99999999999999999999999\r\nmn\r\n",
       {"CLIENT_ERROR parsing request", "mn", "CLIENT_ERROR parsing request", "mn"}},
      {"set k 0 0 000000000000000000000001\r\nx\r\n", {"set k =x"}},

      // What follows the announced length and two bytes more is read as commands.
      {"set k 0 0 3\r\nabcde\r\nmn\r\n",
       {"CLIENT_ERROR bad data chunk", "CLIENT_ERROR parsing request", "mn"}},
      {"set k 0 0 1 noreply\nv\n\nmn\r\n", {"CLIENT_ERROR bad data chunk (noreply)", "mn"}},
      {"set k 0 0 1\r\nv\r\rmn\r\n", {"CLIENT_ERROR bad data chunk", "mn"}},

      // Out of step for good.
      {"GET / HTTP/1.1\r\nmn\r\n", {"closed"}},
      {"POST /x HTTP/1.0 \r\nmn\r\n", {"closed"}},
      {"\x80\x0b\r\nmn\r\n", {"closed"}},
      {"get HTTP/1.1\r\n", {"get HTTP/1.1"}},
  };
}

TEST(RequestParser, TellsTheSameHoweverBytesAreCut) {
  for (const Conversation& conversation : conversations()) {
    for (const test::Pieces& pieces : test::all_cuts(conversation.bytes)) {
      EXPECT_THAT(tell(pieces), ElementsAreArray(conversation.told)) << conversation.bytes;
    }
  }
}

TEST(RequestParser, AcceptsKeysOf250BytesAndRefusesOneMore) {
  const std::vector<std::string> before = {"get ", "get a ", "gats 0 ", "mg ",
                                           "md ",  "ma ",    "me ",     "delete "};
  for (const std::string& head : before) {
    EXPECT_THAT(tell({head + kLongestKey + "\r\n"}), ElementsAre(::testing::EndsWith("kkk")));
    EXPECT_THAT(tell({head + kTooLongKey + "\r\n"}), ElementsAre("CLIENT_ERROR key too long"));
  }
  EXPECT_THAT(tell({"incr " + kTooLongKey + " 1\r\ntouch " + kTooLongKey + " 0\r\n"}),
              ElementsAre("CLIENT_ERROR key too long", "CLIENT_ERROR key too long"));
  EXPECT_THAT(tell({"set " + kLongestKey + " 0 0 1\r\nx\r\nms " + kLongestKey + " 1\r\nx\r\n"}),
              ElementsAre("set " + kLongestKey + " =x", "ms " + kLongestKey + " =x"));
}

TEST(RequestParser, AcceptsTwentyWordsInAMetaLineAndRefusesOneMore) {
  const std::string twenty = "mg k v s f O1 k h u P1 L2 M1 D1 J1 E1 F1 I x C9 R1";
  EXPECT_THAT(tell({twenty + "\r\n"}), ElementsAre("mg k"));
  EXPECT_THAT(tell({twenty + " q\r\n"}), ElementsAre("CLIENT_ERROR options flags are too long"));
  const std::string with_value = "ms k 2 s f O1 k h u P1 L2 M1 D1 J1 E1 F1 I x C9 R1";
  EXPECT_THAT(tell({with_value + "\r\nhi\r\n"}), ElementsAre("ms k =hi"));
  EXPECT_THAT(tell({with_value + " q\r\nhi\r\nmn\r\n"}),
              ElementsAre("CLIENT_ERROR options flags are too long", "mn"));
}

/// A line of exactly `bytes` bytes, its line end included.
std::string line_of(std::string head, std::size_t bytes) {
  head.resize(bytes - 2, 'x');
  return head + "\r\n";
}

TEST(RequestParser, AcceptsLinesOf2048BytesAndSkipsLongerOnes) {
  const ParserLimits limits;
  for (const std::size_t bytes : {kLineBytesMax - 1, kLineBytesMax}) {
    EXPECT_THAT(tell({line_of("mg k O", bytes)}), ElementsAre("mg k"));
    EXPECT_THAT(tell(test::cut_to_bytes(line_of("mg k O", bytes))), ElementsAre("mg k"));
  }
  for (const std::size_t bytes : {kLineBytesMax + 1, kLineBytesMax + 2, std::size_t{5000}}) {
    const std::string whole = line_of("mg k O", bytes) + "mn\r\n";
    EXPECT_THAT(tell({whole}), ElementsAre("CLIENT_ERROR line too long", "mn"));
    EXPECT_THAT(tell(test::cut_to_bytes(whole)), ElementsAre("CLIENT_ERROR line too long", "mn"));
    for (std::size_t at = kLineBytesMax - 3; at < kLineBytesMax + 3; ++at) {
      EXPECT_THAT(tell(test::cut_in_two(whole, at)),
                  ElementsAre("CLIENT_ERROR line too long", "mn"));
    }
  }
}

TEST(RequestParser, ClosesOnLongLinesWhereAsked) {
  const ParserLimits limits{.close_on_long_line = true};
  const std::string longest = line_of("mg k O", kLineBytesMax);
  const std::string too_long = line_of("mg k O", kLineBytesMax + 1);
  EXPECT_THAT(tell({longest}, limits), ElementsAre("mg k"));
  EXPECT_THAT(tell({too_long}, limits), ElementsAre("closed"));
  EXPECT_THAT(tell(test::cut_to_bytes(too_long), limits), ElementsAre("closed"));
  EXPECT_THAT(tell({std::string(kLineBytesMax - 1, 'x')}, limits), ElementsAre());
  EXPECT_THAT(tell({std::string(kLineBytesMax, 'x')}, limits), ElementsAre("closed"));
}

TEST(RequestParser, LetsGetLinesBeLonger) {
  for (const std::string head : {"get", "gets", "gat 0", "gats 0"}) {
    std::string line = head;
    for (int count = 0; count < 1000; ++count) {
      line += " key:" + std::to_string(count);
    }
    RequestParser parser{ParserLimits{}};
    ASSERT_TRUE(parser.parse(line).is_need_more());
    line += "\r\n";
    const auto parsed = parser.parse(line);
    ASSERT_TRUE(parsed.is_done());
    EXPECT_EQ(parsed.value().key_count, 1000U);
    EXPECT_EQ(parsed.value().size_bytes, line.size());
  }
}

TEST(RequestParser, RefusesAnExptimeThatIsNoNumberForItsLength) {
  const std::string longest(kExptimeBytesMax, '0');
  EXPECT_THAT(tell({"gat " + longest + " k\r\ngat " + longest + "0 k\r\nmn\r\n"}),
              ElementsAre("gat k", "CLIENT_ERROR parsing request", "mn"));
}

TEST(RequestParser, RefusesGetLinesOverTheirOwnLimit) {
  std::string line = "get k";
  line.resize(kGetLineBytesMax - 2, ' ');
  EXPECT_THAT(tell({line + "\r\n"}), ElementsAre("get k"));
  EXPECT_THAT(tell({line + " \r\nmn\r\n"}), ElementsAre("CLIENT_ERROR line too long", "mn"));
}

TEST(RequestParser, SkipsValuesOverTheLimitAndKeepsTheKey) {
  const ParserLimits limits{.value_bytes_max = 4};
  EXPECT_THAT(tell({"set k 0 0 4\r\nabcd\r\n"}, limits), ElementsAre("set k =abcd"));
  const std::string whole = "set k 0 0 5 noreply\r\nmn\r\nx\r\nms k 5 q\r\nmn\r\nx\r\nmn\r\n";
  for (const test::Pieces& pieces : test::all_cuts(whole)) {
    EXPECT_THAT(tell(pieces, limits),
                ElementsAre("SERVER_ERROR object too large for cache (noreply)",
                            "SERVER_ERROR object too large for cache", "mn"));
  }
  RequestParser parser(limits);
  const auto parsed = parser.parse("cas key 0 0 5 1\r\n");
  ASSERT_TRUE(parsed.is_failed());
  EXPECT_EQ(parsed.error().key, "key");
  EXPECT_EQ(parsed.error().command, Command::Cas);
  EXPECT_EQ(parsed.error().size_bytes, 17U);
  EXPECT_EQ(parsed.error().skip_bytes, 7U);
}

TEST(RequestParser, ReportsTheHeadOfValuesAboveTheStreamingThreshold) {
  const ParserLimits limits{.stream_bytes_min = 4};
  const std::string whole = "set k 0 0 4\r\nabcd\r\nset k 0 0 5\r\nabcde\r\nms k 5 q\r\n12345\r\n";
  for (const test::Pieces& pieces : test::all_cuts(whole)) {
    EXPECT_THAT(tell(pieces, limits),
                ElementsAre("set k =abcd", "set k streamed 5", "ms k quiet streamed 5"));
  }
}

TEST(RequestParser, NeedsMoreAtEveryShorterPrefix) {
  for (const std::string& whole :
       {std::string("mg user:42 v t\r\n"), std::string("set k 0 0 3\r\nabc\r\n")}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      RequestParser parser{ParserLimits{}};
      EXPECT_TRUE(parser.parse(std::string_view(whole).substr(0, size)).is_need_more()) << size;
    }
  }
}

TEST(RequestParser, KnowsHowManyBytesItNeedsOnceTheLineIsThere) {
  RequestParser parser{ParserLimits{}};
  ASSERT_TRUE(parser.parse("set k 0 0 3\r").is_need_more());
  EXPECT_EQ(parser.needed_bytes(), 0U);
  ASSERT_TRUE(parser.parse("set k 0 0 3\r\n").is_need_more());
  EXPECT_EQ(parser.needed_bytes(), 18U);
  ASSERT_TRUE(parser.parse("set k 0 0 3\r\nabc\r\n").is_done());
  EXPECT_EQ(parser.needed_bytes(), 0U);
}

TEST(RequestParser, LooksAtEveryByteOfALineOnceHoweverSlowItComes) {
  std::string line = "get";
  while (line.size() < 100'000) {
    line += " key";
  }
  line += "\r\n";
  RequestParser parser{ParserLimits{}};
  for (std::size_t size = 1; size < line.size(); ++size) {
    ASSERT_TRUE(parser.parse(std::string_view(line).substr(0, size)).is_need_more());
  }
  ASSERT_TRUE(parser.parse(line).is_done());
  EXPECT_EQ(parser.scanned_bytes_for_test(), line.size());
}

TEST(RequestParser, DoesNotLookAtValueBytes) {
  const std::string head = "set k 0 0 1000\r\n";
  const std::string whole = head + std::string(1000, '\n') + "\r\n";
  RequestParser parser{ParserLimits{}};
  for (std::size_t size = head.size(); size < whole.size(); ++size) {
    ASSERT_TRUE(parser.parse(std::string_view(whole).substr(0, size)).is_need_more());
  }
  ASSERT_TRUE(parser.parse(whole).is_done());
  EXPECT_EQ(parser.scanned_bytes_for_test(), head.size());
}

TEST(RequestParser, GivesViewsIntoTheBytes) {
  const std::string bytes = "gat 30  a  b \r\n";
  RequestParser parser{ParserLimits{}};
  const auto parsed = parser.parse(bytes);
  ASSERT_TRUE(parsed.is_done());
  EXPECT_EQ(parsed.value().line, bytes);
  EXPECT_EQ(parsed.value().line_text(), "gat 30  a  b ");
  EXPECT_EQ(parsed.value().keys, "a  b ");
  EXPECT_EQ(parsed.value().key.data(), bytes.data() + 8);
  EXPECT_EQ(parsed.value().key_count, 2U);
}

TEST(RequestErrorLine, SpeaksTheWordsOfEachFront) {
  struct Row {
    RequestError error;
    std::string_view store;
    std::string_view proxy;
  };
  const Row rows[] = {
      {RequestError::UnknownCommand, "ERROR\r\n", "ERROR\r\n"},
      {RequestError::BadLine, "CLIENT_ERROR bad command line format\r\n",
       "CLIENT_ERROR parsing request\r\n"},
      {RequestError::KeyTooLong, "CLIENT_ERROR bad command line format\r\n",
       "CLIENT_ERROR key too long\r\n"},
      {RequestError::LineTooLong, "CLIENT_ERROR line too long\r\n",
       "CLIENT_ERROR line too long\r\n"},
      {RequestError::BadDataChunk, "CLIENT_ERROR bad data chunk\r\n",
       "CLIENT_ERROR bad data chunk\r\n"},
      {RequestError::TooManyTokens, "CLIENT_ERROR options flags are too long\r\n",
       "CLIENT_ERROR options flags are too long\r\n"},
      {RequestError::BadFlag, "CLIENT_ERROR invalid flag\r\n", "CLIENT_ERROR parsing request\r\n"},
      {RequestError::TooLarge, "SERVER_ERROR object too large for cache\r\n",
       "SERVER_ERROR object too large for cache\r\n"},
      {RequestError::None, "", ""},
      {RequestError::NotText, "", ""},
      {RequestError::Unterminated, "", ""},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(error_line(row.error, ErrorWords::Store), row.store);
    EXPECT_EQ(error_line(row.error, ErrorWords::Proxy), row.proxy);
    EXPECT_EQ(closes_connection(row.error),
              row.error == RequestError::NotText || row.error == RequestError::Unterminated);
  }
}

}  // namespace
}  // namespace kvferry::memcache
