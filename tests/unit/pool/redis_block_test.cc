#include "pool/redis_block.h"

#include "tests/unit/pool/redis_pool_rig.h"

namespace kvferry::pool {
namespace {

using memcache::ReplyCode;
using test::Outcome;

const std::string kMulti = "*1\r\n$5\r\nMULTI\r\n";
const std::string kExec = "*1\r\n$4\r\nEXEC\r\n";

class RedisBlockTest : public RedisPoolRig {
 protected:
  /// Sends the transaction of `requests`.
  Outcome& execute(const std::vector<Words>& requests) {
    std::vector<redis::QueuedCommand> commands;
    std::string bytes;
    for (const Words& words : requests) {
      const std::vector<std::string_view> args(words.begin(), words.end());
      const std::string one = resp(words);
      commands.push_back({.command = redis::resolve(args).command,
                          .arg_count = static_cast<std::uint32_t>(words.size()),
                          .begin = bytes.size(),
                          .size_bytes = one.size()});
      bytes += one;
    }
    Outcome& outcome = sink_.make(memcache::Command::Unknown, lane_);
    pool_->execute(
        *outcome.call,
        redis::Block{
            .commands = commands, .bytes = bytes, .version = version_, .database = database_});
    return outcome;
  }
  std::string_view join(const Words& words, call::BlockPlace& place) {
    const std::vector<std::string_view> args(words.begin(), words.end());
    return pool_->join(redis::Request{.command = *redis::resolve(args).command,
                                      .args = args,
                                      .arg_count = static_cast<std::uint32_t>(words.size()),
                                      .bytes = {}},
                       place);
  }
};

TEST_P(RedisBlockTest, IsWrittenToTheBackendOfItsKeysWithNothingInBetween) {
  make(2);
  Outcome& before = send({"GET", key(1)});
  Outcome& block = execute({{"PING"}, {"SET", key(1), "x"}, {"MGET", key(1), key(1, 1)}});
  lane_ = 2;
  Outcome& after = send({"GET", key(1)});
  expect_received(1, resp({"GET", key(1)}) + kMulti + resp({"PING"}) + resp({"SET", key(1), "x"}) +
                         resp({"MGET", key(1), key(1, 1)}) + kExec + resp({"GET", key(1)}));
  reply(1,
        "$-1\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+PONG\r\n+OK\r\n*1\r\n:1\r\n:9\r\n");
  ASSERT_TRUE(wait_for(after));
  EXPECT_EQ(before.bytes, "$-1\r\n");
  EXPECT_EQ(block.bytes, "*3\r\n+PONG\r\n+OK\r\n*1\r\n:1\r\n");
  EXPECT_EQ(block.code, ReplyCode::Value);
  EXPECT_EQ(after.bytes, ":9\r\n");
  EXPECT_EQ(fakes_[1]->peers.size(), 1U);
}

TEST_P(RedisBlockTest, RepliesMayComeInPieces) {
  make(1);
  const std::string replies = "+OK\r\n+QUEUED\r\n*1\r\n$2\r\nhi\r\n";
  for (std::size_t cut = 1; cut < replies.size(); ++cut) {
    Outcome& block = execute({{"GET", "k"}});
    expect_received(0, kMulti + resp({"GET", "k"}) + kExec);
    reply(0, replies.substr(0, cut));
    rig_.run_turns(3);
    EXPECT_FALSE(block.is_done);
    reply(0, replies.substr(cut));
    ASSERT_TRUE(wait_for(block));
    EXPECT_EQ(block.bytes, "*1\r\n$2\r\nhi\r\n");
  }
  EXPECT_EQ(pool_->backends()[0]->stats().inflight.get(), 0U);
}

TEST_P(RedisBlockTest, ABigReplyFlowsAndCanBePaused) {
  make(1);
  const std::string value = test::pattern(300'000);
  Outcome& block = execute({{"GET", "k"}});
  block.pauses_left = 1;
  expect_received(0, kMulti + resp({"GET", "k"}) + kExec);
  reply(0, "+OK\r\n+QUEUED\r\n*1\r\n" + bulk(value));
  ASSERT_TRUE(run_until([&] { return block.is_paused; }));
  block.is_paused = false;
  block.call->source->resume(*block.call);
  ASSERT_TRUE(wait_for(block));
  EXPECT_TRUE(block.bytes == "*1\r\n" + bulk(value));
  EXPECT_GT(block.parts, 1);
}

TEST_P(RedisBlockTest, TellsWhyACommandWasNotQueued) {
  make(1);
  Outcome& block = execute({{"SET", "k", "x"}, {"GET", "k"}, {"SET", "k", "y"}});
  expect_received(
      0, kMulti + resp({"SET", "k", "x"}) + resp({"GET", "k"}) + resp({"SET", "k", "y"}) + kExec);
  reply(0,
        "+OK\r\n-OOM no memory\r\n+QUEUED\r\n-ERR later\r\n"
        "-EXECABORT Transaction discarded because of previous errors.\r\n");
  ASSERT_TRUE(wait_for(block));
  EXPECT_EQ(block.bytes, "-EXECABORT Transaction discarded because of: OOM no memory\r\n");
  EXPECT_EQ(block.code, ReplyCode::ServerError);
  EXPECT_EQ(block.parts, 1);
}

TEST_P(RedisBlockTest, ARefusedMultiIsNotTakenForAnAbort) {
  make(1);
  Outcome& block = execute({{"SET", "k", "x"}});
  expect_received(0, kMulti + resp({"SET", "k", "x"}) + kExec);
  reply(0, "-NOPERM no multi\r\n+OK\r\n-ERR EXEC without MULTI\r\n");
  ASSERT_TRUE(wait_for(block));
  EXPECT_EQ(block.bytes,
            "-ERR kvferry: the backend refused MULTI (NOPERM no multi); the commands may have "
            "run\r\n");
}

TEST_P(RedisBlockTest, ALostConnectionMayHaveRunIt) {
  make(1);
  for (const char* replies : {"", "+OK\r\n", "+OK\r\n+QUEUED\r\n", "+OK\r\n+QUEUED\r\n*1\r\n+"}) {
    Outcome& block = execute({{"SET", "k", "x"}});
    expect_received(0, kMulti + resp({"SET", "k", "x"}) + kExec);
    reply(0, replies);
    rig_.run_turns(3);
    cut(0);
    ASSERT_TRUE(wait_for(block)) << replies;
    EXPECT_EQ(block.bytes,
              "-UNAVAIL kvferry: connection lost after the command was sent; it may have run "
              "(pool p)\r\n")
        << replies;
    EXPECT_EQ(block.parts, 1);
    // The back-off of a connection that never gave a reply is not what is tested.
    ASSERT_TRUE(run_until([&] {
      Outcome& probe = send({"GET", "k"});
      const bool is_refused = probe.is_done;
      if (!is_refused) {
        EXPECT_TRUE(run_until([&] { return !fakes_[0]->peers.back()->data.empty(); }));
        fakes_[0]->peers.back()->take();
        reply(0, "+OK\r\n");
        EXPECT_TRUE(wait_for(probe));
      }
      return !is_refused;
    }));
  }
}

TEST_P(RedisBlockTest, ShutItIsAnswered) {
  make(1);
  Outcome& block = execute({{"SET", "k", "x"}});
  pool_->shut();
  EXPECT_TRUE(block.is_failure());
  EXPECT_TRUE(pool_->is_drained());
}

TEST_P(RedisBlockTest, SelectInsideIsOfTheBackendAndTakenBack) {
  options_.redis.db_base = 4;
  make(1);
  Outcome& block = execute({{"SELECT", "3"}, {"SET", "k", "x"}});
  expect_received(0, resp({"SELECT", "4"}));
  reply(0, "+OK\r\n");
  expect_received(
      0, kMulti + resp({"SELECT", "7"}) + resp({"SET", "k", "x"}) + kExec + resp({"SELECT", "4"}));
  reply(0, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n+OK\r\n");
  ASSERT_TRUE(wait_for(block));
  EXPECT_EQ(block.bytes, "*2\r\n+OK\r\n+OK\r\n");
  EXPECT_FALSE(pool_->is_drained());
  Outcome& after = send({"GET", "k"});
  expect_received(0, resp({"GET", "k"}));
  reply(0, "+OK\r\n$1\r\nx\r\n");
  ASSERT_TRUE(wait_for(after));
  EXPECT_EQ(after.bytes, "$1\r\nx\r\n");
  EXPECT_EQ(fakes_[0]->peers.size(), 1U);
}

TEST_P(RedisBlockTest, AConnectionInAnotherDatabaseIsClosed) {
  make(1);
  Outcome& block = execute({{"SELECT", "3"}});
  expect_received(0, kMulti + resp({"SELECT", "3"}) + kExec + resp({"SELECT", "0"}));
  Outcome& after = send({"GET", "k"});
  expect_received(0, resp({"GET", "k"}));
  reply(0, "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n-NOPERM no select\r\n:1\r\n");
  ASSERT_TRUE(wait_for(after));
  EXPECT_EQ(block.bytes, "*1\r\n+OK\r\n");
  EXPECT_TRUE(after.bytes.starts_with("-BADREPLY kvferry: ")) << after.bytes;
  ASSERT_TRUE(run_until([&] { return fakes_[0]->peers[0]->is_gone(); }));
}

TEST_P(RedisBlockTest, ABigReplyThatNobodyWantsEndsBeforeTheDatabaseIsRestored) {
  make(1);
  Outcome& block = execute({{"SELECT", "3"}, {"GET", "k"}});
  block.pauses_left = 1;
  expect_received(
      0, kMulti + resp({"SELECT", "3"}) + resp({"GET", "k"}) + kExec + resp({"SELECT", "0"}));
  reply(0, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n" + bulk(test::pattern(300'000)) + "+OK\r\n");
  ASSERT_TRUE(run_until([&] { return block.is_paused; }));
  block.call->source->discard(*block.call);
  ASSERT_TRUE(wait_for(block));
  ASSERT_TRUE(run_until([&] { return pool_->is_drained(); }));
}

TEST_P(RedisBlockTest, KeysOfTwoBackendsDoNotJoin) {
  make(2);
  call::BlockPlace place;
  EXPECT_EQ(join({"PING"}, place), "");
  EXPECT_FALSE(place.is_known);
  EXPECT_EQ(join({"SET", key(1), "x"}, place), "");
  EXPECT_EQ(join({"MGET", key(1), key(1, 1)}, place), "");
  EXPECT_EQ(join({"GET", key(0)}, place), "CROSSSLOT Keys in request don't hash to the same slot");
  EXPECT_EQ(join({"DEL", key(1), key(0)}, place),
            "CROSSSLOT Keys in request don't hash to the same slot");
  EXPECT_EQ(join({"EVAL", "return 1", "0"}, place), "");
  EXPECT_EQ(join({"SORT", key(1), "BY", "w_*"}, place),
            "ERR BY option of SORT denied in Cluster mode.");
  EXPECT_EQ(join({"PUBLISH", key(1), "m"}, place), "");
  EXPECT_NE(join({"PUBLISH", key(0), "m"}, place), "");
  EXPECT_EQ(join({"GET", key(1, 2)}, place), "");
}

TEST_P(RedisBlockTest, StrictPoolsJoinKeysOfOneTag) {
  options_.redis.same_slot = SameSlot::Strict;
  options_.placement.hash_tag = "{}";
  make(2);
  call::BlockPlace place;
  EXPECT_EQ(join({"SET", "{a}1", "x"}, place), "");
  EXPECT_EQ(join({"SET", "{a}2", "x"}, place), "");
  EXPECT_NE(join({"SET", key(place.shard), "x"}, place), "");
}

TEST_P(RedisBlockTest, OneBackendHasAllKeys) {
  make(1);
  call::BlockPlace place;
  EXPECT_EQ(join({"MGET", "a", "b", "c"}, place), "");
}

TEST_P(RedisBlockTest, KeysThatHaveMovedApartAbortIt) {
  make(2);
  EXPECT_EQ(execute({{"GET", key(0)}, {"GET", key(1)}}).bytes,
            "-EXECABORT Transaction discarded because of: CROSSSLOT Keys in request don't hash to "
            "the same slot\r\n");
}

TEST_P(RedisBlockTest, WithoutABackendOrDatabaseItIsAnError) {
  make(0);
  EXPECT_EQ(execute({{"GET", "k"}}).bytes, "-UNAVAIL kvferry: no usable backend (pool p)\r\n");
  database_ = 99;
  EXPECT_EQ(execute({{"GET", "k"}}).bytes, "-ERR DB index is out of range\r\n");
}

INSTANTIATE_TEST_SUITE_P(Engines, RedisBlockTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::pool
