// Clients of Redis: order of replies, what is answered here, long requests, what is refused.
#include "front/resp_client.h"

#include "tests/unit/front/resp_rig.h"

namespace kvferry::front {
namespace {

using test::Peer;

class RespClientTest : public RespRig {};

TEST_P(RespClientTest, PassesRequestsOnAndRepliesBackInOrder) {
  Peer& client = connect();
  client.send(request({"GET", "a"}) + request({"PING"}) + request({"set", "b", "1"}) + "get c\r\n");
  ASSERT_TRUE(wait_for_redis(3));
  EXPECT_EQ(redis_.held[0].bytes, request({"GET", "a"}));
  EXPECT_EQ(redis_.held[1].bytes, request({"set", "b", "1"}));
  EXPECT_EQ(redis_.held[2].bytes, request({"get", "c"})) << "an inline request becomes an array";
  EXPECT_EQ(redis_.held[1].command, "set");
  redis_.reply(2, "$1\r\nc\r\n");
  redis_.reply(1, "+OK\r\n");
  settle();
  EXPECT_EQ(client.data, "");
  redis_.reply(0, "$-1\r\n");
  expect_client(client, "$-1\r\n+PONG\r\n+OK\r\n$1\r\nc\r\n");
}

TEST_P(RespClientTest, TakesRequestsCutAnywhere) {
  redis_.instant_reply = "+OK\r\n";
  const std::string text =
      request({"SET", "key", "value"}) + request({"ECHO", "hello"}) + "PING\r\n";
  for (std::size_t at = 1; at < text.size(); ++at) {
    Peer& client = connect();
    client.send(text.substr(0, at));
    settle();
    client.send(text.substr(at));
    expect_client(client, "+OK\r\n$5\r\nhello\r\n+PONG\r\n");
    client.stream.reset();
  }
}

TEST_P(RespClientTest, RefusesWhatNoServerWouldRunAndGoesOn) {
  Peer& client = connect();
  client.send(request({"GET"}) + request({"CLIENT", "NOSUCH"}) + request({"NOSUCH"}) +
              request({"DEBUG", "SLEEP", "1"}) + request({"PING"}));
  expect_client(client,
                "-ERR wrong number of arguments for 'get' command\r\n"
                "-ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP.\r\n"
                "-ERR unknown command 'NOSUCH', with args beginning with: \r\n"
                "-ERR kvferry: 'debug' is refused by the proxy\r\n"
                "+PONG\r\n");
  EXPECT_EQ(redis_.held.size(), 0U);
}

TEST_P(RespClientTest, PassesCommandsOnThatTheTableDoesNotHave) {
  redis_.instant_reply = "+OK\r\n";
  Peer& client = connect();
  client.send(request({"JSON.SET", "k", "$", "1"}));
  expect_client(client, "+OK\r\n");
  EXPECT_EQ(redis_.held[0].bytes, request({"JSON.SET", "k", "$", "1"}));
}

TEST_P(RespClientTest, EndsAClientWhoseBytesAreNoRequests) {
  Peer& client = connect();
  client.send(request({"GET", "a"}) + "*1\r\n:1\r\n" + request({"GET", "b"}));
  ASSERT_TRUE(wait_for_redis(1));
  redis_.reply(0, "$-1\r\n");
  expect_client(client, "$-1\r\n-ERR Protocol error: expected '$', got ':'\r\n");
  expect_closed(client);
  EXPECT_EQ(redis_.held.size(), 1U);
}

TEST_P(RespClientTest, StreamsALongValueAndKeepsTheOrder) {
  const std::string value(200'000, 'v');
  Peer& client = connect();
  client.send(request({"GET", "a"}) + request({"SET", "big", value, "KEEPTTL"}) +
              request({"GET", "b"}));
  ASSERT_TRUE(wait_for_redis(1));
  settle();
  EXPECT_EQ(redis_.held.size(), 1U) << "it waits until all before it is answered";
  redis_.reply(0, "$-1\r\n");
  ASSERT_TRUE(wait_for_redis(2));
  ASSERT_TRUE(run_until([&] { return redis_.held[1].is_whole; }));
  EXPECT_EQ(redis_.held[1].bytes + redis_.held[1].body, request({"SET", "big", value, "KEEPTTL"}));
  settle();
  EXPECT_EQ(redis_.held.size(), 2U) << "what follows waits for its reply";
  redis_.reply(1, "+OK\r\n");
  ASSERT_TRUE(wait_for_redis(3));
  redis_.reply(2, "$1\r\nb\r\n");
  expect_client(client, "$-1\r\n+OK\r\n$1\r\nb\r\n");
}

TEST_P(RespClientTest, SwallowsTheRestOfALongValueThatWasRefused) {
  const std::string text = request({"SET", "big", std::string(200'000, 'v'), "KEEPTTL"});
  Peer& client = connect();
  client.send(text.substr(0, 70'000));
  ASSERT_TRUE(wait_for_redis(1));
  redis_.reply(0, "-OOM no\r\n");
  expect_client(client, "-OOM no\r\n");
  client.send(text.substr(70'000) + request({"PING"}));
  expect_client(client, "+PONG\r\n");
}

TEST_P(RespClientTest, TellsTheTargetOfAValueWhoseClientIsGone) {
  Peer& client = connect();
  client.send(request({"SET", "big", std::string(200'000, 'v')}).substr(0, 100'000));
  ASSERT_TRUE(wait_for_redis(1));
  client.stream.reset();
  ASSERT_TRUE(run_until([&] { return redis_.held[0].is_lost; }));
}

TEST_P(RespClientTest, KeepsLongRequestsWholeThatMustBeSeenWhole) {
  const std::string value(200'000, 'v');
  Peer& client = connect();
  client.send(request({"MSET", "a", value, "b", value}) + request({"ECHO", value}));
  ASSERT_TRUE(wait_for_redis(1));
  EXPECT_EQ(redis_.held[0].bytes, request({"MSET", "a", value, "b", value}));
  redis_.reply(0, "+OK\r\n");
  expect_client(client, "+OK\r\n$200000\r\n" + value + "\r\n");
}

TEST_P(RespClientTest, RefusesWhatIsLongerThanIsKept) {
  options_.resp.gather_bytes_max = 300'000;
  configure();
  const std::string value(200'000, 'v');
  Peer& client = connect();
  client.send(request({"MSET", "a", value, "b", value}) +
              request({"ECHO", std::string(400'000, 'e')}) + request({"PING"}));
  const std::string refusal = "-ERR kvferry: the request is larger than is kept here\r\n";
  expect_client(client, refusal + refusal + "+PONG\r\n");
  EXPECT_EQ(redis_.held.size(), 0U);
}

TEST_P(RespClientTest, AnswersInTheVersionThatWasAskedFor) {
  Peer& client = connect();
  client.send(request({"CLIENT", "GETNAME"}) + request({"HELLO", "3"}) +
              request({"CLIENT", "GETNAME"}) + request({"GET", "k"}) + request({"HELLO", "2"}) +
              request({"GET", "k"}));
  ASSERT_TRUE(wait_for_redis(1));
  settle();
  ASSERT_EQ(redis_.held.size(), 1U)
      << "what is sent in another version waits for what was sent before";
  redis_.reply(0, "_\r\n");
  ASSERT_TRUE(wait_for_redis(2));
  EXPECT_EQ(redis_.held[0].version, resp::Version::Three);
  EXPECT_EQ(redis_.held[1].version, resp::Version::Two);
  redis_.reply(1, "$-1\r\n");
  const std::string hello =
      "$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:#\r\n$"
      "2\r\nid\r\n:1\r\n"
      "$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n";
  const auto with = [&](char version) {
    return std::string(hello).replace(hello.find('#'), 1, 1, version);
  };
  expect_client(client, "$-1\r\n%7\r\n" + with('3') + "_\r\n_\r\n*14\r\n" + with('2') + "$-1\r\n");
}

TEST_P(RespClientTest, RefusesHelloAsAServerDoes) {
  Peer& client = connect();
  client.send(request({"HELLO", "4"}) + request({"HELLO", "x"}) + request({"HELLO", "3", "FOO"}) +
              request({"HELLO", "3", "SETNAME", "a b"}) +
              request({"HELLO", "3", "AUTH", "bob", "x"}) + request({"CLIENT", "GETNAME"}));
  expect_client(client,
                "-NOPROTO unsupported protocol version\r\n"
                "-ERR Protocol version is not an integer or out of range\r\n"
                "-ERR Syntax error in HELLO option 'FOO'\r\n"
                "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"
                "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
                "$-1\r\n");
}

TEST_P(RespClientTest, ServesOnlyThoseWhoSaidWhoTheyAre) {
  options_.resp.credentials =
      std::make_shared<Credentials>(*Credentials::parse("default:secret\nbob:word\n"));
  configure();
  Peer& client = connect();
  client.send(request({"GET", "a"}) + request({"AUTH", "wrong"}) + request({"HELLO", "3"}) +
              request({"AUTH", "secret"}) + request({"ACL", "WHOAMI"}) +
              request({"AUTH", "bob", "word"}) + request({"ACL", "WHOAMI"}) + request({"RESET"}) +
              request({"GET", "a"}));
  expect_client(
      client,
      "-NOAUTH Authentication required.\r\n"
      "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
      "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
      "AUTH <user> <pass> "
      "option can be used to authenticate the client and select the RESP protocol version at the "
      "same time\r\n"
      "+OK\r\n$7\r\ndefault\r\n+OK\r\n$3\r\nbob\r\n+RESET\r\n-NOAUTH Authentication required.\r\n");
  Peer& stranger = connect();
  stranger.send("*11\r\n");
  expect_client(stranger, "-ERR Protocol error: unauthenticated multibulk length\r\n");
  expect_closed(stranger);
}

TEST_P(RespClientTest, ChoosesDatabases) {
  redis_.instant_reply = "+OK\r\n";
  Peer& client = connect();
  client.send(request({"SELECT", "15"}) + request({"GET", "a"}) + request({"SELECT", "16"}) +
              request({"SELECT", "-1"}) + request({"SELECT", "x"}) + request({"GET", "a"}));
  expect_client(client,
                "+OK\r\n+OK\r\n-ERR DB index is out of range\r\n-ERR DB index is out of range\r\n"
                "-ERR value is not an integer or out of range\r\n+OK\r\n");
  EXPECT_EQ(redis_.held[0].database, 15U);
  EXPECT_EQ(redis_.held[1].database, 15U);
}

TEST_P(RespClientTest, KeepsTransactionsUntilExec) {
  Peer& client = connect();
  client.send(request({"MULTI"}) + request({"SET", "a", "1"}) + "incr a\r\n" + request({"MULTI"}) +
              request({"EXEC"}));
  ASSERT_TRUE(wait_for_redis(1));
  EXPECT_EQ(redis_.held[0].command, "block of 2");
  EXPECT_EQ(redis_.held[0].bytes, request({"SET", "a", "1"}) + request({"incr", "a"}));
  redis_.reply(0, "*2\r\n+OK\r\n:2\r\n");
  expect_client(
      client,
      "+OK\r\n+QUEUED\r\n+QUEUED\r\n-ERR MULTI calls can not be nested\r\n*2\r\n+OK\r\n:2\r\n");
}

TEST_P(RespClientTest, DiscardsTransactionsThatCannotRun) {
  Peer& client = connect();
  client.send(request({"EXEC"}) + request({"DISCARD"}) + request({"MULTI"}) + request({"EXEC"}) +
              request({"MULTI"}) + request({"GET"}) + request({"EXEC"}) + request({"MULTI"}) +
              request({"SET", "a", "1"}) + request({"DISCARD"}) + request({"EXEC"}));
  expect_client(client,
                "-ERR EXEC without MULTI\r\n-ERR DISCARD without MULTI\r\n+OK\r\n*0\r\n+OK\r\n"
                "-ERR wrong number of arguments for 'get' command\r\n"
                "-EXECABORT Transaction discarded because of previous errors.\r\n"
                "+OK\r\n+QUEUED\r\n+OK\r\n-ERR EXEC without MULTI\r\n");
  EXPECT_EQ(redis_.held.size(), 0U);
}

TEST_P(RespClientTest, ACommandWhoseKeysAreElsewhereSpoilsTheTransaction) {
  Peer& client = connect();
  client.send(request({"MULTI"}) + request({"SET", "a", "1"}) + request({"GET", "unfit"}) +
              request({"EXEC"}) + request({"EXEC"}));
  expect_client(client,
                "+OK\r\n+QUEUED\r\n-CROSSSLOT elsewhere\r\n"
                "-EXECABORT Transaction discarded because of previous errors.\r\n"
                "-ERR EXEC without MULTI\r\n");
  EXPECT_EQ(redis_.held.size(), 0U);
}

TEST_P(RespClientTest, QueuesUnwatch) {
  Peer& client = connect();
  client.send(request({"MULTI"}) + request({"UNWATCH"}) + request({"EXEC"}));
  ASSERT_TRUE(wait_for_redis(1));
  EXPECT_EQ(redis_.held[0].bytes, request({"UNWATCH"}));
}

TEST_P(RespClientTest, SelectInATransactionCountsOnceThatHasRun) {
  struct Case {
    const char* reply;
    std::uint32_t database;
  };
  for (const Case& one : {Case{"*2\r\n+OK\r\n+OK\r\n", 5U}, Case{"*-1\r\n", 0U},
                          Case{"-EXECABORT Transaction discarded\r\n", 0U}}) {
    redis_.held.clear();
    Peer& client = connect();
    client.send(request({"MULTI"}) + request({"SELECT", "5"}) + request({"SET", "a", "1"}) +
                request({"EXEC"}) + request({"GET", "a"}));
    ASSERT_TRUE(wait_for_redis(1));
    rig_.run_turns(3);
    ASSERT_EQ(redis_.held.size(), 1U) << "GET did not wait for EXEC";
    EXPECT_EQ(redis_.held[0].bytes, request({"SELECT", "5"}) + request({"SET", "a", "1"}));
    EXPECT_EQ(redis_.held[0].database, 0U);
    redis_.reply(0, one.reply);
    ASSERT_TRUE(wait_for_redis(2));
    EXPECT_EQ(redis_.held[1].database, one.database) << one.reply;
    redis_.reply(1, "$-1\r\n");
    expect_client(client, "+OK\r\n+QUEUED\r\n+QUEUED\r\n" + std::string(one.reply) + "$-1\r\n");
  }
}

TEST_P(RespClientTest, SelectOfNoDatabaseSpoilsTheTransaction) {
  Peer& client = connect();
  client.send(request({"MULTI"}) + request({"SELECT", "16"}) + request({"SELECT", "x"}) +
              request({"EXEC"}));
  expect_client(client,
                "+OK\r\n-ERR DB index is out of range\r\n"
                "-ERR value is not an integer or out of range\r\n"
                "-EXECABORT Transaction discarded because of previous errors.\r\n");
}

TEST_P(RespClientTest, DropsATransactionWhoseClientIsSilent) {
  options_.resp.transaction_idle_max = base::Millis(20);
  renew();
  Peer& client = connect();
  client.send(request({"MULTI"}) + request({"SET", "a", "1"}));
  expect_client(client, "+OK\r\n+QUEUED\r\n");
  rig_.run_for(base::Millis(60));
  client.send(request({"SET", "b", "1"}) + request({"EXEC"}) + request({"MULTI"}) +
              request({"EXEC"}));
  expect_client(client,
                "+QUEUED\r\n-EXECABORT Transaction discarded because of: kvferry: idle for 0 s\r\n"
                "+OK\r\n*0\r\n");
  EXPECT_EQ(redis_.held.size(), 0U);
}

TEST_P(RespClientTest, ResetAndQuitEndATransaction) {
  Peer& client = connect();
  client.send(request({"MULTI"}) + request({"SET", "a", "1"}) + request({"RESET"}) +
              request({"EXEC"}) + request({"MULTI"}) + request({"QUIT"}));
  expect_client(client, "+OK\r\n+QUEUED\r\n+RESET\r\n-ERR EXEC without MULTI\r\n+OK\r\n+OK\r\n");
  expect_closed(client);
  EXPECT_EQ(redis_.held.size(), 0U);
}

TEST_P(RespClientTest, IsSilentWhenToldSo) {
  redis_.instant_reply = "+OK\r\n";
  Peer& client = connect();
  client.send(request({"CLIENT", "REPLY", "SKIP"}) + request({"SET", "a", "1"}) +
              request({"ECHO", "1"}) + request({"CLIENT", "REPLY", "OFF"}) +
              request({"SET", "a", "1"}) + request({"NOSUCH"}) +
              request({"CLIENT", "REPLY", "ON"}) + request({"ECHO", "2"}));
  expect_client(client, "$1\r\n1\r\n+OK\r\n$1\r\n2\r\n");
  EXPECT_EQ(redis_.held.size(), 2U);
}

TEST_P(RespClientTest, ListsAndEndsOtherClients) {
  Peer& one = connect();
  Peer& two = connect();
  one.send(request({"CLIENT", "SETNAME", "first"}) + request({"CLIENT", "ID"}));
  expect_client(one, "+OK\r\n:1\r\n");
  two.send(request({"CLIENT", "ID"}) + request({"CLIENT", "SETINFO", "LIB-NAME", "lib"}));
  expect_client(two, ":2\r\n+OK\r\n");
  two.send(request({"CLIENT", "LIST"}));
  ASSERT_TRUE(run_until([&] { return two.data.find("lib-name=lib") != std::string::npos; }));
  EXPECT_NE(two.data.find("id=1 addr=127.0.0.1:"), std::string::npos) << two.data;
  EXPECT_NE(two.data.find(" name=first "), std::string::npos);
  EXPECT_NE(two.data.find(" cmd=client|list "), std::string::npos);
  two.take();
  two.send(request({"CLIENT", "KILL", "ID", "1"}));
  expect_client(two, ":1\r\n");
  expect_closed(one);
  two.send(request({"CLIENT", "KILL", "ID", "2", "SKIPME", "no"}));
  expect_client(two, ":1\r\n");
  expect_closed(two);
  EXPECT_EQ(registry_.list().size(), 0U);
}

TEST_P(RespClientTest, QuitsWhenAllIsAnswered) {
  Peer& client = connect();
  client.send(request({"GET", "a"}) + request({"QUIT"}) + request({"GET", "b"}));
  ASSERT_TRUE(wait_for_redis(1));
  redis_.reply(0, "$1\r\na\r\n");
  expect_client(client, "$1\r\na\r\n+OK\r\n");
  expect_closed(client);
  EXPECT_EQ(redis_.held.size(), 1U);
}

TEST_P(RespClientTest, TellsClientsThatAreTooManyInTheirWords) {
  limit_->set_max(1);
  connect();
  Peer& second = connect();
  expect_client(second, "-ERR max number of clients reached\r\n");
  expect_closed(second);
  limit_->set_max(0);
}

TEST_P(RespClientTest, TellsProtocolsApartByTheirFirstByte) {
  options_.resp.is_only = false;
  options_.serves_text = options_.serves_binary = true;
  configure();
  redis_.instant_reply = "+OK\r\n";
  target_.instant_reply = "END\r\n";
  Peer& redis = connect();
  Peer& memcached = connect();
  redis.send(request({"SET", "a", "1"}));
  memcached.send("get a\r\n");
  expect_client(redis, "+OK\r\n");
  expect_client(memcached, "END\r\n");
  EXPECT_EQ(redis_.held.size(), 1U);
  EXPECT_EQ(target_.held.size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Engines, RespClientTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::front
