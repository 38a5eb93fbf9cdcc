#include "pool/mcp_link.h"

#include "tests/unit/pool/mcp_rig.h"

namespace kvferry::pool {
namespace {

using base::Millis;
using base::Seconds;
using Error = McpRecorder::Error;
using Bad = McpRecorder::Bad;
using test::Outcome;

class McpLinkTest : public McpRig {
 protected:
  test::Peer& peer() { return *server_.peers.back(); }
  /// One request is sent, and answered with `reply`; then the first error that is recorded.
  Outcome& fail_with(std::string_view reply) {
    make_ready();
    Outcome& a = ask("a");
    EXPECT_TRUE(wait_received("mg a v\r\n"));
    peer().send(reply);
    EXPECT_TRUE(run_until([&] { return !recorder_.errors.empty(); }));
    return a;
  }
  void no_version() { server_.on_input = nullptr; }
};

// ---- connecting

TEST_P(McpLinkTest, AsksForTheVersionBeforeAnythingElse) {
  no_version();
  make();
  Outcome& a = ask("a");
  ASSERT_TRUE(wait_received("version\r\n"));
  EXPECT_EQ(link().phase(), McpLink::Phase::Validating);
  rig_.run_turns(5);
  EXPECT_EQ(peer().data, "");
  Outcome& b = ask("b");
  peer().send("VERSION 1.6");
  rig_.run_turns(5);
  EXPECT_EQ(link().phase(), McpLink::Phase::Validating);
  peer().send(".45\r\ndropped");
  ASSERT_TRUE(wait_received("mg a v\r\nmg b v\r\n"));
  EXPECT_EQ(link().inflight(), 2U);
  peer().send("EN\r\nHD\r\n");
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_EQ(a.bytes + b.bytes, "EN\r\nHD\r\n");
  EXPECT_TRUE(recorder_.errors.empty());
}

TEST_P(McpLinkTest, TakesOnlyAVersionForValid) {
  options_.failure_limit = 0;
  const std::pair<std::string_view, McpFailure> kCases[] = {
      {"HELLO\r\n", McpFailure::ReadValidate},
      {"ERROR\r\n", McpFailure::ReadValidate},
      {"SERVER_ERROR busy\r\n", McpFailure::ReadValidate},
      {"\r\n", McpFailure::ReadValidate},
      {"STORED\r\n", McpFailure::BadValidate},
      {"HD\r\n", McpFailure::BadValidate},
      {"12\r\n", McpFailure::BadValidate},
  };
  no_version();
  std::size_t count = 0;
  for (const auto& [answer, failure] : kCases) {
    make();
    Outcome& a = ask("a");
    ASSERT_TRUE(wait_received("version\r\n", count++));
    peer().send(answer);
    ASSERT_TRUE(run_until([&] { return a.is_done; }));
    EXPECT_EQ(a.bytes, kFailureText);
    EXPECT_EQ(recorder_.errors, (std::vector{Error{failure, 1, std::string(answer)}})) << answer;
    EXPECT_EQ(recorder_.bads, (std::vector{Bad{false, Seconds(3)}}));
    recorder_.errors.clear();
    recorder_.bads.clear();
    backend_.reset();
  }
}

TEST_P(McpLinkTest, ALineWithoutEndIsNoVersion) {
  no_version();
  options_.failure_limit = 0;
  make();
  ASSERT_TRUE(wait_received("version\r\n"));
  peer().send(std::string(5000, 'V'));
  ASSERT_TRUE(run_until([&] { return !recorder_.errors.empty(); }));
  EXPECT_EQ(recorder_.errors,
            (std::vector{Error{McpFailure::ReadValidate, 0, std::string(100, 'V')}}));
}

TEST_P(McpLinkTest, SilenceAfterTheQuestionIsReadvalidate) {
  no_version();
  options_.failure_limit = 0;
  options_.read_timeout = Millis(50);
  make();
  ASSERT_TRUE(run_until([&] { return !recorder_.errors.empty(); }));
  EXPECT_EQ(recorder_.errors, (std::vector{Error{McpFailure::ReadValidate, 0, ""}}));
}

TEST_P(McpLinkTest, AnEndWhileValidatingIsDisconnected) {
  no_version();
  options_.failure_limit = 0;
  make();
  ASSERT_TRUE(wait_received("version\r\n"));
  peer().send("VERS");
  rig_.run_turns(10);
  peer().close();
  ASSERT_TRUE(run_until([&] { return !recorder_.errors.empty(); }));
  EXPECT_EQ(recorder_.errors, (std::vector{Error{McpFailure::Disconnected, 0, "VERS"}}));
}

TEST_P(McpLinkTest, ARefusedConnectionIsTriedAgainUntilTheLimit) {
  server_.stop();
  options_.failure_limit = 2;
  make();
  Outcome& a = ask("a");
  ASSERT_TRUE(run_until([&] { return !recorder_.bads.empty(); }));
  EXPECT_EQ(a.bytes, kFailureText);
  EXPECT_EQ(recorder_.errors,
            (std::vector{Error{McpFailure::Connecting, 1, ""}, Error{McpFailure::Connecting, 0, ""},
                         Error{McpFailure::Connecting, 0, ""}}));
  EXPECT_EQ(stats_->failed.get(), 2U);
  EXPECT_EQ(stats_->marked_bad.get(), 1U);
  EXPECT_EQ(stats_->bad_links().size(), 1U);
  EXPECT_EQ(link().phase(), McpLink::Phase::Resting);
  EXPECT_TRUE(ask("b").is_done);
}

TEST_P(McpLinkTest, AConnectionThatTakesTooLongIsConntimeout) {
  // Nobody accepts from a full queue of the kernel; what is over it never completes.
  auto listening = net::open_listening_socket(test::LoopRig::loopback(), {.backlog = 0});
  ASSERT_TRUE(listening.has_value());
  const int socket = listening.value();
  sockaddr_storage place{};
  socklen_t size = sizeof place;
  ASSERT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&place), &size), 0);
  const net::Address address(reinterpret_cast<const sockaddr*>(&place), size);
  std::vector<test::Peer> fillers(4);
  for (test::Peer& filler : fillers) {
    filler.stream = loop().connect(address, {}, filler).value();
  }
  rig_.run_for(Millis(20));
  options_.port = std::to_string(address.port());
  options_.failure_limit = 0;
  options_.connect_timeout = Millis(60);
  make();
  Outcome& a = ask("a");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_EQ(a.bytes, kFailureText);
  EXPECT_EQ(recorder_.errors, (std::vector{Error{McpFailure::ConnTimeout, 1, ""}}));
  ::close(socket);
}

TEST_P(McpLinkTest, StaysBadUntilAConnectionIsValidated) {
  server_.stop();
  options_.failure_limit = 0;
  options_.retry_waittime = Seconds(1);
  make();
  ASSERT_TRUE(run_until([&] { return !recorder_.bads.empty(); }));
  no_version();
  server_.restart();
  ASSERT_TRUE(run_until([&] { return link().phase() == McpLink::Phase::Validating; }));
  EXPECT_TRUE(ask("a").is_done);
  ASSERT_TRUE(wait_received("version\r\n"));
  peer().send("no\r\n");
  ASSERT_TRUE(run_until([&] { return link().phase() == McpLink::Phase::Resting; }));
  // A failure of what is bad already is neither logged nor counted again.
  EXPECT_EQ(recorder_.errors.size(), 1U);
  EXPECT_EQ(stats_->marked_bad.get(), 1U);
  EXPECT_EQ(stats_->failed.get(), 0U);
  answer_version(server_);
  ASSERT_TRUE(wait_ready());
  EXPECT_TRUE(stats_->bad_links().empty());
  Outcome& b = ask("b");
  ASSERT_TRUE(wait_received("mg b v\r\n", 1));
  peer().send("HD\r\n");
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_EQ(b.bytes, "HD\r\n");
}

// ---- replies

TEST_P(McpLinkTest, MatchesRepliesInOrderHoweverTheyAreCut) {
  make_ready();
  Outcome& a = ask("a");
  Outcome& b = ask("b");
  Outcome& c = ask("c");
  ASSERT_TRUE(wait_received("mg a v\r\nmg b v\r\nmg c v\r\n"));
  for (const char byte : std::string_view("VA 3\r\nabc\r\nVALUE b 0 1\r\nB\r\nEND\r\nXX\r\n")) {
    peer().send(std::string_view(&byte, 1));
    rig_.run_turns(3);
  }
  ASSERT_TRUE(run_until([&] { return c.is_done; }));
  EXPECT_EQ(a.bytes, "VA 3\r\nabc\r\n");
  EXPECT_EQ(b.bytes, "VALUE b 0 1\r\nB\r\nEND\r\n");
  EXPECT_EQ(c.bytes, "XX\r\n");
  EXPECT_EQ(c.code, memcache::ReplyCode::Other);
  EXPECT_TRUE(recorder_.errors.empty());
  EXPECT_EQ(link().phase(), McpLink::Phase::Ready);
}

TEST_P(McpLinkTest, ServerErrorKeepsTheConnection) {
  make_ready();
  Outcome& a = ask("a");
  Outcome& b = ask("b");
  ASSERT_TRUE(wait_received("mg a v\r\nmg b v\r\n"));
  peer().send("SERVER_ERROR out of memory\r\nHD\r\n");
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_EQ(a.bytes, "SERVER_ERROR out of memory\r\n");
  EXPECT_EQ(b.bytes, "HD\r\n");
  EXPECT_TRUE(recorder_.errors.empty());
}

struct BadReply {
  std::string_view reply;
  McpFailure failure;
  std::string_view unread;
};

TEST_P(McpLinkTest, AReplyThatIsNoneFailsEveryCall) {
  const BadReply kCases[] = {
      {"this is none\r\n", McpFailure::Parsing, "this is none\r\n"},
      {"VA x\r\nabc\r\n", McpFailure::Parsing, "VA x\r\nabc\r\n"},
      {"VERSION 1.2.3\r\n", McpFailure::UnhandledReply, "VERSION 1.2.3\r\n"},
      {"STAT pid 1\r\n", McpFailure::UnhandledReply, "STAT pid 1\r\n"},
      {"VALUE a 0 1\r\nx\r\nFOO\r\n", McpFailure::MissingEnd, "FOO\r\n"},
      {"VA 1073741825\r\n", McpFailure::OutOfMemory, "VA 1073741825\r\n"},
  };
  options_.failure_limit = 100;
  make();
  std::size_t connection = 0;
  for (const BadReply& bad : kCases) {
    ASSERT_TRUE(wait_ready());
    Outcome& a = ask("a");
    Outcome& b = ask("b");
    ASSERT_TRUE(wait_received("mg a v\r\nmg b v\r\n", connection++));
    peer().send(bad.reply);
    ASSERT_TRUE(run_until([&] { return b.is_done; }));
    EXPECT_EQ(a.bytes, kFailureText);
    EXPECT_EQ(b.bytes, kFailureText);
    EXPECT_EQ(recorder_.errors, (std::vector{Error{bad.failure, 2, std::string(bad.unread)}}));
    recorder_.errors.clear();
    EXPECT_EQ(stats_->failed.get(), connection);
  }
}

TEST_P(McpLinkTest, AnErrorLineIsDeliveredAndThenTheConnectionDropped) {
  options_.failure_limit = 100;
  make();
  std::size_t connection = 0;
  for (const std::string_view line : {"ERROR\r\n", "ERROR unknown\r\n", "CLIENT_ERROR bad\r\n"}) {
    ASSERT_TRUE(wait_ready());
    Outcome& a = ask("a");
    Outcome& b = ask("b");
    ASSERT_TRUE(wait_received("mg a v\r\nmg b v\r\n", connection++));
    peer().send(std::string(line) + "HD\r\n");
    ASSERT_TRUE(run_until([&] { return b.is_done; }));
    EXPECT_EQ(a.bytes, line);
    EXPECT_LT(a.order, b.order);
    EXPECT_EQ(b.bytes, kFailureText);
    EXPECT_EQ(recorder_.errors, (std::vector{Error{McpFailure::InvalidProtocol, 1, "HD\r\n"}}));
    recorder_.errors.clear();
  }
}

TEST_P(McpLinkTest, BytesBehindTheLastAnswerFailTheConnection) {
  Outcome& a = fail_with("EN\r\nHD\r\n");
  EXPECT_EQ(a.bytes, "EN\r\n");
  EXPECT_EQ(recorder_.errors, (std::vector{Error{McpFailure::TrailingData, 0, "HD\r\n"}}));
}

TEST_P(McpLinkTest, BytesThatNobodyAskedForFailTheConnection) {
  make_ready();
  peer().send("HD\r\n");
  ASSERT_TRUE(run_until([&] { return !recorder_.errors.empty(); }));
  EXPECT_EQ(recorder_.errors, (std::vector{Error{McpFailure::ClosedSock, 0, "HD\r\n"}}));
}

/// Sends another request as soon as its own is answered, as a script does.
class AskAgain final : public call::ReplySink {
 public:
  AskAgain(McpBackend& backend, call::CallPool& calls) : backend_(backend), calls_(calls) {}
  void ask() {
    call::Call& call = calls_.acquire();
    call.sink = this;
    backend_.forward(call, "mg again v\r\n");
  }
  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override {
    replies.emplace_back(part.bytes);
    calls_.release(call);
    if (replies.size() == 1) {
      ask();
    }
    return call::Flow::Continue;
  }
  std::vector<std::string> replies;

 private:
  McpBackend& backend_;
  call::CallPool& calls_;
};

TEST_P(McpLinkTest, ACallThatAReplyBringsAboutIsNotAnsweredByBytesThatCameBefore) {
  for (const std::string_view behind : {"VA 4\r\nevil\r\n", ""}) {
    make_ready();
    AskAgain sink(*backend_, calls_);
    sink.ask();
    const std::size_t index = server_.peers.size() - 1;
    ASSERT_TRUE(wait_received("mg again v\r\n", index));
    const std::string_view first = behind.empty() ? "ERROR\r\n" : "EN\r\n";
    peer().send(std::string(first) + std::string(behind));
    ASSERT_TRUE(wait_received("mg again v\r\n", index + 1));
    peer().send("VA 4\r\ngood\r\n");
    ASSERT_TRUE(run_until([&] { return sink.replies.size() == 2; }));
    EXPECT_EQ(sink.replies, (std::vector<std::string>{std::string(first), "VA 4\r\ngood\r\n"}));
  }
}

TEST_P(McpLinkTest, StopsWhereNoReplyMayBeKept) {
  recorder_.has_room = false;
  Outcome& a = fail_with("VA 2\r\nhi\r\n");
  EXPECT_EQ(a.bytes, kFailureText);
  EXPECT_EQ(recorder_.errors.front().failure, McpFailure::OutOfMemory);
}

TEST_P(McpLinkTest, AReplyThatIsCutIsBroken) {
  make_ready();
  Outcome& a = ask("a");
  Outcome& b = ask("b");
  ASSERT_TRUE(wait_received("mg a v\r\nmg b v\r\n"));
  peer().send("VA 1000\r\nonly a part");
  ASSERT_TRUE(run_until([&] { return a.parts == 1; }));
  peer().close();
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_TRUE(a.is_broken);
  EXPECT_FALSE(b.is_broken);
  EXPECT_EQ(b.bytes, kFailureText);
  EXPECT_EQ(recorder_.errors, (std::vector{Error{McpFailure::Disconnected, 2, ""}}));
}

TEST_P(McpLinkTest, ABigReplyCanBePausedAndDropped) {
  make_ready();
  for (const bool drops : {false, true}) {
    Outcome& a = ask("a");
    a.pauses_left = 1;
    Outcome& b = ask("b");
    ASSERT_TRUE(wait_received("mg a v\r\nmg b v\r\n"));
    const std::string reply = "VA 300000\r\n" + test::pattern(300000) + "\r\n";
    peer().send(reply + "HD\r\n");
    ASSERT_TRUE(run_until([&] { return a.is_paused; }));
    rig_.run_turns(10);
    EXPECT_EQ(a.parts, 1);
    drops ? sink_.discard(a) : sink_.resume(a);
    ASSERT_TRUE(run_until([&] { return b.is_done; }));
    EXPECT_EQ(a.bytes == reply, !drops);
    EXPECT_EQ(b.bytes, "HD\r\n");
  }
  EXPECT_TRUE(recorder_.errors.empty());
}

TEST_P(McpLinkTest, SendsBigRequestsWhole) {
  make_ready();
  const std::string request = "ms k 3000000\r\n" + test::pattern(3'000'000) + "\r\n";
  Outcome& a = sink_.make(memcache::Command::Ms);
  backend_->forward(*a.call, request);
  Outcome& b = ask("b");
  ASSERT_TRUE(wait_received(request + "mg b v\r\n"));
  peer().send("HD\r\nEN\r\n");
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_EQ(a.bytes, "HD\r\n");
}

// ---- failures

TEST_P(McpLinkTest, AnEndIsAFailureAlsoWhenIdle) {
  make_ready();
  peer().close();
  ASSERT_TRUE(run_until([&] { return !recorder_.errors.empty(); }));
  EXPECT_EQ(recorder_.errors, (std::vector{Error{McpFailure::Disconnected, 0, ""}}));
  EXPECT_EQ(stats_->failed.get(), 1U);
  ASSERT_TRUE(wait_ready());  // Connected anew before anybody asks.
}

TEST_P(McpLinkTest, SilenceFailsAllCallsAndLateRepliesReachNobody) {
  options_.read_timeout = Millis(60);
  make_ready();
  Outcome& a = ask("a");
  Outcome& b = ask("b");
  ASSERT_TRUE(wait_received("mg a v\r\nmg b v\r\n"));
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_EQ(a.bytes, kFailureText);
  EXPECT_EQ(recorder_.errors, (std::vector{Error{McpFailure::Timeout, 2, ""}}));
  if (peer().stream) {
    peer().send("VA 5\r\nwrong\r\nHD\r\n");
  }
  Outcome& c = ask("c");
  ASSERT_TRUE(wait_received("mg c v\r\n", 1));
  peer().send("VA 5\r\nright\r\n");
  ASSERT_TRUE(run_until([&] { return c.is_done; }));
  EXPECT_EQ(c.bytes, "VA 5\r\nright\r\n");
}

TEST_P(McpLinkTest, EachReadRestartsTheTimeOfSilence) {
  options_.read_timeout = Millis(200);
  make_ready();
  Outcome& a = ask("a");
  ASSERT_TRUE(wait_received("mg a v\r\n"));
  for (const std::string_view piece : {"VA 3\r\n", "a", "b", "c"}) {
    rig_.run_for(Millis(90));
    ASSERT_FALSE(a.is_done);
    peer().send(piece);
  }
  rig_.run_for(Millis(20));
  peer().send("\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_FALSE(a.is_failure());
}

TEST_P(McpLinkTest, AnIdleConnectionMayBeSilent) {
  options_.read_timeout = Millis(40);
  make_ready();
  Outcome& a = ask("a");
  ASSERT_TRUE(wait_received("mg a v\r\n"));
  peer().send("HD\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  rig_.run_for(Millis(120));
  EXPECT_EQ(link().phase(), McpLink::Phase::Ready);
  Outcome& b = ask("b");  // Its time begins now.
  ASSERT_TRUE(wait_received("mg b v\r\n"));
  EXPECT_FALSE(b.is_done);
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_EQ(recorder_.errors, (std::vector{Error{McpFailure::Timeout, 1, ""}}));
}

TEST_P(McpLinkTest, FlappingMarksBadWithALongerPause) {
  options_.failure_limit = 1;
  options_.flap_time = Seconds(60);
  options_.flap_backoff_ramp = 2;
  make();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(wait_ready());
    ASSERT_TRUE(run_until([&] { return peer().stream != nullptr; }));
    EXPECT_TRUE(recorder_.bads.empty());
    const std::size_t errors = recorder_.errors.size();
    peer().close();
    ASSERT_TRUE(run_until([&] { return recorder_.errors.size() > errors; }));
  }
  EXPECT_EQ(recorder_.bads, (std::vector{Bad{true, Seconds(12)}}));
  EXPECT_EQ(stats_->failed.get(), 1U);
  EXPECT_TRUE(ask("a").is_done);
}

INSTANTIATE_TEST_SUITE_P(Engines, McpLinkTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::pool
