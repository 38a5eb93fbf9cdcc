// Limits and back-pressure: many requests, clients that do not read, streamed bodies.
#include "front/session.h"
#include "tests/unit/front/session_rig.h"

namespace kvferry::front {
namespace {

using memcache::ReplyCode;
using test::Peer;

class FlowTest : public SessionRig {};

std::string many(std::string_view request, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    all += request;
  }
  return all;
}

TEST_P(FlowTest, APipelineGoesOnOverTurns) {
  options_.requests_per_turn = 3;
  configure();
  Peer& client = connect();
  client.send(many("get a\r\n", 20));
  std::vector<std::size_t> seen;
  ASSERT_TRUE(run_until([&] {
    if (seen.empty() || seen.back() != target_.count()) {
      seen.push_back(target_.count());
    }
    return target_.count() == 20;
  }));
  for (std::size_t i = 1; i < seen.size(); ++i) {
    EXPECT_LE(seen[i] - seen[i - 1], 6U) << "more than the share of a turn and its receive";
  }
  target_.finish();
  expect_client(client, many("END\r\n", 20));
}

TEST_P(FlowTest, TheInflightLimitIsExactAndWhatWaitsGoesOn) {
  for (const std::uint32_t limit : {1U, 4U}) {
    options_.inflight_max = limit;
    configure();
    Peer& client = connect();
    const std::size_t base = target_.count();
    client.send(many("get a\r\n", 10));
    ASSERT_TRUE(wait_for_requests(base + limit));
    settle();
    EXPECT_EQ(target_.count(), base + limit);
    // It goes on when half are answered.
    std::size_t next = base;
    ASSERT_TRUE(run_until([&] {
      rig_.run_turns(1);
      if (next < target_.count()) {
        target_.reply(next++, "END\r\n");
      }
      EXPECT_LE(target_.count() - next, limit);
      return next == base + 10;
    }));
    expect_client(client, many("END\r\n", 10));
  }
}

TEST_P(FlowTest, LocalAnswersCountToTheInflightLimitToo) {
  options_.inflight_max = 4;
  configure();
  Peer& client = connect();
  client.send("get a\r\n" + many("mn\r\n", 30) + many("bad\r\n", 30) + "get b\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  settle();
  EXPECT_LE(stats().inflight.get(), 4U) << "answers pile up behind a slow backend";
  target_.reply(0, "END\r\n");
  ASSERT_TRUE(wait_for_requests(2));
  target_.reply(1, "END\r\n");
  expect_client(client, "END\r\n" + many("MN\r\n", 30) + many("ERROR\r\n", 30) + "END\r\n");
}

TEST_P(FlowTest, AFullOutputPausesTheSourceUntilTheClientReads) {
  Peer& client = connect();
  client.send("get a\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  client.stream->pause_reading();
  rig_.run_turns(2);
  const std::string piece = test::pattern(64 * 1024);
  std::string sent;
  bool is_first = true;
  for (bool pauses = false; !pauses; is_first = false) {
    pauses = target_.part(0, piece, is_first);
    sent += piece;
    rig_.run_turns(2);
    ASSERT_LT(sent.size(), std::size_t{64} << 20);
  }
  EXPECT_EQ(target_.held[0].resumes, 0);
  client.stream->resume_reading();
  ASSERT_TRUE(run_until([&] { return target_.held[0].resumes == 1; }));
  target_.part(0, "END\r\n", false, true);
  ASSERT_TRUE(run_until([&] { return client.data.size() == sent.size() + 5; }));
  EXPECT_TRUE(client.data == sent + "END\r\n");
}

TEST_P(FlowTest, RequestsWaitBehindAPausedReplyWhoseRequestIsHalfDone) {
  Peer& client = connect();
  client.send("get a b\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  client.stream->pause_reading();
  rig_.run_turns(2);
  target_.held[0].call->is_half_done = true;
  const std::string piece = test::pattern(64 * 1024);
  std::size_t sent_bytes = 0;
  for (bool pauses = false; !pauses; sent_bytes += piece.size()) {
    pauses = target_.part(0, piece, sent_bytes == 0);
  }
  client.send("get c\r\nget d\r\n");
  settle();
  EXPECT_EQ(target_.count(), 1U);
  client.stream->resume_reading();
  ASSERT_TRUE(run_until([&] { return target_.held[0].resumes == 1; }));
  settle();
  EXPECT_EQ(target_.count(), 1U) << "it has not been carried out yet";
  target_.part(0, "END\r\n", false, true);
  ASSERT_TRUE(wait_for_requests(3));
  target_.reply(1, "c\r\n");
  target_.reply(2, "d\r\n");
  ASSERT_TRUE(run_until([&] { return client.data.size() == sent_bytes + 11; }));
  EXPECT_TRUE(client.data.ends_with("END\r\nc\r\nd\r\n"));
}

TEST_P(FlowTest, RequestsWaitBehindAHalfDoneOneThatIsPausedBeforeItsTurn) {
  Peer& client = connect();
  client.send("get a\r\nget b c\r\n");
  ASSERT_TRUE(wait_for_requests(2));
  target_.held[1].call->is_half_done = true;
  const std::string piece = test::pattern(64 * 1024);
  for (bool pauses = false, is_first = true; !pauses; is_first = false) {
    pauses = target_.part(1, piece, is_first);
  }
  client.send("get d\r\n");
  settle();
  EXPECT_EQ(target_.count(), 2U);
  target_.reply(0, "END\r\n");
  ASSERT_TRUE(run_until([&] { return target_.held[1].resumes == 1; }));
  target_.part(1, "END\r\n", false, true);
  EXPECT_TRUE(wait_for_requests(3));
}

TEST_P(FlowTest, AClientThatDoesNotReadIsClosedAfterTheStallTimeout) {
  options_.stall_timeout = base::Millis(50);
  configure();
  Peer& client = connect();
  client.send("get a\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  client.stream->pause_reading();
  rig_.run_turns(2);
  const std::string piece = test::pattern(64 * 1024);
  for (bool pauses = false, is_first = true; !pauses; is_first = false) {
    pauses = target_.part(0, piece, is_first);
    rig_.run_turns(2);
  }
  ASSERT_TRUE(run_until([&] { return target_.held[0].discards == 1; }));
  EXPECT_EQ(stats().clients_stalled.get(), 1U);
  target_.part(0, "", false, true);
}

TEST_P(FlowTest, ASourcePausedBeforeItsTurnIsHeldToTheStallTimeoutToo) {
  options_.stall_timeout = base::Millis(50);
  configure();
  Peer& client = connect();
  client.send("get a\r\nget b\r\n");
  ASSERT_TRUE(wait_for_requests(2));
  client.stream->pause_reading();
  rig_.run_turns(2);
  const std::string piece = test::pattern(64 * 1024);
  for (bool pauses = false, is_first = true; !pauses; is_first = false) {
    pauses = target_.part(1, piece, is_first);  // Up to the window of what waits for its turn.
  }
  // The first reply fills the client's output in one last part: its source is never paused.
  target_.reply(0, test::pattern(16 << 20));
  ASSERT_TRUE(run_until([&] { return target_.held[1].discards == 1; }));
  target_.part(1, "", false, true);
}

TEST_P(FlowTest, AReplyBeforeItsTurnIsPausedAtItsWindowAndResumedInTurn) {
  Peer& client = connect();
  client.send("get a\r\nget b\r\n");
  ASSERT_TRUE(wait_for_requests(2));
  const std::string piece = test::pattern(64 * 1024);
  std::string sent;
  for (bool pauses = false, is_first = true; !pauses; is_first = false) {
    pauses = target_.part(1, piece, is_first);
    sent += piece;
  }
  EXPECT_GT(sent.size(), kStashWindowBytes);
  EXPECT_LE(sent.size(), kStashWindowBytes + piece.size());
  target_.reply(0, "A\r\n");
  ASSERT_TRUE(run_until([&] { return target_.held[1].resumes == 1; }));
  target_.part(1, "END\r\n", false, true);
  ASSERT_TRUE(run_until([&] { return client.data.size() == 3 + sent.size() + 5; }));
  EXPECT_TRUE(client.data == "A\r\n" + sent + "END\r\n");
}

TEST_P(FlowTest, APausedReplyThatIsCutIsNotDiscardedLater) {
  Peer& client = connect();
  client.send("get a\r\nget b\r\n");
  ASSERT_TRUE(wait_for_requests(2));
  const std::string piece = test::pattern(64 * 1024);
  for (bool pauses = false, is_first = true; !pauses; is_first = false) {
    pauses = target_.part(1, piece, is_first);
  }
  target_.part(1, "", false, true, true);
  // The source has forgotten the call; when the client goes it must not be asked about it.
  client.close();
  ASSERT_TRUE(run_until([&] { return stats().connections_accepted.get() == 1 && !client.stream; }));
  settle();
  EXPECT_EQ(target_.held[1].discards, 0);
  target_.reply(0, "END\r\n");
  ASSERT_TRUE(run_until([&] { return stats().connections.get() == 0; }));
}

TEST_P(FlowTest, RequestsWaitWhileTheClientDoesNotRead) {
  target_.instant_reply = test::pattern(200'000);
  Peer& client = connect();
  client.stream->pause_reading();
  for (int i = 0; i < 400; ++i) {
    client.send("get a\r\n");
    rig_.run_turns(1);
  }
  settle();
  const std::size_t started = target_.count();
  EXPECT_LT(started, 400U);
  client.stream->resume_reading();
  ASSERT_TRUE(wait_for_requests(400));
  ASSERT_TRUE(run_until([&] { return client.data.size() == 400 * 200'000U; }));
}

// --- Streamed requests ---------------------------------------------------------------------------

class StreamedTest : public SessionRig {
 protected:
  const std::string value_ = test::pattern(100'000);
  const std::string set_ = "set big 0 0 100000\r\n";
};

TEST_P(StreamedTest, TheBodyFollowsItsLineAndIsWhole) {
  Peer& client = connect();
  client.send(set_ + value_.substr(0, 10));
  ASSERT_TRUE(wait_for_requests(1));
  EXPECT_EQ(target_.held[0].text, set_);
  client.send(value_.substr(10) + "\r\n");
  ASSERT_TRUE(run_until([&] { return target_.held[0].is_whole; }));
  EXPECT_TRUE(target_.held[0].body == value_ + "\r\n");
  target_.reply(0, "STORED\r\n", ReplyCode::Stored);
  expect_client(client, "STORED\r\n");
}

TEST_P(StreamedTest, WaitsForWhatCameBeforeAndIsWaitedForByWhatComesAfter) {
  Peer& client = connect();
  client.send("get a\r\n" + set_ + value_ + "\r\nget c\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  settle();
  EXPECT_EQ(target_.count(), 1U);
  target_.reply(0, "A\r\n");
  ASSERT_TRUE(wait_for_requests(2));
  ASSERT_TRUE(run_until([&] { return target_.held[1].is_whole; }));
  settle();
  EXPECT_EQ(target_.count(), 2U) << "the next request may overtake the body";
  target_.reply(1, "STORED\r\n", ReplyCode::Stored);
  ASSERT_TRUE(wait_for_requests(3));
  target_.reply(2, "C\r\n");
  expect_client(client, "A\r\nSTORED\r\nC\r\n");
  EXPECT_EQ(stats().requests[static_cast<std::size_t>(memcache::Command::Set)].get(), 1U);
}

TEST_P(StreamedTest, WorksWithAnInflightLimitOfOne) {
  options_.inflight_max = 1;
  configure();
  Peer& client = connect();
  client.send(set_ + value_ + "\r\nget c\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  ASSERT_TRUE(run_until([&] { return target_.held[0].is_whole; }));
  target_.reply(0, "STORED\r\n", ReplyCode::Stored);
  ASSERT_TRUE(wait_for_requests(2));
}

TEST_P(StreamedTest, NothingIsPassedBeforeTheTargetIsReady) {
  target_.body_waits = true;
  Peer& client = connect();
  client.send(set_ + value_ + "\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  settle();
  EXPECT_EQ(target_.held[0].body, "");
  call::Call& call = *target_.held[0].call;
  call.body_waits = false;
  call.body_source->resume_body(call);
  ASSERT_TRUE(run_until([&] { return target_.held[0].is_whole; }));
  EXPECT_TRUE(target_.held[0].body == value_ + "\r\n");
}

TEST_P(StreamedTest, TheBodyPausesAndResumes) {
  target_.pauses_body = true;
  Peer& client = connect();
  client.send("set big 0 0 1000000\r\n" + test::pattern(1'000'000) + "\r\nget b\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  std::size_t resumed = 0;
  ASSERT_TRUE(run_until([&] {
    HeldTarget::Held& held = target_.held[0];
    if (!held.is_whole && held.body.size() > resumed) {
      settle();
      const std::size_t size = held.body.size();
      settle();
      EXPECT_EQ(held.body.size(), size) << "a paused body went on";
      resumed = size;
      held.call->body_source->resume_body(*held.call);
    }
    return held.is_whole;
  }));
  EXPECT_TRUE(target_.held[0].body == test::pattern(1'000'000) + "\r\n");
  target_.reply(0, "STORED\r\n", ReplyCode::Stored);
  ASSERT_TRUE(wait_for_requests(2));
}

TEST_P(StreamedTest, AnEarlyAnswerSwallowsTheRest) {
  Peer& client = connect();
  client.send(set_ + value_.substr(0, 5000));
  ASSERT_TRUE(wait_for_requests(1));
  ASSERT_TRUE(run_until([&] { return target_.held[0].body.size() == 5000; }));
  target_.reply(0, "SERVER_ERROR no\r\n", ReplyCode::ServerError);
  client.send(value_.substr(5000) + "\r\nget c\r\n");
  ASSERT_TRUE(wait_for_requests(2));
  EXPECT_EQ(target_.held[1].text, "get c\r\n");
  EXPECT_EQ(target_.held[0].body.size(), 5000U);
  target_.reply(1, "C\r\n");
  expect_client(client, "SERVER_ERROR no\r\nC\r\n");
}

TEST_P(StreamedTest, AnAnswerFromWithinSendSwallowsAllOfIt) {
  target_.instant_reply = "SERVER_ERROR no\r\n";
  Peer& client = connect();
  client.send(set_ + value_ + "\r\nmn\r\n");
  expect_client(client, "SERVER_ERROR no\r\nMN\r\n");
}

TEST_P(StreamedTest, ABodyThatIsNotWantedIsReadAndDropped) {
  Peer& client = connect();
  client.send(set_ + value_.substr(0, 5000));
  ASSERT_TRUE(wait_for_requests(1));
  call::Call& call = *target_.held[0].call;
  call.body_source->discard_body(call);
  client.send(value_.substr(5000) + "\r\nget c\r\n");
  settle();
  EXPECT_EQ(target_.count(), 1U);
  target_.reply(0, "SERVER_ERROR no\r\n", ReplyCode::ServerError);
  ASSERT_TRUE(wait_for_requests(2));
  EXPECT_EQ(target_.held[1].text, "get c\r\n");
}

TEST_P(StreamedTest, AClientThatGoesMidBodyLosesIt) {
  for (const bool half_closes : {false, true}) {
    Peer& client = connect();
    const std::size_t index = target_.count();
    client.send(set_ + value_.substr(0, 5000));
    ASSERT_TRUE(run_until(
        [&] { return target_.count() > index && target_.held[index].body.size() == 5000; }));
    if (half_closes) {
      client.finish();
    } else {
      client.close();
    }
    ASSERT_TRUE(run_until([&] { return target_.held[index].is_lost; }));
    ASSERT_TRUE(run_until([&] { return stats().connections.get() == 0; }));
  }
}

// --- Streamed requests whose client stops in the middle
// --------------------------------------------

class LateBodyTest : public StreamedTest {
 protected:
  LateBodyTest() {
    options_.body_timeout = base::Millis(60);
    configure();
  }
  /// A client that has sent `line` and the first 5000 bytes of the value.
  Peer& start(const std::string& line) {
    Peer& client = connect();
    client.send(line + value_.substr(0, 5000));
    EXPECT_TRUE(
        run_until([&] { return target_.count() == 1 && target_.held[0].body.size() >= 5000; }));
    return client;
  }
};

TEST_P(LateBodyTest, IsToldAndClosedAndTheTargetKnows) {
  Peer& client = start(set_);
  ASSERT_TRUE(run_until([&] { return target_.held[0].is_lost; }));
  expect_closed(client);
  EXPECT_EQ(client.data, "SERVER_ERROR kvferry: the rest of the value did not come in time\r\n");
  EXPECT_EQ(stats().bodies_stalled.get(), 1U);
  EXPECT_EQ(stats().replies[static_cast<std::size_t>(ReplyCode::ServerError)].get(), 1U);
}

TEST_P(LateBodyTest, IsClosedWithoutAWordWhenItWantsNoReply) {
  Peer& client = start("set big 0 0 100000 noreply\r\n");
  expect_closed(client);
  EXPECT_TRUE(target_.held[0].is_lost);
  EXPECT_EQ(client.data, "");
}

TEST_P(LateBodyTest, SingleBytesDoNotBuyTime) {
  Peer& client = start(set_);
  ASSERT_TRUE(run_until([&] {
    if (!client.is_gone()) {
      client.send("x");
    }
    return target_.held[0].is_lost;
  }));
  EXPECT_LT(target_.held[0].body.size(), 5000 + kBodyProgressBytes);
}

TEST_P(LateBodyTest, ABodyThatGoesOnMayTakeLonger) {
  // Long beside the pieces, so that a machine that is busy does not make one late.
  options_.body_timeout = base::Millis(1000);
  configure();
  const std::size_t pieces = 60;
  Peer& client = connect();
  client.send("set big 0 0 " + std::to_string(pieces * kBodyProgressBytes) + "\r\n");
  for (std::size_t i = 0; i < pieces; ++i) {
    ASSERT_FALSE(client.is_gone());
    client.send(test::pattern(kBodyProgressBytes));
    rig_.run_for(base::Millis(20));
  }
  client.send("\r\n");
  ASSERT_TRUE(run_until([&] { return target_.held[0].is_whole; }));
  rig_.run_for(base::Millis(1100));  // Nothing is waited for from the client any more.
  target_.reply(0, "STORED\r\n", ReplyCode::Stored);
  expect_client(client, "STORED\r\n");
  EXPECT_EQ(stats().bodies_stalled.get(), 0U);
}

TEST_P(LateBodyTest, TheTimeOfAPauseIsTheTakers) {
  target_.pauses_body = true;
  start(set_);
  rig_.run_for(base::Millis(150));
  ASSERT_FALSE(target_.held[0].is_lost);
  target_.held[0].call->body_source->resume_body(*target_.held[0].call);
  ASSERT_TRUE(run_until([&] { return target_.held[0].is_lost; })) << "now it is the client's time";
}

TEST_P(LateBodyTest, TheTimeBeforeTheTargetIsReadyIsTheTakers) {
  target_.body_waits = true;
  Peer& client = connect();
  client.send(set_);
  ASSERT_TRUE(wait_for_requests(1));
  rig_.run_for(base::Millis(150));
  ASSERT_FALSE(target_.held[0].is_lost);
  call::Call& call = *target_.held[0].call;
  call.body_waits = false;
  call.body_source->resume_body(call);
  ASSERT_TRUE(run_until([&] { return target_.held[0].is_lost; }));
}

TEST_P(LateBodyTest, ABodyThatIsReadAndDroppedHoldsNobodyUp) {
  Peer& client = start(set_);
  target_.reply(0, "SERVER_ERROR early\r\n", ReplyCode::ServerError);
  rig_.run_for(base::Millis(150));
  client.send(value_.substr(5000) + "\r\nmn\r\n");
  expect_client(client, "SERVER_ERROR early\r\nMN\r\n");
}

INSTANTIATE_TEST_SUITE_P(Engines, LateBodyTest, testing::ValuesIn(test::kEngines), test::name_of);
INSTANTIATE_TEST_SUITE_P(Engines, FlowTest, testing::ValuesIn(test::kEngines), test::name_of);
INSTANTIATE_TEST_SUITE_P(Engines, StreamedTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::front
