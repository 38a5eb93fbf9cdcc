// TLS on streams whose two ends are ours: bytes, pauses, ends, certificates.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "net/tls_filter.h"
#include "tests/unit/net/tls_fixture.h"

namespace kvferry::net {
namespace {

TEST_P(TlsStreamTest, EchoesWhatIsWritten) {
  acceptor_.echoes = true;
  open_pair();
  client_.stream->write("hello ");
  client_.stream->write("there");
  ASSERT_TRUE(run_until([&] { return client_.data.size() == 11; }));
  EXPECT_EQ(client_.data, "hello there");
  EXPECT_EQ(client_.stream->output_bytes(), 0U);
  EXPECT_TRUE(monitor_.failures.empty());
}

TEST_P(TlsStreamTest, SendsWhatWasWrittenBeforeTheHandshake) {
  connect_tls(client_);
  client_.stream->write("early");
  ASSERT_TRUE(
      run_until([&] { return acceptor_.accepted.size() == 1 && server().data == "early"; }));
  EXPECT_TRUE(client_.is_connected);
}

TEST_P(TlsStreamTest, MovesMegabytesBothWaysInOrder) {
  open_pair();
  const std::string bytes = pattern(1'000'017);
  client_.stream->write(bytes);
  server().stream->write(bytes);
  ASSERT_TRUE(run_until(
      [&] { return client_.data.size() >= bytes.size() && server().data.size() >= bytes.size(); }));
  EXPECT_TRUE(client_.data == bytes);
  EXPECT_TRUE(server().data == bytes);
}

TEST_P(TlsStreamTest, EncryptsNoMoreThanIsSent) {
  open_pair();
  server().stream->pause_reading();
  client_.stream->write(pattern(8'000'000));
  run_for(base::Millis(50));
  // The kernel has taken some; the rest lies as it was written, not twice.
  const std::size_t left = client_.stream->output_bytes();
  EXPECT_GT(left, 1'000'000U);
  EXPECT_LT(left, 8'000'000U + kTlsFlushBytes / 8);
  EXPECT_LT(turns_in(base::Millis(100)), 50);
  server().stream->resume_reading();
  ASSERT_TRUE(run_until([&] { return server().data.size() == 8'000'000; }));
  EXPECT_TRUE(server().data == pattern(8'000'000));
}

TEST_P(TlsStreamTest, ReportsThatOutputHasDrained) {
  open_pair();
  client_.stream->set_drain_notice(100'000);
  server().stream->pause_reading();
  client_.stream->write(pattern(8'000'000));
  run_for(base::Millis(20));
  EXPECT_EQ(client_.drained, 0);
  server().stream->resume_reading();
  ASSERT_TRUE(run_until([&] { return server().data.size() == 8'000'000; }));
  EXPECT_GE(client_.drained, 1);
}

TEST_P(TlsStreamTest, GivesAPausedHandlerNothing) {
  open_pair();
  // Many records in one receive: the recorder fails the test if it gets one while it is paused.
  server().then_data = [&](std::string_view) { server().stream->pause_reading(); };
  const std::string bytes = pattern(200'000);
  for (std::size_t at = 0; at < bytes.size(); at += 10'000) {
    client_.stream->write(std::string_view(bytes).substr(at, 10'000));
    loop_->run_turn(false);
  }
  client_.stream->close_after_output();
  std::size_t before = 0;
  while (server().data.size() < bytes.size()) {
    before = server().data.size();
    EXPECT_EQ(server().ends, 0);
    server().stream->resume_reading();
    ASSERT_TRUE(run_until([&] { return server().data.size() > before; }));
  }
  EXPECT_TRUE(server().data == bytes);
  run_for(base::Millis(20));
  EXPECT_EQ(server().ends, 0);
  server().stream->resume_reading();
  ASSERT_TRUE(run_until([&] { return server().ends == 1; }));
}

TEST_P(TlsStreamTest, ResumesWithinTheTurnOfThePause) {
  open_pair();
  server().then_data = [&](std::string_view) {
    server().stream->pause_reading();
    server().stream->resume_reading();
  };
  client_.stream->write(pattern(300'000));
  ASSERT_TRUE(run_until([&] { return server().data.size() == 300'000; }));
  EXPECT_TRUE(server().data == pattern(300'000));
}

TEST_P(TlsStreamTest, AnIdleConnectionCostsNoTurns) {
  open_pair();
  EXPECT_LT(turns_in(base::Millis(100)), 50);
}

// ---- ends

TEST_P(TlsStreamTest, ClosesAfterTheLastByte) {
  open_pair();
  server().stream->write(pattern(1'000'000));
  server().stream->close_after_output();
  ASSERT_TRUE(run_until([&] { return client_.ends == 1 && server().closes == 1; }));
  EXPECT_TRUE(client_.data == pattern(1'000'000));
  EXPECT_EQ(server().error, 0);
}

TEST_P(TlsStreamTest, TellsOfThePeersEndOnce) {
  open_pair();
  client_.stream->write("question");
  client_.stream->close_after_output();  // A notice first, and then the end of the socket.
  ASSERT_TRUE(run_until([&] { return client_.closes == 1 && server().ends == 1; }));
  run_for(base::Millis(20));
  EXPECT_EQ(server().data, "question");
  EXPECT_EQ(server().ends, 1);
}

TEST_P(TlsStreamTest, SendsWhatItsOwnerLeavesBehind) {
  open_pair();
  server().stream->write(pattern(300'000));
  Stream::leave(std::move(server().stream));
  ASSERT_TRUE(run_until([&] { return client_.ends == 1; }));
  EXPECT_TRUE(client_.data == pattern(300'000));
  client_.stream.reset();
  ASSERT_TRUE(run_until([&] { return loop_->stream_count() == 0; }));
}

TEST_P(TlsStreamTest, WhatIsLeftInAHandshakeGoesSoon) {
  Recorder plain;
  connect(plain, listener_->address());
  ASSERT_TRUE(run_until([&] { return acceptor_.accepted.size() == 1; }));
  server().stream->write("no handshake will come");
  Stream::leave(std::move(server().stream));
  ASSERT_TRUE(run_until([&] { return plain.ends + plain.closes > 0; }));
}

TEST_P(TlsStreamTest, ADroppedStreamEndsForItsPeer) {
  open_pair();
  client_.stream.reset();
  ASSERT_TRUE(run_until([&] { return server().ends == 1; }));
  EXPECT_TRUE(monitor_.failures.empty());
}

TEST_P(TlsStreamTest, MayBeDroppedInEveryCallback) {
  acceptor_.echoes = true;
  for (int round = 0; round < 3; ++round) {
    auto client = std::make_unique<Recorder>();
    const std::size_t before = acceptor_.accepted.size();
    bool is_dropped = false;
    const auto drop = [&] {
      client->stream.reset();
      is_dropped = true;
    };
    connect_tls(*client);
    if (round == 0) {
      client->then_connected = drop;
    } else {
      client->stream->write(pattern(100'000));
    }
    if (round == 1) {
      client->then_data = [&](std::string_view) { drop(); };
    }
    if (round == 2) {
      client->then_end = drop;
      ASSERT_TRUE(run_until([&] { return client->data.size() == 100'000; }));
      server().stream.reset();
    }
    ASSERT_TRUE(run_until([&] { return is_dropped; }));
    if (round != 2) {
      ASSERT_TRUE(run_until([&] {
        return acceptor_.accepted.size() > before && server().ends + server().closes > 0;
      }));
      server().stream.reset();
    }
  }
}

TEST_P(TlsStreamTest, ALineForARefusedClientWaitsForItsHandshake) {
  acceptor_.instead = [this](StreamPtr& stream) {
    EXPECT_TRUE(stream->start_tls(server_context()));
    acceptor_.accepted.push_back(std::make_unique<Recorder>());
    server().stream = std::move(stream);
    server().stream->set_handler(server());
    server().stream->write("ERROR no\r\n");
    server().stream->close_after_output();
    return true;
  };
  connect_tls(client_);
  ASSERT_TRUE(run_until([&] { return client_.ends == 1 && server().closes == 1; }));
  EXPECT_EQ(client_.data, "ERROR no\r\n");
  EXPECT_EQ(server().error, 0);
}

TEST_P(TlsStreamTest, ClosesAtOnceInAHandshakeWithNothingToSay) {
  Recorder plain;
  connect(plain, listener_->address());
  ASSERT_TRUE(run_until([&] { return acceptor_.accepted.size() == 1; }));
  server().stream->close_after_output();
  ASSERT_TRUE(run_until([&] { return server().closes == 1 && plain.ends == 1; }));
  EXPECT_EQ(plain.data, "");
}

// ---- certificates

TEST_P(TlsStreamTest, VerifiesTheAddressOfAServer) {
  connect_tls(client_, "127.0.0.1");
  ASSERT_TRUE(run_until([&] { return client_.is_connected; }));
}

TEST_P(TlsStreamTest, VerifiesTheNameThatIsConfigured) {
  client_options_.sni = "server.test";
  connect_tls(client_, "10.0.0.1");
  ASSERT_TRUE(run_until([&] { return client_.is_connected; }));
}

TEST_P(TlsStreamTest, RefusesTheWrongHost) {
  expect_client_failure("client verify: certificate verify failed: hostname mismatch",
                        "other.test");
  EXPECT_TRUE(monitor_.has("server alert: ")) << testing::PrintToString(monitor_.failures);
}

TEST_P(TlsStreamTest, RefusesTheWrongAddress) {
  expect_client_failure("client verify: certificate verify failed: IP address mismatch",
                        "10.0.0.1");
}

TEST_P(TlsStreamTest, RefusesAnExpiredCertificate) {
  files_ = authority_.issue("expired", {.valid_from_s = -7200, .valid_to_s = -3600});
  server_options_.cert = files_.cert;
  server_options_.key = files_.key;
  expect_client_failure("client verify: certificate verify failed: certificate has expired");
}

TEST_P(TlsStreamTest, RefusesAnUnknownAuthority) {
  const test::TestAuthority other(folder_.path(), "other authority");
  client_options_.ca = other.path();
  expect_client_failure("client verify: certificate verify failed: unable to get local issuer");
}

TEST_P(TlsStreamTest, RefusesASelfSignedCertificate) {
  // The authority's own certificate, with a stranger's eyes.
  client_options_.ca.clear();
  expect_client_failure("client verify: certificate verify failed");
}

TEST_P(TlsStreamTest, NeedNotLookAtTheName) {
  client_options_.verify = TlsVerify::Require;
  connect_tls(client_, "other.test");
  ASSERT_TRUE(run_until([&] { return client_.is_connected; }));
}

TEST_P(TlsStreamTest, NeedNotLookAtTheCertificate) {
  client_options_.verify = TlsVerify::None;
  client_options_.ca.clear();
  connect_tls(client_, "other.test");
  ASSERT_TRUE(run_until([&] { return client_.is_connected; }));
}

TEST_P(TlsStreamTest, ANameThatMustBeVerifiedMustBeThere) {
  connect(client_, listener_->address());
  EXPECT_FALSE(client_.stream->start_tls(context(client_options_), ""));
  client_.stream.reset();
}

TEST_P(TlsStreamTest, KnowsWhoTheClientIs) {
  server_options_.ca = authority_.path();
  server_options_.verify = TlsVerify::Require;
  const CertificateFiles files =
      authority_.issue("client", {.common_name = "client one", .alt_names = {}});
  client_options_.cert = files.cert;
  client_options_.key = files.key;
  open_pair();
  EXPECT_EQ(server().stream->tls_peer_name(), "client one");
  EXPECT_EQ(client_.stream->tls_peer_name(), "server.test");
  const int fd = server().stream->fd();
  EXPECT_EQ(loop_->tls_peer_name(fd), "client one");
  server().stream.reset();
  EXPECT_EQ(loop_->tls_peer_name(fd), "");
}

TEST_P(TlsStreamTest, RefusesAClientWithoutACertificate) {
  server_options_.ca = authority_.path();
  for (const TlsVerify verify : {TlsVerify::Require, TlsVerify::Once}) {
    server_options_.verify = verify;
    server_context_.reset();
    monitor_.failures.clear();
    Recorder client;
    connect_tls(client);
    const std::size_t before = acceptor_.accepted.size();
    ASSERT_TRUE(run_until([&] {
      return client.closes == 1 && acceptor_.accepted.size() > before && server().closes == 1;
    }));
    EXPECT_TRUE(monitor_.has("server verify: peer did not return a certificate"))
        << testing::PrintToString(monitor_.failures);
    EXPECT_TRUE(monitor_.has("client alert: ")) << testing::PrintToString(monitor_.failures);
  }
}

TEST_P(TlsStreamTest, MayAskForACertificateThatNeedNotBeThere) {
  server_options_.ca = authority_.path();
  server_options_.verify = TlsVerify::Request;
  open_pair();
  EXPECT_EQ(server().stream->tls_peer_name(), "");
}

TEST_P(TlsStreamTest, AStormOfHandshakesIsSpreadOverTurns) {
  acceptor_.echoes = true;
  constexpr int kClients = 60;
  std::vector<std::unique_ptr<Recorder>> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<Recorder>());
    connect_tls(*clients.back());
    clients.back()->stream->write("x");
  }
  int most = 0;
  int done = 0;
  while (done < kClients) {
    const int before = monitor_.handshakes;
    loop_->run_turn(true);
    most = std::max(most, monitor_.handshakes - before);
    done = 0;
    for (const auto& client : clients) {
      done += client->data == "x" ? 1 : 0;
      ASSERT_EQ(client->closes, 0) << testing::PrintToString(monitor_.failures);
    }
  }
  // A turn may also finish handshakes that another began, on both sides.
  EXPECT_LE(most, static_cast<int>(4 * kTlsHandshakesPerTurn));
}

INSTANTIATE_TEST_SUITE_P(Engines, TlsStreamTest, testing::ValuesIn(kEngines), engine_name_of);

}  // namespace
}  // namespace kvferry::net
