// Clients that speak the binary protocol: what the target is sent, and what they get of its
// replies.
#include "front/session.h"
#include "tests/support/binary_packets.h"
#include "tests/unit/front/session_rig.h"

namespace kvferry::front {
namespace {

using memcache::ReplyCode;
using test::Peer;
using test::request_packet;
using test::response_packet;

class BinarySessionTest : public SessionRig {
 protected:
  /// Passes a part of the reply to the `index`-th request on; true when a pause is wanted.
  bool part(std::size_t index, std::string_view bytes, ReplyCode code, bool is_first, bool is_last,
            bool is_broken = false) {
    call::Call& call = *target_.held.at(index).call;
    if (is_last) {
      target_.held.at(index).call = nullptr;
    }
    return call.sink->on_reply(call, {.bytes = bytes,
                                      .code = code,
                                      .is_first = is_first,
                                      .is_last = is_last,
                                      .is_broken = is_broken}) == call::Flow::Pause;
  }
  std::string noop(std::uint32_t opaque) {
    return request_packet({.opcode = 0x0a, .opaque = opaque});
  }
  std::string noop_done(std::uint32_t opaque) {
    return response_packet({.opcode = 0x0a, .opaque = opaque});
  }
};

const std::string kZeroes(8, '\0');
const std::string kFlags7("\0\0\0\7", 4);

TEST_P(BinarySessionTest, AReadIsAnMgAndItsReplyAResponse) {
  Peer& client = connect();
  client.send(request_packet({.opcode = 0x0c, .key = "key", .opaque = 77}));
  ASSERT_TRUE(wait_for_requests(1));
  EXPECT_EQ(target_.held[0].text, "mg key v f c\r\n");
  target_.reply(0, "VA 5 f7 c9\r\nvalue\r\n", ReplyCode::MetaVa);
  expect_client(client, response_packet({.opcode = 0x0c,
                                         .extras = kFlags7,
                                         .key = "key",
                                         .value = "value",
                                         .opaque = 77,
                                         .cas = 9}));
}

TEST_P(BinarySessionTest, AKeyedMissRepeatsTheKeyAndAnotherSaysSo) {
  Peer& client = connect();
  client.send(request_packet({.opcode = 0x0c, .key = "key"}) +
              request_packet({.opcode = 0x00, .key = "key"}));
  ASSERT_TRUE(wait_for_requests(2));
  target_.reply(0, "EN\r\n", ReplyCode::MetaEn);
  target_.reply(1, "EN\r\n", ReplyCode::MetaEn);
  expect_client(client, response_packet({.opcode = 0x0c, .key = "key", .status = 1}) +
                            response_packet({.opcode = 0, .value = "Not found", .status = 1}));
}

TEST_P(BinarySessionTest, QuietOpcodesSayOnlyWhatIsUnusual) {
  Peer& client = connect();
  client.send(request_packet({.opcode = 0x09, .key = "miss"}) +
              request_packet({.opcode = 0x09, .key = "hit", .opaque = 2}) +
              request_packet({.opcode = 0x11, .extras = kZeroes, .key = "a", .value = "v"}) +
              request_packet({.opcode = 0x12, .extras = kZeroes, .key = "b", .value = "v"}) +
              noop(5));
  ASSERT_TRUE(wait_for_requests(4));
  EXPECT_EQ(target_.held[3].text, "ms b 1 ME c\r\nv\r\n");
  // In another order than asked: the client sees its own.
  target_.reply(3, "NS\r\n", ReplyCode::MetaNs);
  target_.reply(1, "VA 1 f0 c3\r\nx\r\n", ReplyCode::MetaVa);
  target_.reply(0, "EN\r\n", ReplyCode::MetaEn);
  target_.reply(2, "HD c4\r\n", ReplyCode::MetaHd);
  expect_client(
      client, response_packet({.opcode = 0x09,
                               .extras = std::string_view(kZeroes).substr(4),
                               .value = "x",
                               .opaque = 2,
                               .cas = 3}) +
                  response_packet({.opcode = 0x12, .value = "Data exists for key.", .status = 2}) +
                  noop_done(5));
}

TEST_P(BinarySessionTest, NumbersHaveEightBytesHoweverTheyCome) {
  const std::string extras =
      test::big_endian(1, 8) + test::big_endian(0, 8) + test::big_endian(0xffffffff, 4);
  const std::string wanted =
      response_packet({.opcode = 0x05, .value = test::big_endian(1234, 8), .cas = 8});
  Peer& client = connect();
  client.send(request_packet({.opcode = 0x05, .extras = extras, .key = "n"}));
  ASSERT_TRUE(wait_for_requests(1));
  EXPECT_EQ(target_.held[0].text, "ma n MI D1 v c\r\n");
  part(0, "VA 4 c8\r\n12", ReplyCode::MetaVa, true, false);
  part(0, "34\r\n", ReplyCode::MetaVa, false, true);
  expect_client(client, wanted);
}

TEST_P(BinarySessionTest, PacketsMayBeCutAnywhere) {
  const std::string bytes =
      request_packet({.opcode = 0x01, .extras = kZeroes, .key = "k", .value = "value"}) + noop(1);
  Peer& client = connect();
  for (std::size_t at = 1; at < bytes.size(); ++at) {
    const std::size_t index = target_.count();
    client.send(std::string_view(bytes).substr(0, at));
    rig_.run_turns(2);
    client.send(std::string_view(bytes).substr(at));
    ASSERT_TRUE(wait_for_requests(index + 1));
    EXPECT_EQ(target_.held[index].text, "ms k 5 c\r\nvalue\r\n");
    target_.reply(index, "HD c1\r\n", ReplyCode::MetaHd);
    expect_client(client, response_packet({.opcode = 0x01, .cas = 1}) + noop_done(1));
  }
}

TEST_P(BinarySessionTest, ALargeValueGoesOnWhileItComes) {
  const std::string value = test::pattern(200'000);
  const std::string bytes =
      request_packet({.opcode = 0x01, .extras = kZeroes, .key = "k", .value = value});
  Peer& client = connect();
  client.send(std::string_view(bytes).substr(0, 100'000));
  ASSERT_TRUE(
      run_until([&] { return target_.count() == 1 && target_.held[0].body.size() > 90'000; }));
  EXPECT_EQ(target_.held[0].text, "ms k 200000 c\r\n");
  client.send(bytes.substr(100'000) + noop(2));
  ASSERT_TRUE(run_until([&] { return target_.held[0].is_whole; }));
  EXPECT_EQ(target_.held[0].body, value + "\r\n");
  target_.reply(0, "HD c6\r\n", ReplyCode::MetaHd);
  expect_client(client, response_packet({.opcode = 0x01, .cas = 6}) + noop_done(2));
}

TEST_P(BinarySessionTest, ALargeReplyGoesOnWhileItComes) {
  const std::string value = test::pattern(200'000);
  const std::string wanted =
      response_packet({.opcode = 0x00, .extras = kFlags7, .value = value, .cas = 9});
  Peer& client = connect();
  client.send(request_packet({.opcode = 0x00, .key = "k"}) + noop(3));
  ASSERT_TRUE(wait_for_requests(1));
  part(0, "VA 200000 f7 c9\r\n" + value.substr(0, 150'000), ReplyCode::MetaVa, true, false);
  expect_client(client, std::string_view(wanted).substr(0, 24 + 4 + 150'000));
  part(0, value.substr(150'000) + "\r\n", ReplyCode::MetaVa, false, true);
  expect_client(client, wanted.substr(24 + 4 + 150'000) + noop_done(3));
}

TEST_P(BinarySessionTest, AReplyThatIsCutOffIsAnErrorOrTheEnd) {
  Peer& client = connect();
  client.send(request_packet({.opcode = 0x00, .key = "k", .opaque = 4}) + noop(1));
  ASSERT_TRUE(wait_for_requests(1));
  part(0, "VA 2000 f7 c9\r\nfirst", ReplyCode::MetaVa, true, false);
  part(0, {}, ReplyCode::ServerError, false, true, true);
  expect_client(client, response_packet({.opcode = 0x00,
                                         .value = "kvferry: connection to backend lost",
                                         .opaque = 4,
                                         .status = 0x84}) +
                            noop_done(1));
  client.send(request_packet({.opcode = 0x00, .key = "k"}));
  ASSERT_TRUE(wait_for_requests(2));
  part(1, "VA 200000 f7 c9\r\n" + test::pattern(100'000), ReplyCode::MetaVa, true, false);
  part(1, {}, ReplyCode::ServerError, false, true, true);
  expect_closed(client);
}

TEST_P(BinarySessionTest, ABadArgumentIsAnsweredAndEndsTheClient) {
  Peer& client = connect();
  client.send(request_packet({.opcode = 0x01, .key = "k", .opaque = 6}) + noop(1));
  expect_closed(client);
  EXPECT_EQ(
      client.data,
      response_packet({.opcode = 0x01, .value = "Invalid arguments", .opaque = 6, .status = 4}));
  EXPECT_EQ(stats().parse_errors.get(), 1U);
}

TEST_P(BinarySessionTest, AnUnknownOpcodeAndAValueThatIsTooLargeAreSkipped) {
  options_.parser.value_bytes_max = 10;
  configure();
  Peer& client = connect();
  client.send(
      request_packet({.opcode = 0x70, .extras = "1234", .key = "k", .value = "v"}) +
      request_packet({.opcode = 0x11, .extras = kZeroes, .key = "k", .value = "01234567890"}) +
      noop(1));
  expect_client(client,
                response_packet({.opcode = 0x70, .value = "Unknown command", .status = 0x81}) +
                    response_packet({.opcode = 0x11, .value = "Too large.", .status = 3}) +
                    noop_done(1));
}

TEST_P(BinarySessionTest, TextBehindPacketsEndsTheClientWithoutAWord) {
  Peer& client = connect();
  client.send(noop(1) + "get a\r\n");
  expect_closed(client);
  EXPECT_EQ(client.data, noop_done(1));
}

TEST_P(BinarySessionTest, VersionStatsVerbosityAndQuitAreAnsweredHere) {
  Peer& client = connect();
  client.send(request_packet({.opcode = 0x0b}) + request_packet({.opcode = 0x10, .key = "x"}) +
              request_packet({.opcode = 0x10, .key = "none"}) +
              request_packet({.opcode = 0x1b, .extras = kFlags7}) +
              request_packet({.opcode = 0x08}) + request_packet({.opcode = 0x07}) + noop(1));
  expect_closed(client);
  EXPECT_EQ(client.data,
            response_packet({.opcode = 0x0b, .value = "1.2.3"}) +
                response_packet({.opcode = 0x10, .key = "words", .value = "<x>"}) +
                response_packet({.opcode = 0x10}) +
                response_packet({.opcode = 0x10, .value = "Not found", .status = 1}) +
                response_packet({.opcode = 0x1b}) +
                response_packet({.opcode = 0x08, .value = "Unknown command", .status = 0x81}) +
                response_packet({.opcode = 0x07}));
  EXPECT_EQ(commands_.verbosity, 7U);
}

TEST_P(BinarySessionTest, AdministratorsFlush) {
  options_.allows_admin = true;
  configure();
  Peer& client = connect();
  client.send(request_packet({.opcode = 0x18, .extras = kFlags7}) +
              request_packet({.opcode = 0x08}));
  ASSERT_TRUE(wait_for_requests(2));
  EXPECT_EQ(target_.held[0].text, "flush_all 7\r\n");
  target_.reply(0, "OK\r\n", ReplyCode::Ok);
  target_.reply(1, "OK\r\n", ReplyCode::Ok);
  expect_client(client, response_packet({.opcode = 0x08}));
}

TEST_P(BinarySessionTest, NobodyPassesWithoutSayingWhoHeIs) {
  options_.credentials = std::make_shared<const Credentials>(*Credentials::parse("me:secret\n"));
  configure();
  const std::string refused =
      response_packet({.opcode = 0x21, .value = "Auth failure.", .status = 0x20});
  Peer& client = connect();
  client.send(request_packet({.opcode = 0x20}) +
              request_packet(
                  {.opcode = 0x21, .key = "PLAIN", .value = std::string_view("\0me\0wrong", 9)}) +
              request_packet({.opcode = 0x21, .key = "LOGIN", .value = "me secret"}) +
              request_packet(
                  {.opcode = 0x21, .key = "PLAIN", .value = std::string_view("\0me\0secret", 10)}) +
              noop(1));
  expect_client(client, response_packet({.opcode = 0x20, .value = "PLAIN"}) + refused + refused +
                            response_packet({.opcode = 0x21, .value = "Authenticated"}) +
                            noop_done(1));
  EXPECT_EQ(stats().authentications_failed.get(), 2U);
  Peer& stranger = connect();
  stranger.send(request_packet({.opcode = 0x00, .key = "k"}) + noop(1));
  expect_closed(stranger);
  EXPECT_EQ(stranger.data,
            response_packet({.opcode = 0x00, .value = "Auth failure.", .status = 0x20}));
}

TEST_P(BinarySessionTest, WithoutCredentialsThereIsNoSasl) {
  Peer& client = connect();
  client.send(request_packet({.opcode = 0x20}));
  expect_client(client,
                response_packet({.opcode = 0x20, .value = "Unknown command", .status = 0x81}));
}

TEST_P(BinarySessionTest, AListenerMaySpeakOneProtocolOnly) {
  options_.serves_binary = false;
  configure();
  Peer& binary = connect();
  binary.send(noop(1));
  expect_closed(binary);
  EXPECT_EQ(
      binary.data,
      response_packet({.opcode = 0x0a, .value = "Unknown command", .opaque = 1, .status = 0x81}));
  EXPECT_EQ(commands_.binary_clients, 1);
  options_.serves_binary = true;
  options_.serves_text = false;
  configure();
  Peer& text = connect();
  text.send("mn\r\n");
  expect_closed(text);
  EXPECT_EQ(text.data, "");
}

INSTANTIATE_TEST_SUITE_P(Engines, BinarySessionTest, testing::ValuesIn(test::kEngines),
                         test::name_of);

}  // namespace
}  // namespace kvferry::front
