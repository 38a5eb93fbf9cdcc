// Links that cannot connect, back off, are full, or carry uploads.
#include "pool/link.h"
#include "tests/unit/pool/link_rig.h"

namespace kvferry::pool {
namespace {

using test::Outcome;

class LinkLimitsTest : public LinkRig {
 protected:
  LinkLimitsTest() { make_link(); }
};

TEST_P(LinkLimitsTest, ARefusedConnectFailsTheCallsAndRefusesOthersMeanwhile) {
  backend_.stop();
  Outcome& a = get("a");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_EQ(a.bytes,
            "SERVER_ERROR kvferry: could not connect to backend: Connection refused (pool p, "
            "backend b)\r\n");
  EXPECT_EQ(host_.failures, std::vector{FailureKind::ConnectRefused});
  EXPECT_EQ(link_->admit(), FailureKind::Down);
}

TEST_P(LinkLimitsTest, ReconnectsByItselfWithBackOff) {
  backend_.stop();
  Outcome& a = get("a");
  ASSERT_TRUE(run_until([&] { return host_.failures.size() >= 3; }));
  EXPECT_TRUE(a.is_done);
  backend_.restart();
  ASSERT_TRUE(run_until([&] { return link_->phase() == Link::Phase::Up; }));
  prove();
}

TEST_P(LinkLimitsTest, NewLimitsOfTheBackOffHoldForAWaitThatIsUnderWay) {
  host_.pool.backoff_min = host_.pool.backoff_max = base::Millis(3'600'000);
  make_link();
  backend_.stop();
  get("a");
  ASSERT_TRUE(run_until([&] { return host_.failures.size() == 1; }));
  host_.pool = quick_options();
  link_->follow_options();
  ASSERT_TRUE(run_until([&] { return host_.failures.size() >= 4; }))
      << "waits as before the reload";
}

TEST_P(LinkLimitsTest, DoesNotReconnectWhereItIsNotWanted) {
  host_.reconnects = false;
  backend_.stop();
  get("a");
  ASSERT_TRUE(run_until([&] { return !host_.failures.empty(); }));
  rig_.run_for(base::Millis(60));
  EXPECT_EQ(host_.failures.size(), 1U);
  EXPECT_EQ(link_->admit(), FailureKind::Down);
  backend_.restart();
  link_->clear_backoff();
  prove();
}

TEST_P(LinkLimitsTest, ABackendThatOnlyAcceptsIsTriedLessAndLessOften) {
  host_.pool.backoff_max = base::Millis(100'000);
  backend_.refuses = true;
  link_->preconnect();
  ASSERT_TRUE(run_until([&] { return host_.failures.size() >= 3; }));
  // Waits of 20, 40, and then 80 ms (half of that at least). A wait that began anew with each
  // accepted connection would be over after 20.
  const std::size_t failures = host_.failures.size();
  rig_.run_for(base::Millis(35));
  EXPECT_EQ(host_.failures.size(), failures);
}

TEST_P(LinkLimitsTest, AConnectThatTakesTooLongFails) {
  host_.pool.connect_timeout = base::Millis(30);
  // Nothing answers in the block that is reserved for documentation; where the network refuses at
  // once instead, the failure is the other one.
  host_.backend_address = net::Address::from_ip("192.0.2.1", 9).value();
  Outcome& a = get("a");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  ASSERT_EQ(host_.failures.size(), 1U);
  EXPECT_TRUE(host_.failures[0] == FailureKind::ConnectTimeout ||
              host_.failures[0] == FailureKind::ConnectRefused);
  EXPECT_TRUE(a.is_failure());
  EXPECT_EQ(a.bytes.find("may have run"), std::string::npos);
}

TEST_P(LinkLimitsTest, ANameWithoutAddressIsUnresolved) {
  host_.backend_address = net::Address();
  EXPECT_EQ(link_->admit(), FailureKind::Unresolved);
  link_->preconnect();
  EXPECT_EQ(link_->phase(), Link::Phase::Down);
}

TEST_P(LinkLimitsTest, MaxInflightIsExact) {
  host_.pool.max_inflight = 3;
  get("a");
  get("b");
  EXPECT_FALSE(link_->admit().has_value());
  Outcome& c = get("c");
  EXPECT_EQ(link_->admit(), FailureKind::Overload);
  expect_received("get a\r\nget b\r\nget c\r\n");
  peer().send("END\r\n");
  ASSERT_TRUE(run_until([&] { return link_->inflight() == 2; }));
  EXPECT_FALSE(link_->admit().has_value());
  peer().send("END\r\nEND\r\n");
  ASSERT_TRUE(run_until([&] { return c.is_done; }));
}

TEST_P(LinkLimitsTest, MaxQueueBytesIsExact) {
  // While connecting nothing leaves, so every byte is counted. "get a\r\n" has 7.
  for (const std::uint64_t limit : {6, 7, 8}) {
    host_.pool.max_queue_bytes = limit;
    make_link();
    get("a");
    EXPECT_EQ(link_->queued_bytes(), 7U);
    EXPECT_EQ(link_->admit().has_value(), limit <= 7) << limit;
    link_->shut(FailureKind::Draining);
  }
}

TEST_P(LinkLimitsTest, PreconnectsAndClosesWhenRetired) {
  link_->preconnect();
  ASSERT_TRUE(run_until([&] { return link_->phase() == Link::Phase::Up; }));
  EXPECT_EQ(host_.counters.links_up.get(), 1U);
  link_->retire();
  EXPECT_EQ(link_->phase(), Link::Phase::Down);
  EXPECT_EQ(host_.counters.links_up.get(), 0U);
  EXPECT_TRUE(host_.failures.empty());
}

class UploadTest : public LinkRig {
 protected:
  UploadTest() { make_link(Link::Use::Exclusive); }
  /// Passes `bytes` to the link as the session would.
  call::Flow body(Outcome& outcome, std::string_view bytes, bool is_last) {
    return outcome.call->body_sink->on_body(*outcome.call, bytes, is_last);
  }
};

TEST_P(UploadTest, SendsTheBodyBehindItsLine) {
  Outcome& outcome = upload(5);
  ASSERT_EQ(outcome.call->body_sink, link_.get());
  EXPECT_FALSE(outcome.call->body_waits);
  body(outcome, "he", false);
  body(outcome, "llo\r\n", true);
  EXPECT_EQ(outcome.call->body_sink, nullptr);
  expect_received("set k 0 0 5\r\nhello\r\n");
  peer().send("STORED\r\n");
  ASSERT_TRUE(run_until([&] { return outcome.is_done; }));
  EXPECT_EQ(outcome.bytes, "STORED\r\n");
  EXPECT_EQ(link_->phase(), Link::Phase::Up) << "the connection can be used again";
}

TEST_P(UploadTest, PausesTheBodyAtTheWindowAndResumesIt) {
  const std::string piece = test::pattern(64 * 1024);
  Outcome& outcome = upload(100 * piece.size());
  std::size_t sent = 0;
  while (body(outcome, piece, false) == call::Flow::Continue) {
    ++sent;
    ASSERT_LT(sent * piece.size(), 2 * kUploadWindowBytes);
  }
  EXPECT_GT(link_->queued_bytes(), kUploadWindowBytes);
  ASSERT_TRUE(run_until([&] { return outcome.body_resumes == 1; }));
  EXPECT_LE(link_->queued_bytes(), kUploadWindowBytes / 2);
  outcome.call->body_sink->on_body_lost(*outcome.call);
}

TEST_P(UploadTest, AnEarlyReplyClosesTheConnection) {
  Outcome& outcome = upload(100'000);
  body(outcome, "some", false);
  expect_received("set k 0 0 100000\r\nsome");
  peer().send("SERVER_ERROR object too large for cache\r\n");
  const int before = host_.emptied;
  ASSERT_TRUE(run_until([&] { return outcome.is_done; }));
  EXPECT_EQ(outcome.bytes, "SERVER_ERROR object too large for cache\r\n");
  EXPECT_EQ(link_->phase(), Link::Phase::Down);
  EXPECT_GT(host_.emptied, before) << "an upload that waits for this link would not start";
  EXPECT_TRUE(host_.failures.empty());
}

TEST_P(UploadTest, ABodyThatIsLostFailsTheCallButNotTheBackend) {
  Outcome& outcome = upload(100'000);
  body(outcome, "some", false);
  expect_received("set k 0 0 100000\r\nsome");
  outcome.call->body_sink->on_body_lost(*outcome.call);
  EXPECT_TRUE(outcome.is_failure());
  EXPECT_TRUE(host_.failures.empty());
  ASSERT_TRUE(run_until([&] { return peer().is_gone(); }));
  EXPECT_FALSE(link_->admit().has_value()) << "no back-off";
}

TEST_P(UploadTest, TheTimeOfASlowSenderIsNotTheBackends) {
  host_.pool.timeout = base::Millis(40);
  Outcome& outcome = upload(5);
  body(outcome, "he", false);
  rig_.run_for(base::Millis(100));
  ASSERT_FALSE(outcome.is_done);
  body(outcome, "llo\r\n", true);
  ASSERT_TRUE(run_until([&] { return outcome.is_done; }));
  EXPECT_EQ(host_.failures.back(), FailureKind::Timeout) << "now it is the backend's time";
}

TEST_P(UploadTest, ABackendThatStopsTakingTheBodyIsGivenUp) {
  for (const bool has_timeout : {true, false}) {
    host_.pool.timeout = has_timeout ? std::optional(base::Millis(50)) : std::nullopt;
    host_.pool.body_timeout = base::Millis(has_timeout ? 3'600'000 : 50);
    make_link(Link::Use::Exclusive);
    Outcome& outcome = upload(std::size_t{1} << 30);
    expect_received("set k 0 0 1073741824\r\n", backend_.peers.size());
    peer().stream->pause_reading();
    const std::string piece = test::pattern(64 * 1024);
    bool is_paused = false;
    int resumes = 0;
    ASSERT_TRUE(run_until([&] {
      is_paused = is_paused && outcome.body_resumes == resumes;
      if (!outcome.is_done && !is_paused) {
        is_paused = body(outcome, piece, false) == call::Flow::Pause;
        resumes = outcome.body_resumes;
      }
      return outcome.is_done;
    })) << has_timeout;
    EXPECT_EQ(host_.failures.back(), FailureKind::Timeout);
    host_.failures.clear();
  }
}

TEST_P(UploadTest, ALostConnectionTakesTheBodySinkAway) {
  Outcome& outcome = upload(100'000);
  expect_received("set k 0 0 100000\r\n");
  peer().close();
  ASSERT_TRUE(run_until([&] { return outcome.is_done; }));
  EXPECT_EQ(failed(FailureKind::Closed), 1U);
}

INSTANTIATE_TEST_SUITE_P(Engines, LinkLimitsTest, testing::ValuesIn(test::kEngines), test::name_of);
INSTANTIATE_TEST_SUITE_P(Engines, UploadTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::pool
