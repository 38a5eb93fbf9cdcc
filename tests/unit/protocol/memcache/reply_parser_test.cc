#include "protocol/memcache/reply_parser.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/splitter.h"

namespace kvferry::memcache {
namespace {

/// What became of one reply that was fed in pieces, and whether the parser kept its promises.
struct Outcome {
  std::string taken;  // All bytes of all chunks.
  ReplyCode code = ReplyCode::None;
  ReplyError error = ReplyError::None;
  bool is_complete = false;
  bool is_consistent = true;  // First and last marks, equal codes, nothing empty.
};

Outcome feed(const test::Pieces& pieces, ReplyKind kind, ReplyParser& parser) {
  Outcome outcome;
  std::string held;
  bool is_first = true;
  parser.start(kind);
  for (const std::string_view piece : pieces) {
    held += piece;
    while (!outcome.is_complete) {
      const auto copy = std::make_unique<char[]>(held.size());
      std::memcpy(copy.get(), held.data(), held.size());
      const auto parsed = parser.next({copy.get(), held.size()});
      if (parsed.is_need_more()) {
        break;
      }
      if (parsed.is_failed()) {
        outcome.error = parsed.error();
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
  ReplyKind kind;
  std::string bytes;
  ReplyCode code;
};

const Whole kReplies[] = {
    {ReplyKind::Line, "STORED\r\n", ReplyCode::Stored},
    {ReplyKind::Line, "NOT_STORED\r\n", ReplyCode::NotStored},
    {ReplyKind::Line, "EXISTS\r\n", ReplyCode::Exists},
    {ReplyKind::Line, "NOT_FOUND\n", ReplyCode::NotFound},
    {ReplyKind::Line, "DELETED\r\n", ReplyCode::Deleted},
    {ReplyKind::Line, "TOUCHED\r\n", ReplyCode::Touched},
    {ReplyKind::Line, "OK\r\n", ReplyCode::Ok},
    {ReplyKind::Line, "42\r\n", ReplyCode::Number},
    {ReplyKind::Line, "18446744073709551615 \r\n", ReplyCode::Number},
    {ReplyKind::Line, "VERSION 1.6.45\r\n", ReplyCode::Version},
    {ReplyKind::Line, "ERROR\r\n", ReplyCode::Error},
    {ReplyKind::Line, "ERROR Too many open connections\r\n", ReplyCode::Error},
    {ReplyKind::Line, "CLIENT_ERROR bad\r\n", ReplyCode::ClientError},
    {ReplyKind::Line, "SERVER_ERROR out of memory\r\n", ReplyCode::ServerError},
    {ReplyKind::Line, "SERVER_ERROR: shutdown not enabled\r\n", ReplyCode::ServerError},
    {ReplyKind::Line, "BUSY later\r\n", ReplyCode::Other},
    {ReplyKind::Retrieval, "END\r\n", ReplyCode::End},
    {ReplyKind::Retrieval, "VALUE k 0 3\r\nabc\r\nEND\r\n", ReplyCode::Value},
    {ReplyKind::Retrieval, "VALUE k 0 0\r\n\r\nEND\r\n", ReplyCode::Value},
    {ReplyKind::Retrieval, "VALUE a 0 5\r\nEND\r\n\r\nVALUE b 1 2 77\r\n\r\n\r\nEND\r\n",
     ReplyCode::Value},
    {ReplyKind::Retrieval, "VALUE a 0 1\r\nx\r\nSERVER_ERROR out of memory\r\n", ReplyCode::Value},
    {ReplyKind::Retrieval, "CLIENT_ERROR bad\r\n", ReplyCode::ClientError},
    {ReplyKind::Retrieval, "ERROR\r\n", ReplyCode::Error},
    {ReplyKind::Meta, "HD\r\n", ReplyCode::MetaHd},
    {ReplyKind::Meta, "HD t30 c5\r\n", ReplyCode::MetaHd},
    {ReplyKind::Meta, "VA 2 f0 Oab\r\nEN\r\n", ReplyCode::MetaVa},
    {ReplyKind::Meta, "VA 0\r\n\r\n", ReplyCode::MetaVa},
    {ReplyKind::Meta, "EN\r\n", ReplyCode::MetaEn},
    {ReplyKind::Meta, "EN kfoo Oab\r\n", ReplyCode::MetaEn},
    {ReplyKind::Meta, "NS\r\n", ReplyCode::MetaNs},
    {ReplyKind::Meta, "EX\r\n", ReplyCode::MetaEx},
    {ReplyKind::Meta, "NF\r\n", ReplyCode::MetaNf},
    {ReplyKind::Meta, "MN\r\n", ReplyCode::MetaMn},
    {ReplyKind::Meta, "ME k exp=-1 la=2\r\n", ReplyCode::MetaMe},
    {ReplyKind::Meta, "CLIENT_ERROR duplicate flag\r\n", ReplyCode::ClientError},
};

TEST(ReplyParser, FindsTheEndOfAReplyHoweverBytesAreCut) {
  ReplyParser parser;
  for (const Whole& reply : kReplies) {
    // Bytes of the next reply follow and must stay.
    const std::string bytes = reply.bytes + "HD\r\n";
    for (const test::Pieces& pieces : test::all_cuts(bytes)) {
      const Outcome outcome = feed(pieces, reply.kind, parser);
      EXPECT_TRUE(outcome.is_complete && outcome.is_consistent) << reply.bytes;
      EXPECT_EQ(outcome.taken, reply.bytes);
      EXPECT_EQ(outcome.code, reply.code) << reply.bytes;
    }
  }
}

TEST(ReplyParser, TakesACompleteReplyAsOneChunk) {
  for (const Whole& reply : kReplies) {
    ReplyParser parser;
    parser.start(reply.kind);
    const auto parsed = parser.next(reply.bytes);
    ASSERT_TRUE(parsed.is_done()) << reply.bytes;
    EXPECT_EQ(parsed.value().size_bytes, reply.bytes.size());
    EXPECT_TRUE(parsed.value().is_first && parsed.value().is_last);
  }
}

struct Broken {
  ReplyKind kind;
  std::string bytes;
  ReplyError error;
};

TEST(ReplyParser, RefusesDamageHoweverBytesAreCut) {
  const Broken broken[] = {
      {ReplyKind::Line, "VALUE k 0 1\r\n", ReplyError::Unexpected},
      {ReplyKind::Line, "END\r\n", ReplyError::Unexpected},
      {ReplyKind::Line, "HD\r\n", ReplyError::Unexpected},
      {ReplyKind::Line, "VA 1\r\n", ReplyError::Unexpected},
      {ReplyKind::Line, "\r\n", ReplyError::Unexpected},
      {ReplyKind::Line, "\n", ReplyError::Unexpected},
      {ReplyKind::Line, "stored\r\n", ReplyError::Unexpected},
      {ReplyKind::Line, "-1\r\n", ReplyError::Unexpected},
      {ReplyKind::Retrieval, "STORED\r\n", ReplyError::Unexpected},
      {ReplyKind::Retrieval, "42\r\n", ReplyError::Unexpected},
      {ReplyKind::Retrieval, "EN\r\n", ReplyError::Unexpected},
      {ReplyKind::Retrieval, "VA 1\r\nx\r\n", ReplyError::Unexpected},
      {ReplyKind::Retrieval, "VALUE k 0 1\r\nx\r\nSTORED\r\n", ReplyError::Unexpected},
      {ReplyKind::Retrieval, "VALUE k 0 1\r\nx\r\n\r\n", ReplyError::Unexpected},
      {ReplyKind::Meta, "STORED\r\n", ReplyError::Unexpected},
      {ReplyKind::Meta, "END\r\n", ReplyError::Unexpected},
      {ReplyKind::Meta, "VALUE k 0 1\r\n", ReplyError::Unexpected},
      {ReplyKind::Retrieval, "VALUE k 0\r\n", ReplyError::BadLength},
      {ReplyKind::Retrieval, "VALUE \r\n", ReplyError::BadLength},
      {ReplyKind::Retrieval, "VALUE\r\n", ReplyError::BadLength},
      {ReplyKind::Retrieval, "VALUE k 0 -1\r\n", ReplyError::BadLength},
      {ReplyKind::Retrieval, "VALUE k 0 1x\r\n", ReplyError::BadLength},
      {ReplyKind::Retrieval, "VALUE k 0 2147483646\r\n", ReplyError::BadLength},
      {ReplyKind::Retrieval, "VALUE k 0 99999999999999999999\r\n", ReplyError::BadLength},
      {ReplyKind::Meta, "VA\r\n", ReplyError::BadLength},
      {ReplyKind::Meta, "VA x\r\n", ReplyError::BadLength},
      {ReplyKind::Retrieval, "VALUE k 0 1\r\nxyz", ReplyError::BadValueEnd},
      {ReplyKind::Retrieval, "VALUE k 0 1\r\nx\r\r", ReplyError::BadValueEnd},
      {ReplyKind::Retrieval, "VALUE k 0 0\r\n\n", ReplyError::BadValueEnd},
      {ReplyKind::Meta, "VA 1\r\nxyz\r\n", ReplyError::BadValueEnd},
  };
  ReplyParser parser;
  for (const Broken& reply : broken) {
    for (const test::Pieces& pieces : test::all_cuts(reply.bytes)) {
      EXPECT_EQ(feed(pieces, reply.kind, parser).error, reply.error) << reply.bytes;
    }
  }
}

TEST(ReplyParser, AcceptsLinesOf2048BytesAndRefusesOneMore) {
  ReplyParser parser;
  for (const std::size_t bytes : {kReplyLineBytesMax - 1, kReplyLineBytesMax}) {
    const std::string line = "SERVER_ERROR " + std::string(bytes - 15, 'x') + "\r\n";
    ASSERT_EQ(line.size(), bytes);
    EXPECT_TRUE(feed({line}, ReplyKind::Line, parser).is_complete);
    EXPECT_TRUE(feed(test::cut_to_bytes(line), ReplyKind::Line, parser).is_complete);
  }
  const std::string line = "SERVER_ERROR " + std::string(kReplyLineBytesMax - 14, 'x') + "\r\n";
  EXPECT_EQ(feed({line}, ReplyKind::Line, parser).error, ReplyError::LineTooLong);
  EXPECT_EQ(feed(test::cut_to_bytes(line), ReplyKind::Line, parser).error, ReplyError::LineTooLong);
  EXPECT_EQ(feed({"VALUE a 0 1\r\nx\r\n" + line}, ReplyKind::Retrieval, parser).error,
            ReplyError::LineTooLong);
}

TEST(ReplyParser, PassesOnWhatHasComeOfAValue) {
  ReplyParser parser;
  parser.start(ReplyKind::Retrieval);
  const auto head = parser.next("VALUE k 0 1000\r\nabc");
  ASSERT_TRUE(head.is_done());
  EXPECT_EQ(head.value().size_bytes, 19U);
  EXPECT_TRUE(head.value().is_first && !head.value().is_last);
  EXPECT_EQ(parser.value_bytes_left(), 999U);

  ASSERT_TRUE(parser.next("").is_need_more());
  const auto middle = parser.next(std::string(900, 'x'));
  ASSERT_TRUE(middle.is_done());
  EXPECT_EQ(middle.value().size_bytes, 900U);
  EXPECT_TRUE(!middle.value().is_first && !middle.value().is_last);

  // The line behind the value is not complete, so it stays with the caller.
  const auto rest = parser.next(std::string(97, 'x') + "\r\nEND\r");
  ASSERT_TRUE(rest.is_done());
  EXPECT_EQ(rest.value().size_bytes, 99U);
  ASSERT_TRUE(parser.next("END\r").is_need_more());
  const auto last = parser.next("END\r\n");
  ASSERT_TRUE(last.is_done());
  EXPECT_TRUE(last.value().is_last);
  EXPECT_EQ(last.value().code, ReplyCode::Value);
}

TEST(ReplyParser, LooksAtEveryByteOfALineOnceAndAtNoValueByte) {
  const std::string header = "VALUE k 0 1000\r\n";
  const std::string whole = header + std::string(1000, 'v') + "\r\nEND\r\n";
  ReplyParser parser;
  EXPECT_TRUE(feed(test::cut_to_bytes(whole), ReplyKind::Retrieval, parser).is_complete);
  EXPECT_EQ(parser.scanned_bytes_for_test(), header.size() + 5);
}

TEST(ReplyKindOf, FollowsTheCommand) {
  EXPECT_EQ(reply_kind_of(Command::Get), ReplyKind::Retrieval);
  EXPECT_EQ(reply_kind_of(Command::Gats), ReplyKind::Retrieval);
  EXPECT_EQ(reply_kind_of(Command::Mg), ReplyKind::Meta);
  EXPECT_EQ(reply_kind_of(Command::Me), ReplyKind::Meta);
  EXPECT_EQ(reply_kind_of(Command::Set), ReplyKind::Line);
  EXPECT_EQ(reply_kind_of(Command::Version), ReplyKind::Line);
}

TEST(ReplyCode, IsFoundByWholeWords) {
  EXPECT_EQ(find_reply_code("HD"), ReplyCode::MetaHd);
  EXPECT_EQ(find_reply_code("END\r\n"), ReplyCode::End);
  EXPECT_EQ(find_reply_code("ENDED\r\n"), ReplyCode::Other);
  EXPECT_EQ(find_reply_code("VALUES\n"), ReplyCode::Other);
  EXPECT_EQ(find_reply_code("EXISTSX"), ReplyCode::Other);
  EXPECT_EQ(find_reply_code(""), ReplyCode::None);
  EXPECT_EQ(find_reply_code(" HD"), ReplyCode::None);
  EXPECT_TRUE(is_error(ReplyCode::Error) && is_error(ReplyCode::ServerError));
  EXPECT_FALSE(is_error(ReplyCode::MetaEn) || is_error(ReplyCode::Other));
}

TEST(ReplyErrorText, NamesEveryError) {
  EXPECT_EQ(reply_error_text(ReplyError::None), "none");
  EXPECT_EQ(reply_error_text(ReplyError::Unexpected), "unexpected reply");
  EXPECT_EQ(reply_error_text(ReplyError::BadLength), "bad value length");
  EXPECT_EQ(reply_error_text(ReplyError::BadValueEnd), "value not ended by CR LF");
  EXPECT_EQ(reply_error_text(ReplyError::LineTooLong), "reply line too long");
}

}  // namespace
}  // namespace kvferry::memcache
