// TLS with peers that we drive by hand, and with those that do not speak it, or not well.
#include <algorithm>
#include <cerrno>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

#include "tests/unit/net/tls_fixture.h"

namespace kvferry::net {
namespace {

class TlsPeerTest : public TlsStreamTest {
 protected:
  void open_hand() {
    acceptor_.echoes = true;
    connect(client_, listener_->address());
    ASSERT_TRUE(run_until([&] { return client_.is_connected; }));
  }
  /// Sends `bytes` in the pieces that `send` makes of them, then runs until the answer is there.
  void converse(const std::function<void(std::string)>& send) {
    while (!hand_.shake()) {
      send(hand_.take());
      const std::size_t before = client_.data.size();
      ASSERT_TRUE(run_until([&] { return client_.data.size() > before || client_.closes != 0; }));
      hand_.put(client_.data.substr(read_));
      read_ = client_.data.size();
    }
    hand_.write("hello");
    send(hand_.take());
    std::string echo;
    ASSERT_TRUE(run_until([&] {
      hand_.put(client_.data.substr(read_));
      read_ = client_.data.size();
      echo += hand_.read();
      return echo.size() >= 5;
    }));
    EXPECT_EQ(echo, "hello");
  }

  HandClient hand_;
  std::size_t read_ = 0;
};

TEST_P(TlsPeerTest, TakesAConversationByteByByte) {
  open_hand();
  converse([&](const std::string& bytes) {
    for (const char byte : bytes) {
      client_.stream->write({&byte, 1});
      loop_->run_turn(false);
      loop_->run_turn(false);
    }
  });
  EXPECT_EQ(monitor_.handshakes, 1);
}

TEST_P(TlsPeerTest, TakesAConversationCutAtEveryPlace) {
  // Each engine takes its share of the places: one connection for each is much work.
  const auto engine = static_cast<std::size_t>(
      std::find_if(std::begin(kEngines), std::end(kEngines),
                   [](const Engine& each) { return each.name == GetParam().name; }) -
      std::begin(kEngines));
  bool was_cut = true;
  for (std::size_t place = 1 + engine; was_cut; place += std::size(kEngines)) {
    client_.stream.reset();
    client_.data.clear();
    read_ = 0;
    hand_.renew(nullptr);
    client_.is_connected = false;
    open_hand();
    was_cut = false;
    std::size_t sent = 0;
    converse([&](const std::string& bytes) {
      std::string_view rest = bytes;
      if (place > sent && place < sent + bytes.size()) {
        client_.stream->write(rest.substr(0, place - sent));
        loop_->run_turn(false);
        loop_->run_turn(false);
        rest.remove_prefix(place - sent);
        was_cut = true;
      }
      client_.stream->write(rest);
      sent += bytes.size();
      was_cut = was_cut || place == sent;
    });
    ASSERT_FALSE(HasFatalFailure()) << place;
  }
}

TEST_P(TlsPeerTest, AnswersAPeerThatHasHalfClosed) {
  open_hand();
  converse([&](const std::string& bytes) { client_.stream->write(bytes); });
  server().then_end = [&] {
    server().stream->write("answer");
    server().stream->close_after_output();
  };
  SSL_shutdown(hand_.get());
  client_.stream->write(hand_.take());
  ASSERT_TRUE(run_until([&] { return client_.ends == 1; }));
  hand_.put(client_.data.substr(read_));
  EXPECT_EQ(hand_.read(), "answer");
  EXPECT_EQ(SSL_get_shutdown(hand_.get()) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
  EXPECT_EQ(server().error, 0);
}

TEST_P(TlsPeerTest, AnEndWithoutANoticeIsAnEnd) {
  open_hand();
  converse([&](const std::string& bytes) { client_.stream->write(bytes); });
  hand_.write("half of this record is lost");
  const std::string record = hand_.take();
  client_.stream->write(std::string_view(record).substr(0, record.size() / 2));
  client_.stream->close_after_output();
  ASSERT_TRUE(run_until([&] { return server().ends == 1; }));
  EXPECT_EQ(server().data, "hello");
  EXPECT_TRUE(monitor_.failures.empty());
}

TEST_P(TlsPeerTest, ADamagedRecordEndsTheConnection) {
  open_hand();
  converse([&](const std::string& bytes) { client_.stream->write(bytes); });
  hand_.write("damaged");
  std::string record = hand_.take();
  record.back() = static_cast<char>(record.back() ^ 1);
  client_.stream->write(record);
  ASSERT_TRUE(run_until([&] { return server().closes == 1; }));
  EXPECT_EQ(server().error, EPROTO);
  EXPECT_EQ(server().data, "hello");
  EXPECT_TRUE(monitor_.has("server protocol: ")) << testing::PrintToString(monitor_.failures);
}

TEST_P(TlsPeerTest, FollowsTheKeysThatThePeerRenews) {
  open_hand();
  converse([&](const std::string& bytes) { client_.stream->write(bytes); });
  ASSERT_EQ(SSL_key_update(hand_.get(), SSL_KEY_UPDATE_REQUESTED), 1);
  hand_.write(" again");
  client_.stream->write(hand_.take());
  std::string echo;
  ASSERT_TRUE(run_until([&] {
    hand_.put(client_.data.substr(read_));
    read_ = client_.data.size();
    echo += hand_.read();
    return echo.size() >= 6;
  }));
  EXPECT_EQ(echo, " again");
}

TEST_P(TlsPeerTest, RefusesToNegotiateAnew) {
  open_hand();
  SSL_set_max_proto_version(hand_.get(), TLS1_2_VERSION);
  converse([&](const std::string& bytes) { client_.stream->write(bytes); });
  SSL_renegotiate(hand_.get());
  SSL_do_handshake(hand_.get());
  client_.stream->write(hand_.take());
  // The answer is a warning, and nothing else happens.
  ASSERT_TRUE(run_until([&] { return client_.data.size() > read_; }));
  EXPECT_EQ(monitor_.handshakes, 1);
  EXPECT_EQ(server().closes + server().ends, 0);
  EXPECT_EQ(server().data, "hello");
}

TEST_P(TlsPeerTest, ResumesSessions) {
  for (const bool has_cache : {true, false}) {
    server_options_.has_session_cache = has_cache;
    server_context_.reset();
    monitor_.handshakes = monitor_.resumed = 0;
    SSL_SESSION* session = nullptr;
    for (int round = 0; round < 2; ++round) {
      client_.stream.reset();
      client_.data.clear();
      client_.is_connected = false;
      read_ = 0;
      hand_.renew(session);
      open_hand();
      converse([&](const std::string& bytes) { client_.stream->write(bytes); });
      SSL_SESSION_free(session);
      session = SSL_get1_session(hand_.get());
    }
    SSL_SESSION_free(session);
    EXPECT_EQ(monitor_.handshakes, 2);
    EXPECT_EQ(monitor_.resumed, has_cache ? 1 : 0);
  }
}

TEST_P(TlsPeerTest, EveryPrefixOfAHandshakeThatEndsIsAFailure) {
  hand_.shake();
  const std::string hello = hand_.take();
  for (std::size_t size = 1; size < hello.size(); size += 7) {
    Recorder cut;
    connect(cut, listener_->address());
    cut.stream->write(std::string_view(hello).substr(0, size));
    cut.stream->close_after_output();
    const std::size_t before = acceptor_.accepted.size();
    ASSERT_TRUE(
        run_until([&] { return acceptor_.accepted.size() > before && server().closes == 1; }));
    EXPECT_EQ(server().error, ECONNRESET) << size;
    EXPECT_EQ(server().ends, 0);
  }
  EXPECT_TRUE(monitor_.has("server closed: "));
  EXPECT_EQ(monitor_.handshakes, 0);
}

TEST_P(TlsPeerTest, DamagedHandshakesEnd) {
  hand_.shake();
  const std::string hello = hand_.take();
  for (std::size_t place = 0; place < hello.size(); place += 9) {
    std::string bytes = hello;
    bytes[place] = static_cast<char>(bytes[place] ^ 0x55);
    Recorder damaged;
    connect(damaged, listener_->address());
    damaged.stream->write(bytes);
    damaged.stream->write(std::string(64, '\0'));  // And no TLS behind it either.
    damaged.stream->close_after_output();
    const std::size_t before = acceptor_.accepted.size();
    ASSERT_TRUE(
        run_until([&] { return acceptor_.accepted.size() > before && server().closes == 1; }));
    EXPECT_NE(server().error, 0) << place;
  }
}

// ---- peers that do not speak TLS

TEST_P(TlsPeerTest, RefusesWhatIsNotTls) {
  const std::string garbage[] = {"get key\r\n", "GET / HTTP/1.0\r\n\r\n",
                                 std::string(5000, '\x80')};
  for (const std::string& bytes : garbage) {
    Recorder plain;
    connect(plain, listener_->address());
    plain.stream->write(bytes);
    const std::size_t before = acceptor_.accepted.size();
    ASSERT_TRUE(run_until([&] {
      return acceptor_.accepted.size() > before && server().closes == 1 &&
             plain.ends + plain.closes > 0;
    }));
    EXPECT_EQ(server().error, EPROTO);
    EXPECT_EQ(server().data, "");
  }
  EXPECT_TRUE(monitor_.has("server not_tls: ")) << testing::PrintToString(monitor_.failures);
}

TEST_P(TlsPeerTest, AVisitorWhoSaysNothingIsNoFailure) {
  Recorder plain;
  connect(plain, listener_->address());
  ASSERT_TRUE(run_until([&] { return acceptor_.accepted.size() == 1; }));
  plain.stream.reset();
  ASSERT_TRUE(run_until([&] { return server().closes == 1; }));
  EXPECT_TRUE(monitor_.failures.empty());
}

TEST_P(TlsPeerTest, ASilentClientIsClosed) {
  server_options_.handshake_timeout = base::Millis(30);
  Recorder plain;
  connect(plain, listener_->address());
  ASSERT_TRUE(run_until([&] { return acceptor_.accepted.size() == 1 && server().closes == 1; }));
  EXPECT_EQ(server().error, ETIMEDOUT);
  EXPECT_TRUE(monitor_.has("server timeout: no handshake within 30 ms"));
}

TEST_P(TlsPeerTest, AServerThatIsNotTlsFailsTheConnect) {
  acceptor_.instead = [](StreamPtr& stream) {
    stream->write("ERROR\r\n this is memcached");
    return false;
  };
  connect_tls(client_);
  ASSERT_TRUE(run_until([&] { return client_.closes == 1; }));
  EXPECT_FALSE(client_.is_connected);
  EXPECT_EQ(client_.error, EPROTO);
  EXPECT_TRUE(monitor_.has("client not_tls: ")) << testing::PrintToString(monitor_.failures);
}

TEST_P(TlsPeerTest, AServerThatClosesFailsTheConnect) {
  acceptor_.instead = [](StreamPtr& stream) {
    stream.reset();
    return true;
  };
  connect_tls(client_);
  ASSERT_TRUE(run_until([&] { return client_.closes == 1; }));
  EXPECT_FALSE(client_.is_connected);
  EXPECT_EQ(client_.error, ECONNRESET);
}

TEST_P(TlsPeerTest, ARefusedConnectIsToldAsOne) {
  const Address address = listener_->address();
  listener_.reset();
  connect(client_, address);
  ASSERT_TRUE(client_.stream->start_tls(context(client_options_), "server.test"));
  ASSERT_TRUE(run_until([&] { return client_.closes == 1; }));
  EXPECT_EQ(client_.error, ECONNREFUSED);
  EXPECT_TRUE(monitor_.failures.empty());
}

TEST_P(TlsPeerTest, NeedsAVersionInCommon) {
  server_options_.min_version = TlsVersion::V13;
  Recorder plain;
  connect(plain, listener_->address());
  HandClient old;
  SSL_set_max_proto_version(old.get(), TLS1_2_VERSION);
  old.shake();
  plain.stream->write(old.take());
  ASSERT_TRUE(run_until([&] { return acceptor_.accepted.size() == 1 && server().closes == 1; }));
  EXPECT_TRUE(monitor_.has("server version: unsupported protocol"))
      << testing::PrintToString(monitor_.failures);
}

INSTANTIATE_TEST_SUITE_P(Engines, TlsPeerTest, testing::ValuesIn(kEngines), engine_name_of);

}  // namespace
}  // namespace kvferry::net
