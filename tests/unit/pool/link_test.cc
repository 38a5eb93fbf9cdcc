#include "pool/link.h"

#include "tests/unit/pool/link_rig.h"

namespace kvferry::pool {
namespace {

using test::Outcome;

class LinkTest : public LinkRig {
 protected:
  LinkTest() { make_link(); }
};

TEST_P(LinkTest, MatchesRepliesInTheOrderOfTheCalls) {
  Outcome& a = get("a");
  Outcome& b = get("b");
  Outcome& c = get("c");
  EXPECT_EQ(link_->phase(), Link::Phase::Connecting);
  expect_received("get a\r\nget b\r\nget c\r\n");
  EXPECT_EQ(link_->inflight(), 3U);
  peer().send("VALUE a 0 1\r\nA\r\nEND\r\nEND\r\nVALUE c 0 1\r\nC\r\nEND\r\n");
  ASSERT_TRUE(run_until([&] { return c.is_done; }));
  EXPECT_EQ(a.bytes, "VALUE a 0 1\r\nA\r\nEND\r\n");
  EXPECT_EQ(b.bytes, "END\r\n");
  EXPECT_EQ(c.bytes, "VALUE c 0 1\r\nC\r\nEND\r\n");
  EXPECT_EQ(b.code, memcache::ReplyCode::End);
  EXPECT_LT(a.order, b.order);
  EXPECT_LT(b.order, c.order);
  EXPECT_EQ(host_.proven, 1);
  EXPECT_GE(host_.emptied, 1);
  EXPECT_EQ(host_.counters.requests.get(), 3U);
  EXPECT_EQ(host_.counters.inflight.get(), 0U);
  EXPECT_EQ(host_.counters.links_up.get(), 1U);
  EXPECT_EQ(link_->inflight(), 0U);
}

TEST_P(LinkTest, JoinsRepliesThatComeInPieces) {
  Outcome& a = get("a");
  Outcome& b = get("b");
  expect_received("get a\r\nget b\r\n");
  const std::string replies = "VALUE a 0 3\r\nxyz\r\nEND\r\nVALUE b 0 1\r\nB\r\nEND\r\n";
  for (const char byte : replies) {
    peer().send(std::string_view(&byte, 1));
    rig_.run_turns(3);
  }
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_EQ(a.bytes + b.bytes, replies);
}

TEST_P(LinkTest, PassesABigValueOnInParts) {
  Outcome& a = get("a");
  Outcome& b = get("b");
  expect_received("get a\r\nget b\r\n");
  const std::string value = test::pattern(1'000'000);
  const std::string reply = "VALUE a 0 1000000\r\n" + value + "\r\nEND\r\n";
  peer().send(reply.substr(0, 500'000));
  ASSERT_TRUE(run_until([&] { return a.parts > 1; }));
  EXPECT_FALSE(a.is_done);
  EXPECT_EQ(a.code, memcache::ReplyCode::Value);
  peer().send(reply.substr(500'000) + "END\r\n");
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_TRUE(a.bytes == reply);
  EXPECT_GT(a.parts, 2);
}

TEST_P(LinkTest, ATimeoutFailsAllCallsAndLateRepliesReachNobody) {
  host_.pool.timeout = base::Millis(60);
  prove();
  Outcome& a = get("a");
  Outcome& b = get("b");
  expect_received("get a\r\nget b\r\n");
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_EQ(a.bytes,
            "SERVER_ERROR kvferry: no answer within 60 ms; the command may have run (pool p, "
            "backend b)\r\n");
  EXPECT_EQ(b.bytes, a.bytes);
  EXPECT_EQ(failed(FailureKind::Timeout), 2U);
  EXPECT_EQ(host_.counters.inflight.get(), 0U);
  test::Peer& old = peer();
  Outcome& c = get("c");  // The link worked before, so a fresh connection is made at once.
  expect_received("get c\r\n", 1);
  if (old.stream) {
    old.send("VALUE a 0 1\r\nA\r\nEND\r\nEND\r\n");
  }
  peer().send("VALUE c 0 1\r\nC\r\nEND\r\n");
  ASSERT_TRUE(run_until([&] { return c.is_done; }));
  EXPECT_EQ(c.bytes, "VALUE c 0 1\r\nC\r\nEND\r\n");
}

TEST_P(LinkTest, ATimeoutCountsFromTheCallThatIsFirst) {
  host_.pool.timeout = base::Millis(150);
  Outcome& a = get("a");
  expect_received("get a\r\n");
  rig_.run_for(base::Millis(90));
  Outcome& b = get("b");
  expect_received("get b\r\n");
  peer().send("END\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  rig_.run_for(base::Millis(90));  // Past the time of a, within that of b.
  EXPECT_FALSE(b.is_done);
  peer().send("END\r\n");
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_EQ(b.bytes, "END\r\n");
}

TEST_P(LinkTest, ProgressOfABigReplyPushesTheTimeoutBack) {
  host_.pool.timeout = base::Millis(150);
  Outcome& a = get("a");
  expect_received("get a\r\n");
  const std::string value = test::pattern(400);
  peer().send("VALUE a 0 400\r\n");
  for (int i = 0; i < 4; ++i) {
    peer().send(value.substr(static_cast<std::size_t>(i) * 100, 100));
    rig_.run_for(base::Millis(70));
    ASSERT_FALSE(a.is_done);
  }
  peer().send("\r\nEND\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_FALSE(a.is_failure());
}

TEST_P(LinkTest, StrayBytesCloseTheConnection) {
  prove();
  peer().send("END\r\n");
  ASSERT_TRUE(run_until([&] { return link_->phase() == Link::Phase::Down; }));
  EXPECT_EQ(host_.counters.stray_replies.get(), 1U);
  EXPECT_EQ(host_.failures, std::vector{FailureKind::BadReply});
  ASSERT_TRUE(run_until([&] { return peer().is_gone(); }));
}

TEST_P(LinkTest, StrayBytesBehindAReplyDoNotAnswerTheNextCall) {
  Outcome& a = get("a");
  expect_received("get a\r\n");
  peer().send("END\r\nVALUE evil 0 1\r\nE\r\nEND\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done && link_->phase() == Link::Phase::Down; }));
  EXPECT_EQ(a.bytes, "END\r\n");
  Outcome& b = get("b");
  expect_received("get b\r\n", 1);
  peer().send("END\r\n");
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_EQ(b.bytes, "END\r\n");
}

TEST_P(LinkTest, ABadReplyFailsAllCallsAndCloses) {
  prove();
  Outcome& a = get("a");
  Outcome& b = get("b");
  expect_received("get a\r\nget b\r\n");
  peer().send("STORED\r\nEND\r\n");
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  for (const Outcome* outcome : {&a, &b}) {
    EXPECT_EQ(outcome->bytes,
              "SERVER_ERROR kvferry: backend reply was not valid; the command may have run (pool "
              "p, backend b)\r\n");
    EXPECT_FALSE(outcome->is_broken);
  }
  EXPECT_EQ(failed(FailureKind::BadReply), 2U);
  EXPECT_EQ(link_->phase(), Link::Phase::Down);
}

TEST_P(LinkTest, AReplyCutInTheMiddleIsBrokenAndTheNextAreErrors) {
  Outcome& a = get("a");
  Outcome& b = get("b");
  expect_received("get a\r\nget b\r\n");
  peer().send("VALUE a 0 100\r\nonly a part");
  ASSERT_TRUE(run_until([&] { return a.parts == 1; }));
  peer().close();
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_TRUE(a.is_broken);
  EXPECT_EQ(a.bytes, "VALUE a 0 100\r\nonly a part");
  EXPECT_FALSE(b.is_broken);
  EXPECT_EQ(b.bytes,
            "SERVER_ERROR kvferry: connection to backend lost; the command may have run (pool p, "
            "backend b)\r\n");
}

TEST_P(LinkTest, DamageInsideAReplyIsBroken) {
  Outcome& a = get("a");
  expect_received("get a\r\n");
  peer().send("VALUE a 0 3\r\nxyz\r\nVALUE b 0 2\r\n");
  ASSERT_TRUE(run_until([&] { return a.parts == 1; }));
  peer().send("toolong\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_TRUE(a.is_broken);
  EXPECT_EQ(failed(FailureKind::BadReply), 1U);
}

TEST_P(LinkTest, AnIdleCloseIsNoFailure) {
  prove();
  peer().close();
  ASSERT_TRUE(run_until([&] { return link_->phase() == Link::Phase::Down; }));
  EXPECT_TRUE(host_.failures.empty());
  EXPECT_EQ(host_.counters.links_up.get(), 0U);
  prove();  // The next call connects anew, without back-off.
  EXPECT_EQ(backend_.peers.size(), 2U);
}

TEST_P(LinkTest, TheSinkPausesAndResumes) {
  Outcome& a = get("a");
  Outcome& b = get("b");
  a.pauses_left = 1;
  expect_received("get a\r\nget b\r\n");
  const std::string reply = "VALUE a 0 3000000\r\n" + test::pattern(3'000'000) + "\r\nEND\r\n";
  peer().send(reply + "END\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_paused; }));
  const base::SteadyTime begin = loop().now();
  const int parts = a.parts;
  rig_.run_for(base::Millis(20));
  EXPECT_EQ(a.parts, parts);
  EXPECT_TRUE(link_->is_paused());
  EXPECT_FALSE(b.is_done);
  // The loop runs on the real clock: a busy machine makes the pause as long as it likes.
  if (loop().now() - begin < kStallNotice) {
    EXPECT_EQ(host_.stalled, 0);
  }
  sink_.resume(a);
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_TRUE(a.bytes == reply);
  EXPECT_EQ(b.bytes, "END\r\n");
}

TEST_P(LinkTest, APausedReplyThatCameWholeIsHandedOverAfterResume) {
  Outcome& a = get("a");
  a.pauses_left = 3;
  expect_received("get a\r\n");
  peer().send("VALUE a 0 10\r\n01234");
  ASSERT_TRUE(run_until([&] { return a.is_paused; }));
  peer().send("56789\r\nEND\r\n");
  rig_.run_for(base::Millis(20));
  EXPECT_FALSE(a.is_done);
  while (!a.is_done) {
    if (a.is_paused) {
      sink_.resume(a);
    }
    rig_.run_turns(1);
  }
  EXPECT_EQ(a.bytes, "VALUE a 0 10\r\n0123456789\r\nEND\r\n");
}

TEST_P(LinkTest, TheSinkDiscardsTheRestAndTheNextReplyIsWhole) {
  Outcome& a = get("a");
  Outcome& b = get("b");
  a.pauses_left = 1;
  expect_received("get a\r\nget b\r\n");
  peer().send("VALUE a 0 500000\r\n" + test::pattern(500'000) + "\r\nEND\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_paused; }));
  const std::string taken = a.bytes;
  sink_.discard(a);
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_EQ(a.bytes.size(), taken.size()) << "bytes came after discard";
  const std::string reply = "VALUE b 0 200000\r\n" + test::pattern(200'000) + "\r\nEND\r\n";
  peer().send(reply);
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_TRUE(b.bytes == reply);
}

TEST_P(LinkTest, APauseOfKStallNoticeIsReportedOnce) {
  Outcome& a = get("a");
  a.pauses_left = 1;
  expect_received("get a\r\n");
  peer().send("VALUE a 0 10\r\n01234");
  ASSERT_TRUE(run_until([&] { return a.is_paused; }));
  ASSERT_TRUE(run_until([&] { return host_.stalled > 0; }));
  EXPECT_EQ(host_.stalled, 1);
  sink_.resume(a);
  peer().send("56789\r\nEND\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
}

TEST_P(LinkTest, APausedReplyDoesNotTimeOut) {
  host_.pool.timeout = base::Millis(40);
  Outcome& a = get("a");
  a.pauses_left = 1;
  expect_received("get a\r\n");
  peer().send("VALUE a 0 10\r\n01234");
  ASSERT_TRUE(run_until([&] { return a.is_paused; }));
  rig_.run_for(base::Millis(100));
  EXPECT_FALSE(a.is_done);
  sink_.resume(a);
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_TRUE(a.is_broken) << "the time goes on after resume";
}

TEST_P(LinkTest, ARetiredLinkServesItsCallsThenClosesAndSaysSo) {
  Outcome& a = get("a");
  expect_received("get a\r\n");
  link_->retire();
  const int before = host_.emptied;
  peer().send("END\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_EQ(link_->phase(), Link::Phase::Down);
  EXPECT_GT(host_.emptied, before) << "nobody would destroy it";
  EXPECT_EQ(link_->admit(), FailureKind::Draining);
}

TEST_P(LinkTest, ShutFailsWhatIsOutstanding) {
  Outcome& a = get("a");
  expect_received("get a\r\n");
  link_->shut(FailureKind::Draining);
  EXPECT_TRUE(a.is_failure());
  EXPECT_TRUE(host_.failures.empty()) << "no failure of the backend";
  EXPECT_EQ(failed(FailureKind::Draining), 1U);
}

TEST_P(LinkTest, KnowsItsLanes) {
  EXPECT_FALSE(link_->has_lane(1));
  get("a", 5);
  get("b", 6);
  EXPECT_TRUE(link_->has_lane(5));
  EXPECT_TRUE(link_->has_lane(6));
  EXPECT_FALSE(link_->has_lane(7));
  link_->shut(FailureKind::Draining);
  EXPECT_FALSE(link_->has_lane(5));
}

INSTANTIATE_TEST_SUITE_P(Engines, LinkTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::pool
