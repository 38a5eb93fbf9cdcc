// Order of replies, local commands, and what is hidden.
#include "front/session.h"

#include "front/binary_refusal.h"
#include "tests/unit/front/session_rig.h"

namespace kvferry::front {
namespace {

using memcache::ReplyCode;
using test::Peer;

class SessionTest : public SessionRig {};

TEST_P(SessionTest, RepliesLeaveInTheOrderOfTheRequests) {
  Peer& client = connect();
  client.send("get a\r\nget b\r\nget c\r\n");
  ASSERT_TRUE(wait_for_requests(3));
  EXPECT_EQ(target_.held[1].text, "get b\r\n");
  target_.reply(2, "C\r\n");
  target_.reply(1, "B\r\n");
  settle();
  EXPECT_EQ(client.data, "");
  target_.reply(0, "A\r\n");
  expect_client(client, "A\r\nB\r\nC\r\n");
}

TEST_P(SessionTest, PartsOfLaterRepliesWaitForTheirTurn) {
  Peer& client = connect();
  client.send("get a\r\nget b\r\n");
  ASSERT_TRUE(wait_for_requests(2));
  target_.part(1, "B1", true);
  target_.part(0, "A1", true);
  expect_client(client, "A1");
  target_.part(1, "B2", false);
  target_.part(0, "A2\r\n", false, true);
  expect_client(client, "A2\r\n");
  target_.part(1, "B3\r\n", false, true);
  expect_client(client, "B1B2B3\r\n");
}

TEST_P(SessionTest, ClientsDoNotWaitForOneAnother) {
  Peer& one = connect();
  Peer& two = connect();
  one.send("get a\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  two.send("get b\r\n");
  ASSERT_TRUE(wait_for_requests(2));
  EXPECT_NE(target_.held[0].call->lane, target_.held[1].call->lane);
  target_.reply(1, "B\r\n");
  expect_client(two, "B\r\n");
  EXPECT_EQ(one.data, "");
}

TEST_P(SessionTest, RequestsCutAnywhereAreJoined) {
  const std::string text = "set key 1 2 5\r\nhello\r\nget key\r\n";
  for (std::size_t at = 1; at < text.size(); at += 2) {
    Peer& client = connect();
    const std::size_t before = target_.count();
    client.send(text.substr(0, at));
    rig_.run_turns(4);
    client.send(text.substr(at));
    ASSERT_TRUE(wait_for_requests(before + 2));
    ASSERT_EQ(target_.held[before].text, "set key 1 2 5\r\nhello\r\n");
    ASSERT_EQ(target_.held[before + 1].text, "get key\r\n");
  }
}

TEST_P(SessionTest, AnswersFromWithinSendKeepOrder) {
  target_.instant_reply = "END\r\n";
  Peer& client = connect();
  client.send("get a\r\nmn\r\nget b\r\nbad\r\nget c\r\n");
  expect_client(client, "END\r\nMN\r\nEND\r\nERROR\r\nEND\r\n");
}

TEST_P(SessionTest, LocalCommandsKeepTheirPlace) {
  Peer& client = connect();
  client.send("get a\r\nmn\r\nversion\r\nget b\r\nstats  items \r\n");
  ASSERT_TRUE(wait_for_requests(2));
  settle();
  EXPECT_EQ(client.data, "");
  target_.reply(1, "B\r\n");
  target_.reply(0, "A\r\n");
  expect_client(client, "A\r\nMN\r\nVERSION 1.2.3\r\nB\r\nSTAT words <items>\r\nEND\r\n");
}

TEST_P(SessionTest, AnswersLocalCommands) {
  const struct {
    const char* request;
    const char* answer;
  } table[] = {
      {"mn\r\n", "MN\r\n"},
      {"version\r\n", "VERSION 1.2.3\r\n"},
      {"stats\r\n", "STAT words <>\r\nEND\r\n"},
      {"stats none\r\n", "ERROR\r\n"},
      {"verbosity 3\r\n", "OK\r\n"},
      {"verbosity x\r\n", "CLIENT_ERROR bad command line format\r\n"},
      {"flush_all\r\n", "ERROR\r\n"},
      {"shutdown\r\n", "ERROR\r\n"},
      {"watch\r\n", "CLIENT_ERROR watch commands not allowed\r\n"},
      {"nonsense\r\n", "ERROR\r\n"},
  };
  Peer& client = connect();
  for (const auto& row : table) {
    client.send(row.request);
    expect_client(client, row.answer);
  }
  EXPECT_EQ(commands_.verbosity, 3U);
  EXPECT_EQ(target_.count(), 0U);
}

TEST_P(SessionTest, FlushAllGoesToTheTargetWhereAdministrationIsAllowed) {
  options_.allows_admin = true;
  configure();
  Peer& client = connect();
  client.send("flush_all 3\r\nshutdown\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  EXPECT_EQ(target_.held[0].text, "flush_all 3\r\n");
  target_.reply(0, "OK\r\n", ReplyCode::Ok);
  expect_client(client, "OK\r\nSERVER_ERROR: shutdown not enabled\r\n");
}

TEST_P(SessionTest, SilentCommandsAreHidden) {
  Peer& client = connect();
  client.send(
      "set a 0 0 1 noreply\r\nx\r\nmg b v q\r\nmg c v q\r\nms d 1 q\r\nx\r\nms e 1 q\r\nx\r\n"
      "verbosity 1 noreply\r\nflush_all noreply\r\nmn\r\n");
  ASSERT_TRUE(wait_for_requests(5));
  target_.reply(0, "SERVER_ERROR x\r\n", ReplyCode::ServerError);
  target_.reply(1, "EN\r\n", ReplyCode::MetaEn);
  target_.reply(2, "VA 1\r\nx\r\n", ReplyCode::MetaVa);
  target_.reply(3, "HD\r\n", ReplyCode::MetaHd);
  target_.reply(4, "NS\r\n", ReplyCode::MetaNs);
  expect_client(client, "VA 1\r\nx\r\nNS\r\nMN\r\n");
}

TEST_P(SessionTest, AHiddenReplyThatCameEarlyStaysHidden) {
  Peer& client = connect();
  client.send("get a\r\nset b 0 0 1 noreply\r\nx\r\nget c\r\n");
  ASSERT_TRUE(wait_for_requests(3));
  target_.reply(2, "C\r\n");
  target_.reply(1, "STORED\r\n", ReplyCode::Stored);
  target_.reply(0, "A\r\n");
  expect_client(client, "A\r\nC\r\n");
}

TEST_P(SessionTest, ParseFailuresKeepOrderAndTheStreamInStep) {
  Peer& client = connect();
  client.send("get a\r\nget " + std::string(251, 'k') + "\r\nset b 0 0 x\r\nget c\r\n");
  ASSERT_TRUE(wait_for_requests(2));
  EXPECT_EQ(target_.held[1].text, "get c\r\n");
  target_.reply(1, "C\r\n");
  target_.reply(0, "A\r\n");
  ASSERT_TRUE(run_until([&] { return client.data.ends_with("C\r\n"); }));
  const std::string got = client.take();
  EXPECT_TRUE(got.starts_with("A\r\nCLIENT_ERROR ")) << got;
  EXPECT_EQ(std::count(got.begin(), got.end(), '\n'), 4) << got;
  EXPECT_EQ(stats().parse_errors.get(), 2U);
}

TEST_P(SessionTest, AValueThatIsTooLargeIsSwallowed) {
  options_.parser.value_bytes_max = 10;
  service_->close_all();
  configure();
  // A service that drains serves nobody; a fresh one has the new limit.
  rig_.run_turns(3);
  make();
  Peer& client = connect();
  client.send("set a 0 0 11\r\n01234567890\r\nset b 0 0 10\r\n0123456789\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  EXPECT_EQ(target_.held[0].text, "set b 0 0 10\r\n0123456789\r\n");
  target_.reply(0, "STORED\r\n", ReplyCode::Stored);
  expect_client(client, "SERVER_ERROR object too large for cache\r\nSTORED\r\n");
}

TEST_P(SessionTest, BinaryClientsAreToldInTheirProtocolAfterWhatCameBefore) {
  const std::string request("\x80\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00OPAQ\0\0\0\0\0\0\0\0",
                            24);
  Peer& client = connect();
  client.send("get a\r\n" + request + "get b\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  settle();
  EXPECT_FALSE(client.is_gone());
  target_.reply(0, "A\r\n");
  expect_closed(client);
  EXPECT_EQ(client.data, "A\r\n" + compose_binary_refusal(request));
  EXPECT_EQ(commands_.binary_clients, 1);
  EXPECT_EQ(target_.count(), 1U);
}

TEST_P(SessionTest, OtherForeignProtocolsAreClosed) {
  Peer& client = connect();
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  expect_closed(client);
  EXPECT_EQ(commands_.binary_clients, 0);
}

TEST_P(SessionTest, QuitAnswersWhatCameBeforeAndNothingBehind) {
  Peer& client = connect();
  client.send("get a\r\nquit\r\nget b\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  settle();
  EXPECT_FALSE(client.is_gone());
  target_.reply(0, "A\r\n");
  expect_closed(client);
  EXPECT_EQ(client.data, "A\r\n");
  EXPECT_EQ(target_.count(), 1U);
}

TEST_P(SessionTest, AReplyThatIsBrokenClosesTheClient) {
  Peer& client = connect();
  client.send("get a\r\nget b\r\n");
  ASSERT_TRUE(wait_for_requests(2));
  target_.is_sure = false;
  target_.part(0, "VALUE a 0 200000\r\n" + test::pattern(100'000), true);
  target_.part(0, "", false, true, true);
  expect_closed(client);
  EXPECT_TRUE(target_.is_outstanding(1));
}

TEST_P(SessionTest, RepliesBeforeABrokenOneAreSentAllTheSame) {
  Peer& client = connect();
  client.send("get a\r\nget b\r\n");
  ASSERT_TRUE(wait_for_requests(2));
  target_.is_sure = false;
  // All in one turn, so that nothing has left when the connection has to end.
  target_.part(0, "END\r\n", true, true);
  target_.part(1, "VALUE b 0 200000\r\n" + test::pattern(100'000), true);
  target_.part(1, "", false, true, true);
  expect_closed(client);
  EXPECT_EQ(client.data.size(), 5 + 18 + 100'000U);
  EXPECT_EQ(client.data.substr(0, 10), "END\r\nVALUE");
}

TEST_P(SessionTest, ASmallReplyThatIsBrokenIsAnErrorLine) {
  target_.is_sure = false;
  Peer& client = connect();
  client.send("get a\r\nget b\r\n");
  ASSERT_TRUE(wait_for_requests(2));
  target_.part(0, "VALUE a 0 10\r\n012", true);
  target_.part(0, "34", false);
  settle();
  EXPECT_EQ(client.data, "") << "passed on although it can still be cut off";
  target_.part(0, "", false, true, true);
  target_.reply(1, "B\r\n");
  expect_client(client, "SERVER_ERROR kvferry: connection to backend lost\r\nB\r\n");
}

TEST_P(SessionTest, ASmallReplyInPartsIsWhole) {
  target_.is_sure = false;
  Peer& client = connect();
  client.send("get a\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  target_.part(0, "VALUE a 0 4\r\n01", true);
  target_.part(0, "23", false);
  target_.part(0, "\r\nEND\r\n", false, true);
  expect_client(client, "VALUE a 0 4\r\n0123\r\nEND\r\n");
}

TEST_P(SessionTest, LinesThatAServerWouldRefuseDoNotReachIt) {
  Peer& client = connect();
  client.send("set a x 0 1\r\nv\r\nset b 0 0 1 surplus words\r\nv\r\nget c\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  EXPECT_EQ(target_.held[0].text, "get c\r\n");
  target_.reply(0, "C\r\n");
  ASSERT_TRUE(run_until([&] { return client.data.ends_with("C\r\n"); }));
  EXPECT_EQ(
      client.data,
      "CLIENT_ERROR bad command line format\r\nCLIENT_ERROR bad command line format\r\nC\r\n");
}

TEST_P(SessionTest, AReplyBrokenBeforeItsTurnIsAnErrorLine) {
  Peer& client = connect();
  client.send("get a\r\nget b\r\nget c\r\n");
  ASSERT_TRUE(wait_for_requests(3));
  target_.part(1, "VALUE b 0 10\r\n012", true);
  target_.part(1, "", false, true, true);
  target_.reply(2, "C\r\n");
  target_.reply(0, "A\r\n");
  expect_client(client, "A\r\nSERVER_ERROR kvferry: connection to backend lost\r\nC\r\n");
}

TEST_P(SessionTest, MemoryThatIsExhaustedRefusesRequests) {
  Peer& client = connect();
  client.send("mn\r\n");
  expect_client(client, "MN\r\n");
  rig_.budget.set_limit(1);
  client.send("get a\r\nset b 0 0 1 noreply\r\nx\r\nset c 0 0 70000\r\n" +
              std::string(70'000, 'x') + "\r\nmn\r\n");
  expect_client(client, "SERVER_ERROR out of memory\r\nSERVER_ERROR out of memory\r\nMN\r\n");
  EXPECT_EQ(target_.count(), 0U);
  EXPECT_EQ(stats().memory_refusals.get(), 3U);
  rig_.budget.set_limit(0);
}

TEST_P(SessionTest, CountsWhatItDoes) {
  Peer& client = connect();
  client.send("get a\r\nversion\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  EXPECT_EQ(stats().inflight.get(), 2U);
  target_.reply(0, "END\r\n");
  expect_client(client, "END\r\nVERSION 1.2.3\r\n");
  EXPECT_EQ(stats().inflight.get(), 0U);
  EXPECT_EQ(stats().requests[static_cast<std::size_t>(memcache::Command::Get)].get(), 1U);
  EXPECT_EQ(stats().requests[static_cast<std::size_t>(memcache::Command::Version)].get(), 1U);
  EXPECT_EQ(stats().bytes_received.get(), 16U);
  EXPECT_EQ(stats().bytes_sent.get(), 20U);
  EXPECT_NE(stats().latencies.find(memcache::Command::Get), nullptr);
  EXPECT_EQ(stats().latencies.find(memcache::Command::Set), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Engines, SessionTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::front
