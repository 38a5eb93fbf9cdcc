#include "pool/redis_broadcast.h"

#include "tests/unit/pool/redis_pool_rig.h"

namespace kvferry::pool {
namespace {

using memcache::ReplyCode;
using test::Outcome;

class RedisBroadcastTest : public RedisPoolRig {
 protected:
  /// Sends `words` to two backends, which answer as they are told.
  Outcome& ask_both(const Words& words, std::string_view first, std::string_view second) {
    Outcome& outcome = send(words);
    expect_received(0, resp(words));
    expect_received(1, resp(words));
    reply(0, first);
    rig_.run_turns(2);
    EXPECT_FALSE(outcome.is_done);
    reply(1, second);
    EXPECT_TRUE(wait_for(outcome));
    return outcome;
  }
};

TEST_P(RedisBroadcastTest, MergesAsTheTableSays) {
  make(2);
  EXPECT_EQ(ask_both({"DBSIZE"}, ":2\r\n", ":3\r\n").bytes, ":5\r\n");
  EXPECT_EQ(ask_both({"FLUSHALL"}, "+OK\r\n", "+OK\r\n").bytes, "+OK\r\n");
  EXPECT_EQ(ask_both({"KEYS", "*"}, "*1\r\n$1\r\na\r\n", "*1\r\n$1\r\nb\r\n").bytes,
            "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
  EXPECT_EQ(ask_both({"SCRIPT", "EXISTS", "x"}, "*1\r\n:1\r\n", "*1\r\n:0\r\n").bytes,
            "*1\r\n:0\r\n");
  EXPECT_EQ(ask_both({"SCRIPT", "LOAD", "x"}, "$2\r\nab\r\n", "$2\r\nab\r\n").bytes,
            "$2\r\nab\r\n");
  EXPECT_EQ(ask_both({"SCRIPT", "KILL"}, "-NOTBUSY no\r\n", "+OK\r\n").bytes, "+OK\r\n");
  EXPECT_EQ(ask_both({"SCRIPT", "KILL"}, "-NOTBUSY a\r\n", "-NOTBUSY b\r\n").bytes,
            "-NOTBUSY a\r\n");
  EXPECT_EQ(ask_both({"LASTSAVE"}, ":20\r\n", ":10\r\n").bytes, ":10\r\n");
}

TEST_P(RedisBroadcastTest, AMissingPartIsNeverASmallerSum) {
  make(2);
  Outcome& size = ask_both({"DBSIZE"}, ":2\r\n", "-LOADING wait\r\n");
  EXPECT_EQ(size.bytes,
            "-PARTIAL kvferry: DBSIZE finished on 1 of 2 shards (2 counted); first failure: "
            "LOADING wait\r\n");
  EXPECT_EQ(size.code, ReplyCode::ServerError);
  EXPECT_EQ(ask_both({"SCRIPT", "FLUSH"}, "-ERR a\r\n", "+OK\r\n").bytes,
            "-PARTIAL kvferry: SCRIPT FLUSH finished on 1 of 2 shards (0 counted); first failure: "
            "ERR a\r\n");
  EXPECT_EQ(ask_both({"DBSIZE"}, ":2\r\n", "+OK\r\n").bytes,
            "-BADREPLY kvferry: backend reply does not fit the command (pool p)\r\n");
}

TEST_P(RedisBroadcastTest, ABackendThatIsDeadIsAMissingPart) {
  make(2);
  fakes_[1]->stop();
  Outcome& size = send({"DBSIZE"});
  expect_received(0, resp({"DBSIZE"}));
  reply(0, ":2\r\n");
  ASSERT_TRUE(wait_for(size));
  EXPECT_EQ(size.bytes,
            "-PARTIAL kvferry: DBSIZE finished on 1 of 2 shards (2 counted); first failure: "
            "UNAVAIL kvferry: could not connect to backend: Connection refused (pool p)\r\n");
}

TEST_P(RedisBroadcastTest, DoesNotWaitLongerThanItsTimeoutAndDropsLateParts) {
  options_.redis.broadcast_timeout = base::Millis(50);
  make(2);
  Outcome& size = send({"DBSIZE"});
  expect_received(0, resp({"DBSIZE"}));
  expect_received(1, resp({"DBSIZE"}));
  reply(0, ":2\r\n");
  ASSERT_TRUE(wait_for(size));
  EXPECT_EQ(size.bytes,
            "-PARTIAL kvferry: DBSIZE finished on 1 of 2 shards (2 counted); first failure: "
            "TIMEOUT kvferry: no answer within 50 ms; the command may have run (pool p)\r\n");
  EXPECT_EQ(calls_.live(), 1U);
  Outcome& next = send({"GET", key(1)});
  expect_received(1, resp({"GET", key(1)}));
  reply(1, ":3\r\n+x\r\n");
  ASSERT_TRUE(wait_for(next));
  EXPECT_EQ(next.bytes, "+x\r\n");
}

TEST_P(RedisBroadcastTest, ABigMergedReplyFlows) {
  make(2);
  const std::string big = "*1\r\n" + bulk(test::pattern(200'000));
  Outcome& keys = send({"KEYS", "*"});
  keys.pauses_left = 3;
  expect_received(0, resp({"KEYS", "*"}));
  expect_received(1, resp({"KEYS", "*"}));
  reply(0, big);
  reply(1, big);
  ASSERT_TRUE(run_until([&] {
    if (keys.is_paused) {
      sink_.resume(keys);
    }
    return keys.is_done;
  }));
  EXPECT_TRUE(keys.bytes == "*2\r\n" + big.substr(4) + big.substr(4));
  EXPECT_GT(keys.parts, 3);
}

TEST_P(RedisBroadcastTest, ASinkThatIsGoneDiscardsTheRest) {
  make(2);
  const std::string big = "*1\r\n" + bulk(test::pattern(200'000));
  Outcome& keys = send({"KEYS", "*"});
  keys.pauses_left = 1;
  expect_received(0, resp({"KEYS", "*"}));
  expect_received(1, resp({"KEYS", "*"}));
  reply(0, big);
  reply(1, big);
  ASSERT_TRUE(run_until([&] { return keys.is_paused; }));
  sink_.discard(keys);
  ASSERT_TRUE(wait_for(keys));
  EXPECT_LT(keys.bytes.size(), 200'000U);
}

TEST_P(RedisBroadcastTest, MoreThanMayBeKeptIsAnError) {
  options_.redis.max_merge_bytes = 1000;
  make(2);
  const std::string big = "*1\r\n" + bulk(test::pattern(600));
  EXPECT_EQ(ask_both({"KEYS", "*"}, big, big).bytes,
            "-OVERLOAD kvferry: merged reply is larger than 1000 bytes (pool p)\r\n");
}

TEST_P(RedisBroadcastTest, NoBackendAtAllIsAnError) {
  make(0);
  EXPECT_EQ(send({"DBSIZE"}).bytes, "-UNAVAIL kvferry: no usable backend (pool p)\r\n");
}

TEST_P(RedisBroadcastTest, OneBackendTakesItAsItCame) {
  make(1);
  Outcome& scan = send({"SCAN", "0"});
  expect_received(0, resp({"SCAN", "0"}));
  reply(0, "*2\r\n$1\r\n0\r\n*0\r\n");
  ASSERT_TRUE(wait_for(scan));
}

TEST_P(RedisBroadcastTest, ShutItAnswers) {
  make(2);
  Outcome& size = send({"DBSIZE"});
  pool_->shut();
  EXPECT_TRUE(size.is_failure());
}

INSTANTIATE_TEST_SUITE_P(Engines, RedisBroadcastTest, testing::ValuesIn(test::kEngines),
                         test::name_of);

}  // namespace
}  // namespace kvferry::pool
