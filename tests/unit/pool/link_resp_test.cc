#include "tests/support/splitter.h"
#include "tests/unit/pool/link_rig.h"

namespace kvferry::pool {
namespace {

using memcache::ReplyCode;
using test::Outcome;

class LinkRespTest : public LinkRig {
 protected:
  LinkRespTest() {
    host_.pool.protocol = Protocol::Redis;
    make_link();
  }

  Outcome& ask(std::string_view key) {
    const auto refusal = link_->admit();
    EXPECT_FALSE(refusal.has_value()) << failure_name(*refusal);
    Outcome& outcome = sink_.make();
    link_->write(request(key));
    link_->commit(*outcome.call);
    return outcome;
  }
  static std::string request(std::string_view key) {
    return "*2\r\n$3\r\nGET\r\n$" + std::to_string(key.size()) + "\r\n" + std::string(key) + "\r\n";
  }
  void prove_resp() {
    Outcome& first = ask("first");
    expect_received(request("first"), backend_.peers.size());
    peer().send("+OK\r\n");
    ASSERT_TRUE(run_until([&] { return first.is_done; }));
  }
  void greet_with(const char* password, std::uint32_t database,
                  resp::Version version = resp::Version::Two) {
    RedisOptions options;
    options.password = password;
    host_.first_words = redis_greeting(options, version, database);
  }
};

TEST_P(LinkRespTest, MatchesRepliesInTheOrderOfTheCalls) {
  Outcome& a = ask("a");
  Outcome& b = ask("b");
  Outcome& c = ask("c");
  expect_received(request("a") + request("b") + request("c"));
  peer().send("$1\r\nA\r\n-ERR b\r\n*2\r\n:1\r\n$-1\r\n");
  ASSERT_TRUE(run_until([&] { return c.is_done; }));
  EXPECT_EQ(a.bytes, "$1\r\nA\r\n");
  EXPECT_EQ(a.code, ReplyCode::Value);
  EXPECT_EQ(b.bytes, "-ERR b\r\n");
  EXPECT_EQ(b.code, ReplyCode::ServerError);
  EXPECT_EQ(c.bytes, "*2\r\n:1\r\n$-1\r\n");
  EXPECT_LT(a.order, b.order);
  EXPECT_EQ(host_.proven, 1);
}

TEST_P(LinkRespTest, JoinsRepliesAtEveryCut) {
  const std::string one = "$5\r\nhello\r\n";
  const std::string two = "*2\r\n+a\r\n$3\r\nb\r\n\r\n";
  const std::string both = one + two;
  for (std::size_t at = 1; at < both.size(); ++at) {
    Outcome& a = ask("a");
    Outcome& b = ask("b");
    expect_received(request("a") + request("b"));
    peer().send(both.substr(0, at));
    rig_.run_turns(3);
    peer().send(both.substr(at));
    ASSERT_TRUE(run_until([&] { return b.is_done; }));
    EXPECT_EQ(a.bytes, one);
    EXPECT_EQ(b.bytes, two);
    EXPECT_EQ(a.parts + b.parts, 2);
  }
  EXPECT_EQ(backend_.peers.size(), 1U);
}

TEST_P(LinkRespTest, PushesReachNobody) {
  prove_resp();
  peer().send(">2\r\n+invalidate\r\n");  // Nothing is outstanding.
  rig_.run_for(base::Millis(10));
  Outcome& a = ask("a");
  expect_received(request("a"), 0);
  peer().send("_\r\n>1\r\n+x\r\n$1\r\nA\r\n>1\r\n+y\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_EQ(a.bytes, "$1\r\nA\r\n");
  rig_.run_for(base::Millis(10));
  EXPECT_EQ(link_->phase(), Link::Phase::Up);
}

TEST_P(LinkRespTest, StrayBytesCloseTheConnectionAtTheFirstOne) {
  prove_resp();
  peer().send("+");  // Its end could answer the next call.
  ASSERT_TRUE(run_until([&] { return link_->phase() == Link::Phase::Down; }));
  EXPECT_EQ(host_.counters.stray_replies.get(), 1U);
  Outcome& a = ask("a");
  expect_received(request("a"), 1);
  peer().send(":1\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_EQ(a.bytes, ":1\r\n");
}

TEST_P(LinkRespTest, DamageFailsAllCallsAndCloses) {
  prove_resp();
  Outcome& a = ask("a");
  Outcome& b = ask("b");
  expect_received(request("a") + request("b"));
  peer().send("$1\r\nAB\r\n+OK\r\n");
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_EQ(a.bytes,
            "-BADREPLY kvferry: backend reply was not valid RESP; connection closed (pool p)\r\n");
  EXPECT_EQ(b.bytes, a.bytes);
  EXPECT_EQ(a.code, ReplyCode::ServerError);
  EXPECT_EQ(failed(FailureKind::BadReply), 2U);
}

TEST_P(LinkRespTest, ABigReplyFlowsAndOneThatIsCutIsBroken) {
  Outcome& a = ask("a");
  Outcome& b = ask("b");
  Outcome& c = ask("c");
  expect_received(request("a") + request("b") + request("c"));
  const std::string reply = "$100000\r\n" + test::pattern(100'000) + "\r\n";
  peer().send(reply + reply.substr(0, 20'000));
  ASSERT_TRUE(run_until([&] { return b.bytes.size() == 20'000; }));
  EXPECT_TRUE(a.bytes == reply);
  EXPECT_GT(a.parts, 1);
  peer().close();
  ASSERT_TRUE(run_until([&] { return c.is_done; }));
  EXPECT_TRUE(b.is_broken);
  EXPECT_EQ(b.bytes.size(), 20'000U);
  EXPECT_FALSE(c.is_broken);
  EXPECT_EQ(c.bytes,
            "-UNAVAIL kvferry: connection lost after the command was sent; it may have run (pool "
            "p)\r\n");
}

TEST_P(LinkRespTest, ASmallReplyThatIsCutIsAWholeFailure) {
  Outcome& a = ask("a");
  expect_received(request("a"));
  peer().send("$100\r\nonly a part");
  rig_.run_for(base::Millis(10));
  EXPECT_EQ(a.parts, 0);
  peer().close();
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_FALSE(a.is_broken);
  EXPECT_TRUE(a.bytes.starts_with("-UNAVAIL kvferry: connection lost after")) << a.bytes;
}

TEST_P(LinkRespTest, TheSinkPausesResumesAndDiscards) {
  Outcome& a = ask("a");
  Outcome& b = ask("b");
  Outcome& c = ask("c");
  a.pauses_left = 1;
  b.pauses_left = 1;
  expect_received(request("a") + request("b") + request("c"));
  const std::string reply = "$500000\r\n" + test::pattern(500'000) + "\r\n";
  peer().send(reply + reply + "+OK\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_paused; }));
  rig_.run_for(base::Millis(10));
  EXPECT_FALSE(a.is_done);
  sink_.resume(a);
  ASSERT_TRUE(run_until([&] { return b.is_paused; }));
  EXPECT_TRUE(a.bytes == reply);
  sink_.discard(b);
  ASSERT_TRUE(run_until([&] { return c.is_done; }));
  EXPECT_TRUE(b.is_done);
  EXPECT_LT(b.bytes.size(), reply.size());
  EXPECT_EQ(c.bytes, "+OK\r\n");
}

TEST_P(LinkRespTest, ATimeoutFailsAllCalls) {
  host_.pool.timeout = base::Millis(60);
  prove_resp();
  Outcome& a = ask("a");
  Outcome& b = ask("b");
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_EQ(a.bytes,
            "-TIMEOUT kvferry: no answer within 60 ms; the command may have run (pool p)\r\n");
  EXPECT_EQ(failed(FailureKind::Timeout), 2U);
}

TEST_P(LinkRespTest, HoldsCallsBackUntilTheGreetingIsAnswered) {
  greet_with("pw", 3);
  Outcome& a = ask("a");
  const std::string words = host_.first_words.bytes;
  expect_received(words);
  rig_.run_for(base::Millis(20));
  EXPECT_EQ(peer().data, "") << "a call went out before SELECT was answered";
  EXPECT_EQ(link_->phase(), Link::Phase::Connecting);
  Outcome& b = ask("b");
  peer().send("+OK\r\n+O");
  rig_.run_turns(3);
  EXPECT_EQ(peer().data, "");
  peer().send("K\r\n");
  expect_received(request("a") + request("b"));
  EXPECT_EQ(link_->phase(), Link::Phase::Up);
  peer().send(":1\r\n:2\r\n");
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_EQ(a.bytes, ":1\r\n");
  EXPECT_EQ(b.bytes, ":2\r\n");
  EXPECT_EQ(host_.counters.links_up.get(), 1U);
}

TEST_P(LinkRespTest, ARefusedDatabaseFailsTheLinkAndNothingRan) {
  greet_with("", 99);
  Outcome& a = ask("a");
  expect_received(host_.first_words.bytes);
  peer().send("-ERR DB index is out of range\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_EQ(a.bytes,
            "-UNAVAIL kvferry: could not connect to backend: database rejected (pool p)\r\n");
  EXPECT_EQ(peer().data, "");
  EXPECT_EQ(host_.failures, std::vector{FailureKind::Handshake});
  EXPECT_EQ(failed(FailureKind::Handshake), 1U);
  EXPECT_EQ(link_->admit(), FailureKind::Down) << "it backs off";
}

TEST_P(LinkRespTest, RejectedCredentialsAreNotTriedAgainSoon) {
  greet_with("wrong", 0);
  Outcome& a = ask("a");
  expect_received(host_.first_words.bytes);
  peer().send("-WRONGPASS invalid username-password pair or user is disabled.\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_EQ(a.bytes,
            "-UNAVAIL kvferry: could not connect to backend: credentials rejected (pool p)\r\n");
  rig_.run_for(base::Millis(300));  // backoff_max is 200 ms.
  EXPECT_EQ(backend_.peers.size(), 1U);
}

TEST_P(LinkRespTest, AServerWithoutHelloStaysInVersionTwo) {
  greet_with("", 0, resp::Version::Three);
  Outcome& a = ask("a");
  expect_received(host_.first_words.bytes);
  peer().send("-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n");
  expect_received(request("a"));
  peer().send("$-1\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_EQ(a.bytes, "$-1\r\n");
}

TEST_P(LinkRespTest, ALongHelloIsTakenInParts) {
  greet_with("", 0, resp::Version::Three);
  Outcome& a = ask("a");
  expect_received(host_.first_words.bytes);
  peer().send("%1\r\n+modules\r\n$9000\r\n" + test::pattern(9000));
  rig_.run_for(base::Millis(10));
  EXPECT_EQ(peer().data, "");
  peer().send("\r\n");
  expect_received(request("a"));
  peer().send("_\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_EQ(a.code, ReplyCode::NotFound);
}

TEST_P(LinkRespTest, AGreetingThatIsNotAnsweredIsAConnectTimeout) {
  host_.pool.connect_timeout = base::Millis(60);
  greet_with("pw", 0);
  Outcome& a = ask("a");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_EQ(
      a.bytes,
      "-UNAVAIL kvferry: could not connect to backend: no connection within 60 ms (pool p)\r\n");
}

TEST_P(LinkRespTest, BytesThatAreNoGreetingFailTheLink) {
  greet_with("pw", 0);
  Outcome& a = ask("a");
  expect_received(host_.first_words.bytes);
  peer().send("SSH-2.0\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_EQ(failed(FailureKind::BadReply), 1U);
  rig_.run_for(base::Millis(10));
}

TEST_P(LinkRespTest, AnUploadWaitsForTheGreetingToo) {
  make_link(Link::Use::Exclusive);
  greet_with("pw", 0);
  ASSERT_FALSE(link_->admit().has_value());
  Outcome& up = sink_.make();
  link_->write("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n");
  link_->commit_upload(*up.call);
  const std::string value = test::pattern(1'000'000);
  EXPECT_EQ(up.call->body_sink->on_body(*up.call, value.substr(0, 500'000), false),
            call::Flow::Pause);
  expect_received(host_.first_words.bytes);
  rig_.run_for(base::Millis(10));
  EXPECT_EQ(peer().data, "");
  EXPECT_EQ(up.body_resumes, 0);
  peer().send("+OK\r\n");
  ASSERT_TRUE(run_until([&] { return up.body_resumes == 1; }));
  up.call->body_sink->on_body(*up.call, value.substr(500'000) + "\r\n", true);
  expect_received("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n" + value + "\r\n");
  peer().send("+OK\r\n");
  ASSERT_TRUE(run_until([&] { return up.is_done; }));
  EXPECT_EQ(up.bytes, "+OK\r\n");
}

INSTANTIATE_TEST_SUITE_P(Engines, LinkRespTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::pool
