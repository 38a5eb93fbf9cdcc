#include "pool/redis_scan.h"

#include "tests/unit/pool/redis_pool_rig.h"

namespace kvferry::pool {
namespace {

using test::Outcome;

TEST(ScanCursor, IsReadAsItWasWritten) {
  for (const ScanCursor& cursor :
       {ScanCursor{}, ScanCursor{.backend_cursor = ScanCursor::kBackendCursorMax},
        ScanCursor{.backend_cursor = 7, .shard = 1023, .fingerprint = 31}}) {
    EXPECT_EQ(ScanCursor::parse(std::to_string(cursor.number())), cursor);
    EXPECT_LT(cursor.number(), std::uint64_t{1} << 63U);
  }
  EXPECT_EQ(ScanCursor::parse("0"), ScanCursor{});
  EXPECT_TRUE(ScanCursor::parse("18446744073709551615").has_value());
}

TEST(ScanCursor, RefusesWhatAServerRefuses) {
  for (const char* text : {"", "x", "1x", "-1", "+1", " 1", "18446744073709551616"}) {
    EXPECT_FALSE(ScanCursor::parse(text).has_value()) << text;
  }
}

class RedisScanTest : public RedisPoolRig {
 protected:
  static std::string step(std::string_view cursor, const Words& keys) {
    std::string bytes = "*2\r\n" + bulk(cursor) + "*" + std::to_string(keys.size()) + "\r\n";
    for (const std::string& key : keys) {
      bytes += bulk(key);
    }
    return bytes;
  }
  /// The cursor in a reply, and what follows it.
  static std::pair<std::string, std::string> split(const std::string& reply) {
    EXPECT_TRUE(reply.starts_with("*2\r\n$")) << reply;
    const std::size_t begin = reply.find('\n', 4) + 1;
    const std::size_t end = reply.find('\r', begin);
    return {reply.substr(begin, end - begin), reply.substr(end + 2)};
  }
};

TEST_P(RedisScanTest, VisitsOneShardAfterTheOther) {
  make(3);
  std::string cursor = "0";
  Words seen;
  for (const std::size_t shard : {0U, 1U, 2U}) {
    for (const char* inner : {"0", "48"}) {
      const bool is_first = inner == std::string_view("0");
      Outcome& scan = send({"SCAN", cursor, "COUNT", "2"});
      expect_received(shard, resp({"SCAN", inner, "COUNT", "2"}));
      reply(shard, step(is_first ? "48" : "0", {"k"}));
      ASSERT_TRUE(wait_for(scan));
      const auto [next, keys] = split(scan.bytes);
      EXPECT_EQ(keys, "*1\r\n$1\r\nk\r\n");
      cursor = next;
      EXPECT_EQ(cursor == "0", shard == 2 && !is_first) << shard;
    }
  }
}

TEST_P(RedisScanTest, TranslatesRepliesInAnyPieces) {
  make(2);
  const std::string whole = step("12345", {"a", "b"});
  std::string expected;
  for (std::size_t at = 1; at < whole.size(); ++at) {
    Outcome& scan = send({"SCAN", "0"});
    expect_received(0, resp({"SCAN", "0"}));
    reply(0, whole.substr(0, at));
    rig_.run_turns(2);
    reply(0, whole.substr(at));
    ASSERT_TRUE(wait_for(scan));
    if (expected.empty()) {
      expected = scan.bytes;
    }
    EXPECT_EQ(scan.bytes, expected);
  }
}

TEST_P(RedisScanTest, ABigStepFlowsAndMayBePausedAndDiscarded) {
  make(2);
  const Words keys = {test::pattern(200'000), "k"};
  Outcome& scan = send({"SCAN", "0"});
  scan.pauses_left = 2;
  expect_received(0, resp({"SCAN", "0"}));
  reply(0, step("0", keys));
  ASSERT_TRUE(run_until([&] {
    if (scan.is_paused) {
      sink_.resume(scan);
    }
    return scan.is_done;
  }));
  EXPECT_TRUE(split(scan.bytes).second == step("0", keys).substr(11));
  Outcome& gone = send({"SCAN", "0"});
  gone.pauses_left = 1;
  expect_received(0, resp({"SCAN", "0"}));
  reply(0, step("0", keys));
  ASSERT_TRUE(run_until([&] { return gone.is_paused; }));
  sink_.discard(gone);
  ASSERT_TRUE(wait_for(gone));
}

TEST_P(RedisScanTest, CursorsThatAreNoneAreRefused) {
  make(2);
  EXPECT_EQ(send({"SCAN", "x"}).bytes, "-ERR invalid cursor\r\n");
}

TEST_P(RedisScanTest, ACursorOfAShardThatIsGoneEnds) {
  make(2);
  const ScanCursor cursor{.backend_cursor = 5, .shard = 9};
  EXPECT_EQ(send({"SCAN", std::to_string(cursor.number())}).bytes, step("0", {}));
}

TEST_P(RedisScanTest, ErrorsAndOtherRepliesEndTheStep) {
  make(2);
  for (const std::string& bad : {std::string("+OK\r\n"), step("281474976710656", {}), step("x", {}),
                                 step("", {}), std::string("*1\r\n$1\r\n0\r\n"),
                                 "*3\r\n" + bulk(test::pattern(20'000)) + ":1\r\n:2\r\n"}) {
    Outcome& scan = send({"SCAN", "0"});
    expect_received(0, resp({"SCAN", "0"}));
    reply(0, bad);
    ASSERT_TRUE(wait_for(scan));
    EXPECT_EQ(scan.bytes, "-BADREPLY kvferry: backend reply does not fit the command (pool p)\r\n");
  }
  Outcome& scan = send({"SCAN", "0"});
  expect_received(0, resp({"SCAN", "0"}));
  reply(0, "-ERR syntax error\r\n");
  ASSERT_TRUE(wait_for(scan));
  EXPECT_EQ(scan.bytes, "-ERR syntax error\r\n");
  Outcome& lost = send({"SCAN", "0"});
  expect_received(0, resp({"SCAN", "0"}));
  cut(0);
  ASSERT_TRUE(wait_for(lost));
  EXPECT_TRUE(lost.bytes.starts_with("-UNAVAIL kvferry: connection lost")) << lost.bytes;
}

INSTANTIATE_TEST_SUITE_P(Engines, RedisScanTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::pool
