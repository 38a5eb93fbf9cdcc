#include "route/route_reply.h"

#include <gtest/gtest.h>

#include "protocol/memcache/reply_parser.h"

namespace kvferry::route {
namespace {

using call::ReplyOrigin;
using call::ReplyPart;
using memcache::ReplyCode;

ReplyPart whole(std::string_view bytes, ReplyOrigin origin = ReplyOrigin::Answerer) {
  return {.bytes = bytes,
          .code = memcache::find_reply_code(bytes),
          .is_first = true,
          .is_last = true,
          .origin = origin};
}

struct Row {
  std::string_view bytes;
  int type;
  int code;
  bool is_ok;
  ResultClass result_class;
};

constexpr Row kRows[] = {
    {"VALUE k 1 3\r\nabc\r\nEND\r\n", 100, 15, true, ResultClass::Good},
    {"END\r\n", 105, 17, true, ResultClass::Ok},
    {"HD t5\r\n", 101, 15, true, ResultClass::Good},
    {"HD\n", 101, 15, true, ResultClass::Good},
    {"VA 1 t5\r\nx\r\n", 101, 15, true, ResultClass::Good},
    {"EN\r\n", 101, 17, true, ResultClass::Ok},
    {"NF\r\n", 101, 13, true, ResultClass::Good},
    {"NS\r\n", 101, 14, true, ResultClass::Good},
    {"EX\r\n", 101, 9, true, ResultClass::Good},
    {"MN\r\n", 101, 16, true, ResultClass::Good},
    {"ME k la=1\r\n", 101, 15, true, ResultClass::Good},
    {"OK\r\n", 104, 15, true, ResultClass::Good},
    {"STORED\r\n", 104, 8, true, ResultClass::Good},
    {"EXISTS\r\n", 104, 9, true, ResultClass::Good},
    {"DELETED\r\n", 104, 10, true, ResultClass::Good},
    {"TOUCHED\r\n", 104, 11, true, ResultClass::Good},
    {"NOT_FOUND\r\n", 104, 13, true, ResultClass::Good},
    {"NOT_STORED\r\n", 104, 14, true, ResultClass::Good},
    {"18446744073709551615\r\n", 107, 15, true, ResultClass::Good},
    {"ERROR\r\n", 108, 21, false, ResultClass::Any},
    {"CLIENT_ERROR no\r\n", 108, 22, false, ResultClass::Any},
    {"SERVER_ERROR no\r\n", 108, 23, false, ResultClass::Any},
    {"XX\r\n", 101, 1, false, ResultClass::Any},
    {"XX t5\r\n", 101, 1, false, ResultClass::Any},
    {"STAT pid 1\r\n", 102, 23, false, ResultClass::Any},
    {"VERSION 1.6\r\n", 106, 23, false, ResultClass::Any},
    {"RUBBISH\r\n", 109, 23, false, ResultClass::Any},
    {"X\r\n", 109, 23, false, ResultClass::Any},
    {"X1\r\n", 109, 23, false, ResultClass::Any},
    {"VA\r\n", 109, 23, false, ResultClass::Any},
    {"VA x\r\n", 109, 23, false, ResultClass::Any},
    {"VALUE k 1 x\r\n", 109, 23, false, ResultClass::Any},
    {"", 109, 23, false, ResultClass::Any},
};

TEST(RouteReply, ClassifiesAnswersByTheirFirstWord) {
  for (const Row& row : kRows) {
    RouteReply reply;
    reply.take(whole(row.bytes));
    EXPECT_TRUE(reply.is_complete());
    EXPECT_EQ(static_cast<int>(reply.type()), row.type) << row.bytes;
    EXPECT_EQ(static_cast<int>(reply.code()), row.code) << row.bytes;
    EXPECT_EQ(reply.is_ok(), row.is_ok) << row.bytes;
    EXPECT_EQ(reply.natural_class(), row.result_class) << row.bytes;
    EXPECT_EQ(reply.is_hit(), row.is_ok && row.code != 17) << row.bytes;
    EXPECT_EQ(reply.is_meta(), row.type == 101) << row.bytes;
    EXPECT_EQ(reply.bytes(), row.bytes);
  }
}

TEST(RouteReply, ReadsTheSameFromPartsAsFromOnePiece) {
  for (const Row& row : kRows) {
    for (std::size_t cut = 1; cut < row.bytes.size(); ++cut) {
      RouteReply reply;
      ReplyPart part = whole(row.bytes);
      part.bytes = row.bytes.substr(0, cut);
      part.is_last = false;
      reply.take(part);
      EXPECT_FALSE(reply.is_complete());
      EXPECT_EQ(reply.natural_class(), ResultClass::None);
      part.bytes = row.bytes.substr(cut);
      part.is_first = false;
      part.is_last = true;
      reply.take(part);
      EXPECT_EQ(static_cast<int>(reply.type()), row.type) << row.bytes << cut;
      EXPECT_EQ(static_cast<int>(reply.code()), row.code) << row.bytes << cut;
      EXPECT_EQ(reply.bytes(), row.bytes);
    }
  }
}

TEST(RouteReply, ShowsWhatAMetaLineSays) {
  const struct {
    std::string_view bytes;
    std::string_view line;
    std::string_view value;
    bool has_value;
  } table[] = {
      {"VA 5 t30 Oabc\r\nhello\r\n", "t30 Oabc", "hello", true},
      {"VA 0\r\n\r\n", "", "", true},
      {"VA 2\nhi\r\n", "", "hi", true},
      {"HD\r\n", "", "", false},
      {"HD   \r\n", "", "", false},
      {"HD t9 kk\r\n", "t9 kk", "", false},
      {"ME k exp=-1 la=1\r\n", "k exp=-1 la=1", "", false},
      {"STORED\r\n", "", "", false},
      {"5\r\n", "", "", false},
      {"SERVER_ERROR odd\r\n", "", "", false},
      {"VALUE k 1 4 99\r\nabcd\r\nEND\r\n", "", "abcd", true},
      {"VALUE k 1 0\r\n\r\nEND\r\n", "", "", true},
  };
  for (const auto& row : table) {
    RouteReply reply;
    reply.take(whole(row.bytes));
    EXPECT_EQ(reply.meta_line(), row.line) << row.bytes;
    EXPECT_EQ(reply.value(), row.value) << row.bytes;
    EXPECT_EQ(reply.value_bytes(), row.value.size());
    EXPECT_EQ(reply.has_value(), row.has_value) << row.bytes;
  }
}

TEST(RouteReply, BorrowsAWholeReplyUntilKept) {
  std::string bytes = "VA 5 t30\r\nhello\r\n";
  RouteReply reply;
  reply.take(whole(bytes));
  EXPECT_EQ(reply.bytes().data(), bytes.data());
  reply.keep();
  bytes.assign(bytes.size(), '#');
  EXPECT_EQ(reply.bytes(), "VA 5 t30\r\nhello\r\n");
  EXPECT_EQ(reply.value(), "hello");
  EXPECT_EQ(reply.meta_line(), "t30");
}

TEST(RouteReply, BecomesACopyThatStandsAlone) {
  std::string bytes = "VA 5 t30\r\nhello\r\n";
  RouteReply copy;
  {
    RouteReply reply;
    reply.take(whole(bytes));
    reply.elapsed = base::Micros(7);
    copy.copy_from(reply);
  }
  bytes.assign(bytes.size(), '#');
  EXPECT_EQ(copy.bytes(), "VA 5 t30\r\nhello\r\n");
  EXPECT_EQ(copy.value(), "hello");
  EXPECT_EQ(copy.meta_line(), "t30");
  EXPECT_EQ(copy.type(), AnswerType::Meta);
  EXPECT_EQ(copy.code(), AnswerCode::Ok);
  EXPECT_EQ(copy.natural_class(), ResultClass::Good);
  EXPECT_EQ(copy.wire_code(), ReplyCode::MetaVa);
  EXPECT_EQ(copy.elapsed, base::Micros(7));
  EXPECT_TRUE(copy.blank_flag('t'));
  RouteReply failed;
  failed.fail();
  copy.copy_from(failed);
  EXPECT_EQ(copy.bytes(), "");
  EXPECT_EQ(copy.origin(), ReplyOrigin::Failure);
  EXPECT_FALSE(copy.has_value());
}

TEST(RouteReply, BlanksFlagsOfItsOwnCopy) {
  const std::string bytes = "VA 5 t30 Oabc kfoo\r\nhello\r\n";
  RouteReply reply;
  reply.take(whole(bytes));
  EXPECT_FALSE(reply.blank_flag('z'));
  EXPECT_EQ(reply.bytes().data(), bytes.data());
  EXPECT_TRUE(reply.blank_flag('O'));
  EXPECT_FALSE(reply.blank_flag('O'));
  EXPECT_EQ(reply.bytes(), "VA 5 t30      kfoo\r\nhello\r\n");
  EXPECT_EQ(bytes, "VA 5 t30 Oabc kfoo\r\nhello\r\n");
  EXPECT_TRUE(reply.blank_flag('t'));
  EXPECT_EQ(reply.find_flag('k').text, "foo");

  reply.take(whole("HD O1\r\n"));
  EXPECT_TRUE(reply.blank_flag('O'));
  EXPECT_EQ(reply.bytes(), "HD   \r\n");
  EXPECT_EQ(reply.meta_line(), "");
}

TEST(RouteReply, HasFlagsInMetaAnswersOnly) {
  RouteReply reply;
  for (const std::string_view bytes :
       {"VALUE k 1 1\r\nx\r\nEND\r\n", "ME k exp=1\r\n", "SERVER_ERROR k\r\n", "EN\r\n"}) {
    reply.take(whole(bytes));
    EXPECT_FALSE(reply.find_flag('k').is_found) << bytes;
    EXPECT_FALSE(reply.blank_flag('k')) << bytes;
  }
}

TEST(RouteReply, LeavesNoBytesOfAFailure) {
  RouteReply reply;
  reply.take(whole("SERVER_ERROR backend down\r\n", ReplyOrigin::Failure));
  EXPECT_TRUE(reply.is_complete());
  EXPECT_EQ(reply.origin(), ReplyOrigin::Failure);
  EXPECT_FALSE(reply.is_ok());
  EXPECT_EQ(reply.code(), AnswerCode::ServerError);
  EXPECT_EQ(reply.type(), AnswerType::None);
  EXPECT_EQ(reply.natural_class(), ResultClass::Any);
  EXPECT_EQ(reply.bytes(), "");
  EXPECT_TRUE(memcache::is_error(reply.wire_code()));
}

TEST(RouteReply, FailsWhenItIsCutOff) {
  RouteReply reply;
  reply.take(
      {.bytes = "VA 5\r\nhe", .code = ReplyCode::MetaVa, .is_first = true, .is_last = false});
  reply.take({.bytes = "",
              .code = ReplyCode::MetaVa,
              .is_first = false,
              .is_last = true,
              .is_broken = true});
  EXPECT_TRUE(reply.is_complete());
  EXPECT_EQ(reply.origin(), ReplyOrigin::Failure);
  EXPECT_EQ(reply.bytes(), "");
  EXPECT_FALSE(reply.has_value());
  EXPECT_EQ(reply.value(), "");
}

TEST(RouteReply, TakesATextOfAScriptForNoAnswer) {
  RouteReply reply;
  reply.take(whole("HD t5\r\n", ReplyOrigin::Script));
  EXPECT_FALSE(reply.is_ok());
  EXPECT_FALSE(reply.is_meta());
  EXPECT_EQ(reply.natural_class(), ResultClass::Any);
  EXPECT_EQ(reply.bytes(), "HD t5\r\n");
}

TEST(RouteReply, TakesComposedAnswersThatAreWhole) {
  const struct {
    const char* line;
    const char* value;
    bool is_taken;
  } table[] = {
      {"VA 5 t30\r\n", "hello\r\n", true},
      {"VA 0\r\n", "\r\n", true},
      {"EN\r\n", "", true},
      {"NOT_STORED\r\n", "", true},
      {"END\r\n", "", true},
      {"SERVER_ERROR odd\r\n", "", true},
      {"ERROR\r\n", "", true},
      {"XX\r\n", "", true},
      {"VA 5\r\n", "", false},
      {"VA 4\r\n", "hello\r\n", false},
      {"VA 5\r\n", "hello!!", false},
      {"HD 5\r\n", "hello\r\n", false},
      {"VALUE k 0 5\r\n", "hello\r\n", false},
      {"RUBBISH\r\n", "", false},
      {"VERSION 1\r\n", "", false},
      {"HD", "", false},
      {"HD\n", "", false},
      {"HD\nHD\r\n", "", false},
      {"HD\r\nHD\r\n", "", false},
      {"\r\n", "", false},
      {"", "", false},
  };
  for (const auto& row : table) {
    RouteReply reply;
    ASSERT_TRUE(reply.assign("NF O1\r\n", ""));
    EXPECT_EQ(reply.assign(row.line, row.value), row.is_taken) << row.line << row.value;
    EXPECT_TRUE(reply.is_complete());
    EXPECT_EQ(reply.bytes(), row.is_taken ? std::string(row.line) + row.value : "NF O1\r\n");
  }
  const std::size_t room = memcache::kReplyLineBytesMax - 5;
  for (const std::size_t size : {room - 1, room, room + 1}) {
    RouteReply reply;
    EXPECT_EQ(reply.assign("HD " + std::string(size, 'O') + "\r\n", ""), size <= room) << size;
  }
}

TEST(RouteReply, IsReadLikeABackendsWhenComposed) {
  RouteReply reply;
  ASSERT_TRUE(reply.assign("VA 5 t9\r\n", "hello\r\n"));
  EXPECT_TRUE(reply.is_ok());
  EXPECT_EQ(reply.wire_code(), ReplyCode::MetaVa);
  EXPECT_EQ(reply.value(), "hello");
  EXPECT_EQ(reply.meta_line(), "t9");
}

TEST(RouteReply, HasNothingToShowWhenClosed) {
  RouteReply reply;
  reply.take(whole("VA 5 t30\r\nhello\r\n"));
  reply.close();
  EXPECT_TRUE(reply.is_closed());
  EXPECT_EQ(reply.bytes(), "");
  EXPECT_EQ(reply.value(), "");
  EXPECT_EQ(reply.meta_line(), "");
  EXPECT_FALSE(reply.find_flag('t').is_found);
  EXPECT_FALSE(reply.blank_flag('t'));
  reply.reset();
  EXPECT_FALSE(reply.is_closed());
  EXPECT_FALSE(reply.is_complete());
}

TEST(RouteReply, ForgetsTheLastReplyWhenTheNextBegins) {
  RouteReply reply;
  reply.take(whole("VA 5 t30\r\nhello\r\n"));
  reply.keep();
  reply.elapsed = base::Micros(7);
  reply.take(whole("NF\r\n"));
  EXPECT_EQ(reply.bytes(), "NF\r\n");
  EXPECT_FALSE(reply.has_value());
  EXPECT_EQ(reply.meta_line(), "");
  EXPECT_EQ(reply.elapsed, base::Micros(0));
}

}  // namespace
}  // namespace kvferry::route
