#include "pool/pool.h"

#include "tests/unit/pool/multiget_rig.h"

namespace kvferry::pool {
namespace {

using test::Outcome;

class PoolTest : public MultiGetRig {};

TEST_P(PoolTest, SendsEachKeyToItsBackendAsItCame) {
  make(2);
  Outcome& a = sink_.send(*pool_, "set " + key(0) + "  5 0 3 \r\nabc\r\n");
  Outcome& b = sink_.send(*pool_, "mg " + key(1) + " v k\r\n");
  expect_received(0, "set " + key(0) + "  5 0 3 \r\nabc\r\n");
  expect_received(1, "mg " + key(1) + " v k\r\n");
  reply(0, "STORED\r\n");
  reply(1, "VA 2 k\r\nhi\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done && b.is_done; }));
  EXPECT_EQ(a.bytes, "STORED\r\n");
  EXPECT_EQ(b.bytes, "VA 2 k\r\nhi\r\n");
}

TEST_P(PoolTest, AsksForTheAnswerThatTheClientDoesNotWant) {
  make(1);
  Outcome& a = sink_.send(*pool_, "delete k noreply\r\n");
  Outcome& b = sink_.send(*pool_, "ms k 1 q\r\nx\r\n");
  expect_received(0, "delete k\r\nms k 1\r\nx\r\n");
  reply(0, "DELETED\r\nHD\r\n");
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_EQ(a.bytes, "DELETED\r\n");
}

TEST_P(PoolTest, StreamsABigValueOverALinkOfItsOwn) {
  make(1);
  const std::string value = test::pattern(100'000);
  Outcome& up = sink_.send(*pool_, "set k 0 0 100000 noreply\r\n" + value.substr(0, 100));
  ASSERT_NE(up.call, nullptr);
  ASSERT_NE(up.call->body_sink, nullptr);
  up.call->body_sink->on_body(*up.call, value + "\r\n", true);
  expect_received(0, "set k 0 0 100000\r\n" + value + "\r\n");
  reply(0, "STORED\r\n");
  ASSERT_TRUE(wait_for(up));
  EXPECT_EQ(up.bytes, "STORED\r\n");
}

TEST_P(PoolTest, FlushAllGoesToAllAndAnswersOnce) {
  make(3);
  Outcome& flush = sink_.send(*pool_, "flush_all 5 noreply\r\n");
  for (const std::size_t i : {0U, 1U, 2U}) {
    expect_received(i, "flush_all 5\r\n");
    EXPECT_FALSE(flush.is_done);
    reply(i, "OK\r\n");
  }
  ASSERT_TRUE(wait_for(flush));
  EXPECT_EQ(flush.bytes, "OK\r\n");
}

TEST_P(PoolTest, FlushAllAnswersTheFirstFailure) {
  make(3);
  Outcome& flush = sink_.send(*pool_, "flush_all\r\n");
  const char* answers[] = {"OK\r\n", "SERVER_ERROR one\r\n", "ERROR\r\n"};
  for (const std::size_t i : {0U, 1U, 2U}) {
    expect_received(i, "flush_all\r\n");
    reply(i, answers[i]);
    rig_.run_until([&] { return i == 2 || calls_.live() == 3 - i; });
  }
  ASSERT_TRUE(wait_for(flush));
  EXPECT_EQ(flush.bytes, "SERVER_ERROR one\r\n");
  EXPECT_EQ(flush.code, memcache::ReplyCode::ServerError);
}

TEST_P(PoolTest, FlushAllOfDeadBackendsFails) {
  make(2);
  fakes_[1]->stop();
  Outcome& flush = sink_.send(*pool_, "flush_all\r\n");
  expect_received(0, "flush_all\r\n");
  reply(0, "OK\r\n");
  ASSERT_TRUE(wait_for(flush));
  EXPECT_TRUE(flush.is_failure());
}

TEST_P(PoolTest, NoBackendAtAllIsAnError) {
  make(0);
  EXPECT_EQ(sink_.send(*pool_, "flush_all\r\n").bytes, "SERVER_ERROR kvferry: no backend\r\n");
  EXPECT_EQ(sink_.send(*pool_, "get a\r\n").bytes,
            "SERVER_ERROR kvferry: no usable backend (pool p)\r\n");
  EXPECT_EQ(sink_.send(*pool_, "get a b\r\n").bytes,
            "SERVER_ERROR kvferry: no usable backend (pool p)\r\n");
}

TEST_P(PoolTest, OtherCommandsWithoutAKeyAreUnknownToAPool) {
  make(1);
  EXPECT_EQ(sink_.send(*pool_, "stats\r\n").bytes, "ERROR\r\n");
}

TEST_P(PoolTest, ANewSnapshotKeepsLinksOfKeptServersAndDrainsTheOthers) {
  make(2);
  const std::string kept_key = key(0);
  Outcome& kept = sink_.send(*pool_, "get " + kept_key + "\r\n");
  Outcome& removed = sink_.send(*pool_, "get " + key(1) + "\r\n");
  expect_received(0, "get " + kept_key + "\r\n");
  expect_received(1, "get " + key(1) + "\r\n");
  auto gone = std::move(fakes_[1]);
  fakes_.pop_back();
  snapshot_ = snapshot();
  pool_->apply(snapshot_);
  ASSERT_EQ(pool_->backends().size(), 1U);
  Outcome& more = sink_.send(*pool_, "get more\r\n");
  expect_received(0, "get more\r\n");
  EXPECT_EQ(fakes_[0]->peers.size(), 1U) << "the connection was made anew";
  EXPECT_FALSE(pool_->is_drained());
  gone->peer(0).send("VALUE old 0 1\r\nx\r\nEND\r\n");
  reply(0, "END\r\nEND\r\n");
  ASSERT_TRUE(run_until([&] { return kept.is_done && removed.is_done && more.is_done; }));
  EXPECT_EQ(removed.bytes, "VALUE old 0 1\r\nx\r\nEND\r\n");
  EXPECT_TRUE(pool_->is_drained());
  ASSERT_TRUE(run_until([&] { return gone->peer(0).is_gone(); }));
}

TEST_P(PoolTest, ARemovedServerMayFailAfterItsSnapshotIsGone) {
  make(2);
  Outcome& removed = sink_.send(*pool_, "get " + key(1) + "\r\n");
  expect_received(1, "get " + key(1) + "\r\n");
  auto gone = std::move(fakes_[1]);
  fakes_.pop_back();
  for (int i = 0; i < 3; ++i) {
    options_.name = "renewed" + std::to_string(i);
    snapshot_ = snapshot();
    pool_->apply(snapshot_);
  }
  gone->stop();
  ASSERT_TRUE(wait_for(removed));
  EXPECT_NE(removed.bytes.find("(pool p, backend b1)"), std::string::npos) << removed.bytes;
}

TEST_P(PoolTest, PreconnectsWhenToldTo) {
  options_.preconnect = true;
  options_.server_connections = 2;
  make(2);
  ASSERT_TRUE(
      run_until([&] { return fakes_[0]->peers.size() == 2 && fakes_[1]->peers.size() == 2; }));
}

TEST_P(PoolTest, RetiredAndShutItAnswersEverything) {
  make(2);
  Outcome& a = get({key(0), key(1)});
  Outcome& b = sink_.send(*pool_, "set k 0 0 100000\r\n");
  pool_->retire();
  EXPECT_FALSE(pool_->is_drained());
  pool_->shut();
  EXPECT_TRUE(pool_->is_drained());
  EXPECT_TRUE(a.is_failure());
  EXPECT_TRUE(b.is_failure());
}

INSTANTIATE_TEST_SUITE_P(Engines, PoolTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::pool
