// What the tests of TLS on streams share: a loop of each engine, an authority, a monitor that
// records, and a client that is driven by hand.
#pragma once

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <openssl/ssl.h>

#include "net/stream.h"
#include "net/tls_context.h"
#include "tests/support/certificates.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/net/loop_fixture.h"

namespace kvferry::net {

using test::CertificateFiles;

/// Bytes that repeat with a period that no buffer size divides.
inline std::string pattern(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>('a' + (i * 7 + i / 251) % 23);
  }
  return bytes;
}

/// Notes what it hears, failures as "server verify: reason".
class MonitorRecorder final : public TlsMonitor {
 public:
  int handshakes = 0;
  int resumed = 0;
  std::vector<std::string> failures;

  void on_tls_handshake(TlsRole /*role*/, bool is_resumed) override {
    ++handshakes;
    resumed += is_resumed ? 1 : 0;
  }
  void on_tls_failure(TlsRole role, const std::string& label, const TlsFailure& failure) override {
    EXPECT_EQ(label, "test");
    EXPECT_TRUE(failure.peer.starts_with("127.0.0.1:") ||
                (role == TlsRole::Client && failure.peer == "server.test"))
        << failure.peer;
    failures.push_back((role == TlsRole::Server ? "server " : "client ") +
                       std::string(tls_failure_name(failure.kind)) + ": " + failure.reason);
  }
  bool has(const std::string& part) const {
    for (const std::string& failure : failures) {
      if (failure.find(part) != std::string::npos) {
        return true;
      }
    }
    return false;
  }
};

/// A TLS client without a socket: bytes go in and come out by hand.
class HandClient {
 public:
  HandClient() {
    SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_CLIENT);
    renew(nullptr);
  }
  HandClient(const HandClient&) = delete;
  HandClient& operator=(const HandClient&) = delete;
  ~HandClient() {
    SSL_free(session_);
    SSL_CTX_free(context_);
  }
  /// Begins anew, with the session of before when there is one.
  void renew(SSL_SESSION* resumed) {
    if (session_ != nullptr) {
      SSL_set_shutdown(session_, SSL_SENT_SHUTDOWN);  // Or its session would be no good any more.
    }
    SSL_free(session_);
    session_ = SSL_new(context_);
    SSL_set_bio(session_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(session_);
    if (resumed != nullptr) {
      SSL_set_session(session_, resumed);
    }
  }
  SSL* get() { return session_; }
  void put(std::string_view bytes) {
    BIO_write(SSL_get_rbio(session_), bytes.data(), static_cast<int>(bytes.size()));
  }
  /// What it wants to send.
  std::string take() {
    std::string out(BIO_ctrl_pending(SSL_get_wbio(session_)), '\0');
    BIO_read(SSL_get_wbio(session_), out.data(), static_cast<int>(out.size()));
    return out;
  }
  bool shake() { return SSL_do_handshake(session_) == 1; }
  void write(std::string_view bytes) {
    ASSERT_EQ(SSL_write(session_, bytes.data(), static_cast<int>(bytes.size())),
              static_cast<int>(bytes.size()));
  }
  std::string read() {
    std::string all;
    std::array<char, 4096> part{};
    for (int size = 0; (size = SSL_read(session_, part.data(), part.size())) > 0;) {
      all.append(part.data(), static_cast<std::size_t>(size));
    }
    return all;
  }

 private:
  SSL_CTX* context_ = SSL_CTX_new(TLS_client_method());
  SSL* session_ = nullptr;
};

class TlsStreamTest : public LoopTest {
 protected:
  void SetUp() override {
    listener_ = listen(loopback(), acceptor_);
    server_options_.cert = files_.cert;
    server_options_.key = files_.key;
    client_options_.role = TlsRole::Client;
    client_options_.ca = authority_.path();
    client_options_.verify = TlsVerify::Full;
    acceptor_.instead = [this](StreamPtr& stream) {
      EXPECT_TRUE(stream->start_tls(server_context()));
      return false;
    };
  }
  TlsContextPtr context(const TlsOptions& options) {
    auto opened = TlsContext::open(options, "test", &monitor_);
    if (auto* problem = std::get_if<TlsProblem>(&opened)) {
      ADD_FAILURE() << problem->text;
      std::abort();
    }
    return std::get<TlsContextPtr>(opened);
  }
  TlsContextPtr server_context() {
    if (server_context_ == nullptr) {
      server_context_ = context(server_options_);
    }
    return server_context_;
  }
  void connect_tls(Recorder& recorder, const std::string& host = "server.test") {
    connect(recorder, listener_->address());
    ASSERT_TRUE(recorder.stream->start_tls(context(client_options_), host));
    EXPECT_TRUE(recorder.stream->is_tls());
  }
  void open_pair() {
    connect_tls(client_);
    ASSERT_TRUE(run_until([&] { return client_.is_connected && monitor_.handshakes == 2; }));
  }
  /// A connection whose client fails; what the server's side then hears is waited for as well.
  void expect_client_failure(const std::string& part, const std::string& host = "server.test") {
    connect_tls(client_, host);
    ASSERT_TRUE(run_until([&] {
      return client_.closes == 1 && acceptor_.accepted.size() == 1 && server().closes == 1;
    }));
    EXPECT_FALSE(client_.is_connected);
    EXPECT_EQ(client_.error, EPROTO);
    EXPECT_TRUE(monitor_.has(part)) << testing::PrintToString(monitor_.failures);
  }
  Recorder& server() { return *acceptor_.accepted.back(); }

  test::TempFolder folder_;
  test::TestAuthority authority_{folder_.path()};
  CertificateFiles files_ = authority_.issue("server");
  MonitorRecorder monitor_;
  TlsOptions server_options_;
  TlsOptions client_options_;
  TlsContextPtr server_context_;
  Acceptor acceptor_;
  std::unique_ptr<Listener> listener_;
  Recorder client_;
};

}  // namespace kvferry::net
