#include "pool/resp_reader.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/splitter.h"

namespace kvferry::pool {
namespace {

using memcache::ReplyCode;

struct Reply {
  std::string bytes;
  ReplyCode code;
  bool is_push = false;

  friend bool operator==(const Reply&, const Reply&) = default;
};

/// Feeds a reader as a link does.
class Feeder {
 public:
  void feed(std::string_view bytes) {
    carried_ += bytes;
    std::size_t taken = 0;
    while (taken < carried_.size() && !is_bad) {
      const auto parsed = reader_.next(std::string_view(carried_).substr(taken));
      if (parsed.is_need_more()) {
        break;
      }
      if (parsed.is_failed()) {
        is_bad = true;
        return;
      }
      const RespChunk& chunk = parsed.value();
      EXPECT_EQ(chunk.is_first, begun_.empty());
      ++chunks;
      begun_ += carried_.substr(taken, chunk.size_bytes);
      taken += chunk.size_bytes;
      if (chunk.is_last) {
        replies.push_back(
            Reply{.bytes = std::move(begun_), .code = chunk.code, .is_push = chunk.is_push});
        begun_.clear();
      }
    }
    carried_.erase(0, taken);
  }
  bool is_between() const { return reader_.is_between(); }

  std::vector<Reply> replies;
  int chunks = 0;
  bool is_bad = false;

 private:
  RespReader reader_;
  std::string carried_;
  std::string begun_;
};

const std::vector<Reply> kReplies = {
    {"+OK\r\n", ReplyCode::Ok},
    {"-ERR no\r\n", ReplyCode::ServerError},
    {":-12\r\n", ReplyCode::Number},
    {"$-1\r\n", ReplyCode::NotFound},
    {"*-1\r\n", ReplyCode::NotFound},
    {"_\r\n", ReplyCode::NotFound},
    {"$0\r\n\r\n", ReplyCode::Value},
    {"$5\r\na\r\nbc\r\n", ReplyCode::Value},
    {"*2\r\n$1\r\na\r\n*1\r\n:3\r\n", ReplyCode::Value},
    {">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n", ReplyCode::Value, true},
    {"!5\r\nERR x\r\n", ReplyCode::ServerError},
    {"|1\r\n+ttl\r\n:3\r\n:7\r\n", ReplyCode::Number},
    {"%1\r\n+a\r\n#t\r\n", ReplyCode::Value},
    {"+\r\n", ReplyCode::Ok},
};

TEST(RespReader, CutsRepliesWhereverTheBytesAreCut) {
  std::string all;
  for (const Reply& reply : kReplies) {
    all += reply.bytes;
  }
  for (const test::Pieces& pieces : test::all_cuts(all)) {
    Feeder feeder;
    for (const std::string_view piece : pieces) {
      feeder.feed(piece);
    }
    EXPECT_FALSE(feeder.is_bad);
    EXPECT_TRUE(feeder.is_between());
    ASSERT_EQ(feeder.replies, kReplies);
    EXPECT_EQ(feeder.chunks, static_cast<int>(kReplies.size())) << "a small reply came in parts";
  }
}

TEST(RespReader, PassesABigReplyOnInParts) {
  const std::string big = "$10000\r\n" + std::string(10000, 'x') + "\r\n";
  Feeder feeder;
  feeder.feed(big.substr(0, kReplyPartBytesMin - 1));
  EXPECT_EQ(feeder.chunks, 0);
  feeder.feed(big.substr(kReplyPartBytesMin - 1, 1));
  EXPECT_EQ(feeder.chunks, 1);
  feeder.feed(big.substr(kReplyPartBytesMin, 10));
  EXPECT_EQ(feeder.chunks, 2);
  feeder.feed(big.substr(kReplyPartBytesMin + 10) + "+OK\r\n");
  ASSERT_EQ(feeder.replies.size(), 2U);
  EXPECT_TRUE(feeder.replies[0].bytes == big);
  EXPECT_EQ(feeder.replies[0].code, ReplyCode::Value);
  EXPECT_EQ(feeder.replies[1].bytes, "+OK\r\n");
}

TEST(RespReader, KeepsALineInOnePiece) {
  const std::string line = "-ERR " + std::string(20000, 'e') + "\r\n";
  Feeder feeder;
  feeder.feed(line.substr(0, 10000));
  EXPECT_EQ(feeder.chunks, 0);
  feeder.feed(line.substr(10000));
  ASSERT_EQ(feeder.replies.size(), 1U);
  EXPECT_EQ(feeder.chunks, 1);
  EXPECT_EQ(feeder.replies[0].code, ReplyCode::ServerError);
}

TEST(RespReader, RefusesWhatIsNoReply) {
  for (const char* bytes :
       {"STORED\r\n", "\r\n", "$01\r\na\r\n", "$1\r\nabc\r\n", "$-2\r\n", "$1x\r\na\r\n", "+OK\n",
        "*1\r\n>1\r\n+a\r\n", "$\r\n", "*x\r\n", "$1\r\na\rx", "$99999999999999999999\r\n"}) {
    for (const test::Pieces& pieces : test::all_cuts(std::string_view(bytes))) {
      Feeder feeder;
      for (const std::string_view piece : pieces) {
        feeder.feed(piece);
      }
      EXPECT_TRUE(feeder.is_bad) << bytes;
      EXPECT_TRUE(feeder.replies.empty()) << bytes;
    }
  }
}

TEST(RespReader, ABigPushIsAPushInAllItsParts) {
  RespReader reader;
  const std::string push = ">1\r\n$9000\r\n" + std::string(9000, 'p') + "\r\n";
  const auto first = reader.next(std::string_view(push).substr(0, 5000));
  ASSERT_TRUE(first.is_done());
  EXPECT_TRUE(first.value().is_push);
  const auto second = reader.next(std::string_view(push).substr(5000));
  ASSERT_TRUE(second.is_done());
  EXPECT_TRUE(second.value().is_push && second.value().is_last);
  const auto third = reader.next("*1\r\n:1\r\n");
  ASSERT_TRUE(third.is_done());
  EXPECT_FALSE(third.value().is_push);
}

}  // namespace
}  // namespace kvferry::pool
