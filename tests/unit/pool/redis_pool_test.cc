#include "pool/redis_pool.h"

#include "tests/unit/pool/redis_pool_rig.h"

namespace kvferry::pool {
namespace {

using memcache::ReplyCode;
using test::Outcome;

class RedisPoolTest : public RedisPoolRig {};

TEST_P(RedisPoolTest, SendsEachKeyToItsBackendAsItCame) {
  make(2);
  Outcome& a = send({"set", key(0), "x"});
  Outcome& b = send({"GET", key(1)});
  Outcome& c = send({"GET", key(0)});
  expect_received(0, resp({"set", key(0), "x"}) + resp({"GET", key(0)}));
  expect_received(1, resp({"GET", key(1)}));
  reply(1, "$-1\r\n");
  reply(0, "+OK\r\n$1\r\nx\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done && b.is_done && c.is_done; }));
  EXPECT_EQ(a.bytes, "+OK\r\n");
  EXPECT_EQ(b.bytes, "$-1\r\n");
  EXPECT_EQ(b.code, ReplyCode::NotFound);
  EXPECT_EQ(c.bytes, "$1\r\nx\r\n");
}

TEST_P(RedisPoolTest, ErrorsOfABackendArePassedOnUnchanged) {
  make(1);
  Outcome& a = send({"LPUSH", "k", "x"});
  expect_received(0, resp({"LPUSH", "k", "x"}));
  reply(0, "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
  ASSERT_TRUE(wait_for(a));
  EXPECT_EQ(a.bytes, "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
}

TEST_P(RedisPoolTest, AnUnknownCommandHasItsKeyInItsFirstArgument) {
  make(2);
  send({"NEWCMD", key(1), "x"});
  expect_received(1, resp({"NEWCMD", key(1), "x"}));
  Outcome& bare = send({"NEWCMD"});
  ASSERT_TRUE(run_until([&] { return !fakes_[0]->received().empty(); }));
  reply(0, "+a\r\n");
  reply(1, "+b\r\n");
  ASSERT_TRUE(wait_for(bare));
}

TEST_P(RedisPoolTest, CommandsWithoutAKeyGoRound) {
  make(3);
  for (int i = 0; i < 6; ++i) {
    send({"LOLWUT"});
  }
  for (const std::size_t i : {0U, 1U, 2U}) {
    expect_received(i, resp({"LOLWUT"}) + resp({"LOLWUT"}));
    reply(i, "+a\r\n+b\r\n");
  }
  ASSERT_TRUE(run_until([&] { return sink_.answered() == 6; }));
}

TEST_P(RedisPoolTest, CommandsWithoutAKeyAvoidBackendsThatAreDown) {
  make(2);
  while (!snapshot_->health[0]->is_down()) {
    snapshot_->health[0]->on_failure();
  }
  for (int i = 0; i < 3; ++i) {
    send({"LOLWUT"});
  }
  expect_received(1, resp({"LOLWUT"}) + resp({"LOLWUT"}) + resp({"LOLWUT"}));
  reply(1, "+a\r\n+b\r\n+c\r\n");
  ASSERT_TRUE(run_until([&] { return sink_.answered() == 3; }));
}

TEST_P(RedisPoolTest, EachDatabaseAndVersionHasConnectionsOfItsOwn) {
  options_.redis.db_base = 4;
  options_.redis.password = "pw";
  make(1);
  const std::string auth = resp({"AUTH", "pw"});
  Outcome& a = send({"GET", "k"});
  expect_received(0, auth + resp({"SELECT", "4"}));
  reply(0, "+OK\r\n+OK\r\n");
  expect_received(0, resp({"GET", "k"}));
  database_ = 2;
  Outcome& b = send({"GET", "k"});
  ASSERT_TRUE(run_until([&] { return fakes_[0]->peers.size() == 2; }));
  expect_received(0, auth + resp({"SELECT", "6"}));
  reply(0, "+OK\r\n+OK\r\n");
  expect_received(0, resp({"GET", "k"}));
  version_ = resp::Version::Three;
  Outcome& c = send({"GET", "k"});
  ASSERT_TRUE(run_until([&] { return fakes_[0]->peers.size() == 3; }));
  expect_received(0, auth + resp({"HELLO", "3"}) + resp({"SELECT", "6"}));
  reply(0, "+OK\r\n%0\r\n+OK\r\n");
  expect_received(0, resp({"GET", "k"}));
  for (const std::size_t i : {2U, 1U, 0U}) {
    fakes_[0]->peer(i).send(":" + std::to_string(i) + "\r\n");
  }
  ASSERT_TRUE(run_until([&] { return sink_.answered() == 3; }));
  EXPECT_EQ(a.bytes + b.bytes + c.bytes, ":0\r\n:1\r\n:2\r\n");
  EXPECT_EQ(pool_->backends()[0]->stats().requests.get(), 3U);
  EXPECT_EQ(pool_->backends()[0]->stats().links_up.get(), 3U);
}

TEST_P(RedisPoolTest, HasNoMoreDatabasesThanItSays) {
  options_.redis.databases = 3;
  make(2);
  database_ = 3;
  for (const Words& words : {Words{"GET", "k"}, Words{"MGET", key(0), key(1)}, Words{"DBSIZE"}}) {
    EXPECT_EQ(send(words).bytes, "-ERR DB index is out of range\r\n");
  }
  database_ = 2;
  send({"GET", key(0)});
  expect_received(0, resp({"SELECT", "2"}));
}

TEST_P(RedisPoolTest, StreamsABigArgumentOverALinkOfItsOwn) {
  make(2);
  const std::string value = test::pattern(100'000);
  const std::string head = "*5\r\n$3\r\nSET\r\n" + bulk(key(1)) + "$100000\r\n";
  Outcome& up = send_as({"SET", key(1)}, head, 5);
  ASSERT_NE(up.call->body_sink, nullptr);
  up.call->body_sink->on_body(*up.call, value, false);
  up.call->body_sink->on_body(*up.call, "\r\n" + bulk("EX") + bulk("10"), true);
  expect_received(1, head + value + "\r\n" + bulk("EX") + bulk("10"));
  reply(1, "+OK\r\n");
  ASSERT_TRUE(wait_for(up));
  EXPECT_EQ(up.bytes, "+OK\r\n");
}

TEST_P(RedisPoolTest, AnUploadThatWaitsKeepsItsWholeHead) {
  make(1);
  std::string head = "*5\r\n$5\r\nRPUSH\r\n" + bulk("k") + bulk(test::pattern(60'000)) +
                     bulk(test::pattern(60'000)) + "$100000\r\n";
  std::vector<Outcome*> ups;
  for (std::size_t i = 0; i <= kUploadLinksMax; ++i) {
    ups.push_back(&send_as({"RPUSH", "k"}, head, 5));
  }
  ASSERT_TRUE(ups.back()->call->body_waits);
  const std::string body = test::pattern(100'000) + "\r\n";
  ups.front()->call->body_sink->on_body(*ups.front()->call, body, true);
  ASSERT_TRUE(run_until([&] { return fakes_[0]->peers.size() == kUploadLinksMax; }));
  ASSERT_TRUE(run_until(
      [&] { return fakes_[0]->received().size() >= kUploadLinksMax * head.size() + body.size(); }));
  for (auto& peer : fakes_[0]->peers) {
    const bool is_whole = peer->data.size() > head.size();
    peer->take();
    if (is_whole) {
      peer->send(":1\r\n");
    }
  }
  ASSERT_TRUE(run_until([&] { return ups.back()->body_resumes == 1; }));
  ups.back()->call->body_sink->on_body(*ups.back()->call, body, true);
  ASSERT_TRUE(run_until([&] { return fakes_[0]->received().size() >= head.size() + body.size(); }));
  EXPECT_TRUE(fakes_[0]->received() == head + body);
}

TEST_P(RedisPoolTest, NoBackendAtAllIsAnError) {
  make(0);
  EXPECT_EQ(send({"GET", "a"}).bytes, "-UNAVAIL kvferry: no usable backend (pool p)\r\n");
  EXPECT_EQ(send({"LOLWUT"}).bytes, "-UNAVAIL kvferry: no usable backend (pool p)\r\n");
}

TEST_P(RedisPoolTest, WhatBelongsToTheSessionIsRefused) {
  make(1);
  for (const char* name : {"SHUTDOWN", "MULTI", "PING", "BLPOP"}) {
    EXPECT_TRUE(send({name, "a", "0"}).bytes.starts_with("-ERR kvferry: '")) << name;
  }
  EXPECT_EQ(send({"SHUTDOWN"}).bytes,
            "-ERR kvferry: 'shutdown' is refused by the proxy (pool p)\r\n");
}

TEST_P(RedisPoolTest, ANewSnapshotKeepsLinksOfKeptServersAndDrainsTheOthers) {
  make(2);
  Outcome& kept = send({"GET", key(0)});
  Outcome& removed = send({"GET", key(1)});
  expect_received(0, resp({"GET", key(0)}));
  expect_received(1, resp({"GET", key(1)}));
  auto gone = std::move(fakes_[1]);
  fakes_.pop_back();
  snapshot_ = snapshot();
  pool_->apply(snapshot_);
  ASSERT_EQ(pool_->backends().size(), 1U);
  Outcome& more = send({"GET", "more"});
  expect_received(0, resp({"GET", "more"}));
  EXPECT_EQ(fakes_[0]->peers.size(), 1U) << "the connection was made anew";
  EXPECT_FALSE(pool_->is_drained());
  gone->peer(0).send("+old\r\n");
  reply(0, "+a\r\n+b\r\n");
  ASSERT_TRUE(run_until([&] { return kept.is_done && removed.is_done && more.is_done; }));
  EXPECT_EQ(removed.bytes, "+old\r\n");
  EXPECT_TRUE(pool_->is_drained());
  ASSERT_TRUE(run_until([&] { return gone->peer(0).is_gone(); }));
}

TEST_P(RedisPoolTest, AnotherPasswordMakesConnectionsAnew) {
  make(1);
  Outcome& before = send({"GET", "a"});
  expect_received(0, resp({"GET", "a"}));
  options_.redis.password = "new";
  snapshot_ = snapshot();
  pool_->apply(snapshot_);
  lane_ = 2;  // A client that has nothing outstanding on the old connection.
  Outcome& after = send({"GET", "b"});
  ASSERT_TRUE(run_until([&] { return fakes_[0]->peers.size() == 2; }));
  expect_received(0, resp({"AUTH", "new"}));
  fakes_[0]->peer(0).send("+a\r\n");
  reply(0, "+OK\r\n");
  expect_received(0, resp({"GET", "b"}));
  reply(0, "+b\r\n");
  ASSERT_TRUE(run_until([&] { return before.is_done && after.is_done; }));
  EXPECT_EQ(before.bytes + after.bytes, "+a\r\n+b\r\n");
}

TEST_P(RedisPoolTest, RetiredAndShutItAnswersEverything) {
  make(2);
  Outcome& a = send({"GET", key(0)});
  database_ = 1;
  Outcome& b = send({"GET", key(1)});
  pool_->retire();
  EXPECT_FALSE(pool_->is_drained());
  pool_->shut();
  EXPECT_TRUE(pool_->is_drained());
  EXPECT_TRUE(a.is_failure());
  EXPECT_TRUE(b.is_failure());
}

TEST_P(RedisPoolTest, TwemproxyStyleSaysSystemErrors) {
  options_.error_style = ErrorStyle::Twemproxy;
  make(1);
  fakes_[0]->stop();
  Outcome& a = send({"GET", "a"});
  ASSERT_TRUE(wait_for(a));
  EXPECT_EQ(a.bytes, "-ERR Connection refused\r\n");
}

INSTANTIATE_TEST_SUITE_P(Engines, RedisPoolTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::pool
