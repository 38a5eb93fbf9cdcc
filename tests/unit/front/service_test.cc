// How sessions end: half-closes, drains, limits of clients, idle clients, death with calls
// outstanding.
#include "front/service.h"

#include <sys/socket.h>

#include "tests/unit/front/session_rig.h"

namespace kvferry::front {
namespace {

using memcache::ReplyCode;
using test::Peer;

class ServiceTest : public SessionRig {
 protected:
  static std::string many_gets(std::size_t count) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) {
      all += "get k" + std::to_string(i) + "\r\n";
    }
    return all;
  }
  /// The client will send no more, but reads on.
  void half_close(Peer& client) {
    ASSERT_TRUE(run_until([&] { return client.stream->output_bytes() == 0; }));
    ASSERT_EQ(shutdown(client.stream->fd(), SHUT_WR), 0);
  }
};

TEST_P(ServiceTest, AHalfCloseStillAnswersAllThatWasReceived) {
  Peer& client = connect();
  client.send(many_gets(3) + "get unfinished");
  half_close(client);
  ASSERT_TRUE(wait_for_requests(3));
  settle();
  EXPECT_FALSE(client.is_gone());
  target_.finish();
  expect_closed(client);
  EXPECT_EQ(client.data, "END\r\nEND\r\nEND\r\n");
}

TEST_P(ServiceTest, AHalfCloseAnswersRequestsThatWereHeldBackToo) {
  options_.inflight_max = 2;
  options_.requests_per_turn = 3;
  configure();
  Peer& client = connect();
  client.send(many_gets(9));
  half_close(client);
  ASSERT_TRUE(run_until([&] {
    rig_.run_turns(2);
    target_.finish();
    return client.is_gone();
  }));
  EXPECT_EQ(target_.count(), 9U);
  EXPECT_EQ(client.data.size(), 9 * 5U);
}

TEST_P(ServiceTest, AHalfCloseOfAnIdleClientClosesIt) {
  Peer& client = connect();
  client.send("mn\r\n");
  expect_client(client, "MN\r\n");
  half_close(client);
  expect_closed(client);
}

TEST_P(ServiceTest, ADeadSessionWaitsForItsCallsAndDropsTheirBytes) {
  Peer& client = connect();
  client.send(many_gets(3));
  ASSERT_TRUE(wait_for_requests(3));
  target_.reply(2, "C\r\n");
  target_.part(1, "B1", true);
  service_->close_all();
  EXPECT_FALSE(service_->is_drained()) << "calls are outstanding";
  target_.part(1, "B2\r\n", false, true);
  EXPECT_FALSE(service_->is_drained());
  target_.reply(0, "A\r\n");
  EXPECT_TRUE(service_->is_drained());
  expect_closed(client);
  EXPECT_EQ(client.data, "");
}

TEST_P(ServiceTest, DrainAnswersWhatWasReceivedThenCloses) {
  Peer& idle = connect();
  Peer& busy = connect();
  busy.send("get a\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  service_->drain();
  expect_closed(idle);
  EXPECT_FALSE(busy.is_gone());
  busy.send("get late\r\n");
  settle();
  EXPECT_EQ(target_.count(), 1U);
  target_.reply(0, "A\r\n");
  expect_closed(busy);
  EXPECT_EQ(busy.data, "A\r\n");
  EXPECT_TRUE(service_->is_drained());
}

TEST_P(ServiceTest, DrainAnswersRequestsThatWereHeldBackToo) {
  options_.inflight_max = 2;
  configure();
  Peer& client = connect();
  client.send(many_gets(9));
  ASSERT_TRUE(wait_for_requests(2));
  settle();
  service_->drain();
  ASSERT_TRUE(run_until([&] {
    rig_.run_turns(2);
    target_.finish();
    return client.is_gone();
  }));
  EXPECT_EQ(target_.count(), 9U) << "requests that had come were dropped without an answer";
  EXPECT_EQ(client.data.size(), 9 * 5U);
}

TEST_P(ServiceTest, DrainLetsABodyComeToItsEnd) {
  const std::string value = test::pattern(100'000);
  Peer& client = connect();
  client.send("set big 0 0 100000\r\n" + value.substr(0, 5000));
  ASSERT_TRUE(wait_for_requests(1));
  service_->drain();
  settle();
  EXPECT_FALSE(target_.held[0].is_lost);
  client.send(value.substr(5000) + "\r\nget late\r\n");
  ASSERT_TRUE(run_until([&] { return target_.held[0].is_whole; }));
  target_.reply(0, "STORED\r\n", ReplyCode::Stored);
  ASSERT_TRUE(run_until([&] {
    target_.finish();
    return client.is_gone();
  }));
  EXPECT_EQ(client.data.substr(0, 8), "STORED\r\n");
}

TEST_P(ServiceTest, WhoComesDuringADrainIsSentAway) {
  service_->drain();
  Peer& client = connect();
  client.send("get a\r\n");
  expect_closed(client);
  EXPECT_EQ(target_.count(), 0U);
}

TEST_P(ServiceTest, TheLimitOfClientsIsExactAndPlacesComeFree) {
  limit_->set_max(2);
  Peer& one = connect();
  connect();
  ASSERT_TRUE(run_until([&] { return limit_->count() == 2; }));
  Peer& third = connect();
  expect_closed(third);
  EXPECT_EQ(third.data, "ERROR Too many open connections\r\n");
  EXPECT_EQ(stats().connections_rejected.get(), 1U);
  EXPECT_EQ(limit_->count(), 2U);
  EXPECT_EQ(process_limit_.count(), 2U);
  one.close();
  ASSERT_TRUE(run_until([&] { return limit_->count() == 1; }));
  Peer& fourth = connect();
  fourth.send("mn\r\n");
  expect_client(fourth, "MN\r\n");
}

TEST_P(ServiceTest, TheLimitOfTheProcessHoldsToo) {
  process_limit_.set_max(1);
  connect();
  ASSERT_TRUE(run_until([&] { return process_limit_.count() == 1; }));
  Peer& second = connect();
  expect_closed(second);
  EXPECT_EQ(limit_->count(), 1U) << "the place at the listener was not given back";
}

TEST_P(ServiceTest, IdleClientsAreSweptAndOthersAreNot) {
  options_.idle_timeout = base::Seconds(1);
  configure();
  Peer& idle = connect();
  Peer& waiting = connect();
  waiting.send("get a\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  service_->keep_house();
  settle();
  EXPECT_FALSE(idle.is_gone());
  rig_.run_for(base::Millis(1100));
  service_->keep_house();
  expect_closed(idle);
  EXPECT_FALSE(waiting.is_gone());
  target_.reply(0, "END\r\n");
  service_->keep_house();  // It was answered just now.
  expect_client(waiting, "END\r\n");
  settle();
  EXPECT_FALSE(waiting.is_gone());
}

TEST_P(ServiceTest, AClientThatShallGoButDoesNotReadIsClosed) {
  options_.stall_timeout = base::Millis(100);
  configure();
  Peer& client = connect();
  client.send("get a\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  client.stream->pause_reading();
  rig_.run_turns(2);
  target_.reply(0, test::pattern(32 << 20));
  service_->drain();
  EXPECT_FALSE(service_->is_drained());
  ASSERT_TRUE(run_until([&] { return service_->is_drained(); }));
  EXPECT_EQ(stats().clients_stalled.get(), 1U);
}

TEST_P(ServiceTest, NewOptionsAndTargetHoldForTheNextRequest) {
  Peer& client = connect();
  client.send("get a\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  HeldTarget other;
  service_->configure(options_, other);
  client.send("get b\r\n");
  ASSERT_TRUE(run_until([&] { return other.count() == 1; }));
  other.reply(0, "B\r\n");
  target_.reply(0, "A\r\n");
  expect_client(client, "A\r\nB\r\n");
  configure();
}

INSTANTIATE_TEST_SUITE_P(Engines, ServiceTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::front
