#include "protocol/memcache/any_reply_parser.h"

#include <cstring>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/splitter.h"

namespace kvferry::memcache {
namespace {

struct Outcome {
  std::string taken;
  std::string unread;  // After a failure: from what could not be read on.
  ReplyCode code = ReplyCode::None;
  AnyReplyError error = AnyReplyError::None;
  bool is_complete = false;
  bool is_consistent = true;
};

Outcome feed(const test::Pieces& pieces, bool is_wide = false) {
  Outcome outcome;
  AnyReplyParser parser;
  parser.start(is_wide);
  std::string held;
  bool is_first = true;
  for (const std::string_view piece : pieces) {
    held += piece;
    while (!outcome.is_complete && !held.empty()) {
      // Each call sees memory of its exact size, so that reading beyond it shows.
      const auto copy = std::make_unique<char[]>(held.size());
      std::memcpy(copy.get(), held.data(), held.size());
      const auto parsed = parser.next({copy.get(), held.size()});
      if (parsed.is_need_more()) {
        break;
      }
      if (parsed.is_failed()) {
        outcome.error = parsed.error();
        outcome.unread = held.substr(parser.failed_at());
        return outcome;
      }
      const ReplyChunk& chunk = parsed.value();
      outcome.is_consistent = outcome.is_consistent && chunk.is_first == is_first &&
                              chunk.size_bytes > 0 && chunk.size_bytes <= held.size() &&
                              (is_first || chunk.code == outcome.code);
      is_first = false;
      outcome.code = chunk.code;
      outcome.taken += held.substr(0, chunk.size_bytes);
      held.erase(0, chunk.size_bytes);
      outcome.is_complete = chunk.is_last;
    }
  }
  return outcome;
}

struct Whole {
  std::string bytes;
  ReplyCode code;
};

const Whole kReplies[] = {
    {"VALUE k 0 3\r\nabc\r\nEND\r\n", ReplyCode::Value},
    {"VALUE k 4294967295 0 77\r\n\r\nEND\r\n", ReplyCode::Value},
    {"VALUE k 0 5\nEND\r\n\r\nEND\r\n", ReplyCode::Value},
    {"END\r\n", ReplyCode::End},
    {"END\n", ReplyCode::End},
    {"HD\r\n", ReplyCode::MetaHd},
    {"HD t5 Oq\r\n", ReplyCode::MetaHd},
    {"VA 2 f0\r\nEN\r\n", ReplyCode::MetaVa},
    {"VA 0\n\r\n", ReplyCode::MetaVa},
    {"EN\r\n", ReplyCode::MetaEn},
    {"NF\r\n", ReplyCode::MetaNf},
    {"NS\r\n", ReplyCode::MetaNs},
    {"EX\r\n", ReplyCode::MetaEx},
    {"MN\r\n", ReplyCode::MetaMn},
    {"ME k exp=-1\r\n", ReplyCode::MetaMe},
    {"OK\r\n", ReplyCode::Ok},
    {"STORED\r\n", ReplyCode::Stored},
    {"NOT_STORED\n", ReplyCode::NotStored},
    {"EXISTS\r\n", ReplyCode::Exists},
    {"DELETED\r\n", ReplyCode::Deleted},
    {"TOUCHED\r\n", ReplyCode::Touched},
    {"NOT_FOUND\r\n", ReplyCode::NotFound},
    {"42\r\n", ReplyCode::Number},
    {"ERROR\r\n", ReplyCode::Error},
    {"CLIENT_ERROR bad\r\n", ReplyCode::ClientError},
    {"SERVER_ERROR out of memory\r\n", ReplyCode::ServerError},
    {"XX\r\n", ReplyCode::Other},
    {"XX a b\r\n", ReplyCode::Other},
    {"xx\n", ReplyCode::Other},
};

TEST(AnyReplyParser, ReadsEachReplyHoweverItIsCut) {
  for (const Whole& reply : kReplies) {
    for (const test::Pieces& pieces : test::all_cuts(reply.bytes)) {
      const Outcome outcome = feed(pieces);
      EXPECT_TRUE(outcome.is_complete) << reply.bytes;
      EXPECT_TRUE(outcome.is_consistent) << reply.bytes;
      EXPECT_EQ(outcome.taken, reply.bytes);
      EXPECT_EQ(outcome.code, reply.code) << reply.bytes;
    }
  }
}

TEST(AnyReplyParser, LeavesWhatFollowsTheReply) {
  for (const Whole& reply : kReplies) {
    const std::string both = reply.bytes + "END\r\n";
    const Outcome outcome = feed({both});
    EXPECT_EQ(outcome.taken, reply.bytes);
    EXPECT_TRUE(outcome.is_complete);
  }
}

const Whole kWideReplies[] = {
    {"END\r\n", ReplyCode::End},
    {"VALUE k 0 3\r\nabc\r\nEND\r\n", ReplyCode::Value},
    {"VALUE k 0 3\r\nabc\r\nVALUE l 5 0 7\r\n\r\nVALUE m 0 5\nEND\r\n\r\nEND\r\n",
     ReplyCode::Value},
    {"VALUE k 0 1\r\na\r\nVALUE l 0 1\r\nb\r\nSERVER_ERROR out of memory\r\n", ReplyCode::Value},
    {"SERVER_ERROR busy\r\n", ReplyCode::ServerError},
    {"VA 2 f0\r\nEN\r\n", ReplyCode::MetaVa},
};

TEST(AnyReplyParser, AWideReplyHoldsAnyNumberOfValues) {
  for (const Whole& reply : kWideReplies) {
    for (const test::Pieces& pieces : test::all_cuts(reply.bytes)) {
      const Outcome outcome = feed(pieces, true);
      EXPECT_TRUE(outcome.is_complete) << reply.bytes;
      EXPECT_TRUE(outcome.is_consistent) << reply.bytes;
      EXPECT_EQ(outcome.taken, reply.bytes);
      EXPECT_EQ(outcome.code, reply.code) << reply.bytes;
    }
  }
  const std::string bad_line = "VALUE k 0 1\r\na\r\nSTORED\r\n";
  EXPECT_EQ(feed({bad_line}, true).error, AnyReplyError::MissingEnd);
  const std::string bad_length = "VALUE k 0 1\r\na\r\nVALUE l 0 x\r\n";
  EXPECT_EQ(feed({bad_length}, true).error, AnyReplyError::NoReply);
}

struct Broken {
  std::string bytes;
  AnyReplyError error;
  std::string unread;
};

const Broken kBroken[] = {
    {"this is not memcached\r\n", AnyReplyError::NoReply, "this is not memcached\r\n"},
    {"\r\n", AnyReplyError::NoReply, "\r\n"},
    {"X\r\n", AnyReplyError::NoReply, "X\r\n"},
    {"HDx\r\n", AnyReplyError::NoReply, "HDx\r\n"},
    {"STOREDX\r\n", AnyReplyError::NoReply, "STOREDX\r\n"},
    {"VA\r\n", AnyReplyError::NoReply, "VA\r\n"},
    {"VA x\r\nabc\r\n", AnyReplyError::NoReply, "VA x\r\nabc\r\n"},
    {"VA -1\r\n", AnyReplyError::NoReply, "VA -1\r\n"},
    {"VALUE a 0 x\r\n", AnyReplyError::NoReply, "VALUE a 0 x\r\n"},
    {"VALUE a x 1\r\na\r\nEND\r\n", AnyReplyError::NoReply, "VALUE a x 1\r\na\r\nEND\r\n"},
    {"VALUE a 0 1 x\r\na\r\nEND\r\n", AnyReplyError::NoReply, "VALUE a 0 1 x\r\na\r\nEND\r\n"},
    {"VALUE a 0\r\n", AnyReplyError::NoReply, "VALUE a 0\r\n"},
    {"VA 2\r\nhello\r\n", AnyReplyError::NoReply, "hello\r\n"},
    {"VALUE a 0 1\r\nx\r\nFOO\r\n", AnyReplyError::MissingEnd, "FOO\r\n"},
    {"VALUE a 0 1\r\nx\r\nEND\n", AnyReplyError::MissingEnd, "END\n"},
    {"VALUE a 0 1\r\nx\r\nVALUE b 0 1\r\ny\r\nEND\r\n", AnyReplyError::MissingEnd,
     "VALUE b 0 1\r\ny\r\nEND\r\n"},
    {"VERSION 1.6.45\r\n", AnyReplyError::Unhandled, "VERSION 1.6.45\r\n"},
    {"STAT pid 1\r\n", AnyReplyError::Unhandled, "STAT pid 1\r\n"},
    {"VA 1073741825\r\n", AnyReplyError::TooLarge, "VA 1073741825\r\n"},
};

TEST(AnyReplyParser, RefusesWhatIsNoReplyAndSaysWhere) {
  for (const Broken& broken : kBroken) {
    const Outcome outcome = feed({broken.bytes});
    EXPECT_EQ(outcome.error, broken.error) << broken.bytes;
    EXPECT_EQ(outcome.unread, broken.unread);
    for (const test::Pieces& pieces : test::all_cuts(broken.bytes)) {
      EXPECT_EQ(feed(pieces).error, broken.error) << broken.bytes;
    }
  }
}

TEST(AnyReplyParser, TakesValuesUpToOneGibibyte) {
  AnyReplyParser parser;
  parser.start();
  const auto parsed = parser.next("VA 1073741824\r\n");
  ASSERT_TRUE(parsed.is_done());
  EXPECT_FALSE(parsed.value().is_last);
}

TEST(AnyReplyParser, BoundsTheLine) {
  const auto line_of = [](std::size_t bytes) {
    return "HD " + std::string(bytes - 5, 'x') + "\r\n";
  };
  EXPECT_TRUE(feed({line_of(kReplyLineBytesMax - 1)}).is_complete);
  EXPECT_TRUE(feed({line_of(kReplyLineBytesMax)}).is_complete);
  EXPECT_EQ(feed({line_of(kReplyLineBytesMax + 1)}).error, AnyReplyError::NoReply);
}

}  // namespace
}  // namespace kvferry::memcache
