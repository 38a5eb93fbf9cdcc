// A backend on the loop of the test: it accepts, keeps what it is sent, and answers as it is told.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/loop.h"
#include "net/stream.h"

namespace kvferry::test {

/// One end of a connection that a test holds: a connection to the fake backend, or a client.
class Peer final : public net::StreamHandler {
 public:
  net::StreamPtr stream;
  std::string data;  // What came and was not taken.
  bool is_connected = false;
  bool has_ended = false;
  bool is_closed = false;
  std::function<void(Peer&)> on_input;

  bool is_gone() const { return has_ended || is_closed; }
  void send(std::string_view bytes) const { stream->write(bytes); }
  std::string take() { return std::exchange(data, {}); }
  void close() { stream.reset(); }
  /// Sends what is queued, then ends.
  void finish() const { stream->close_after_output(); }

  void on_connected() override { is_connected = true; }
  void on_data(std::string_view bytes) override {
    data += bytes;
    if (on_input) {
      on_input(*this);
    }
  }
  void on_end() override { has_ended = true; }
  void on_closed(int /*error*/) override {
    is_closed = true;
    stream.reset();
  }
};

class FakeBackend final : public net::AcceptHandler {
 public:
  explicit FakeBackend(net::Loop& loop) : loop_(loop) {
    start(net::Address::from_ip("127.0.0.1", 0).value());
  }

  const net::Address& address() const { return address_; }
  /// Stops listening and drops its connections.
  void stop() {
    listener_.reset();
    for (auto& peer : peers) {
      peer->close();
    }
  }
  /// Listens again where it did before.
  void restart() { start(address_); }

  Peer& peer(std::size_t index = 0) { return *peers.at(index); }
  /// All that was received on all connections and not taken.
  std::string received() const {
    std::string all;
    for (const auto& peer : peers) {
      all += peer->data;
    }
    return all;
  }

  void on_accepted(net::StreamPtr stream, const net::Address& /*from*/) override {
    if (refuses) {
      return;  // Drops the stream.
    }
    peers.push_back(std::make_unique<Peer>());
    Peer& peer = *peers.back();
    peer.stream = std::move(stream);
    peer.stream->set_handler(peer);
    peer.on_input = on_input;
  }

  std::vector<std::unique_ptr<Peer>> peers;  // Every connection ever made, in order.
  std::function<void(Peer&)> on_input;       // Given to each new connection.
  bool refuses = false;                      // Accepts and closes at once.

 private:
  void start(const net::Address& address) {
    auto made = loop_.listen(address, {}, *this);
    ASSERT_TRUE(made.has_value()) << made.error().text();
    listener_ = std::move(made).value();
    address_ = listener_->address();
  }

  net::Loop& loop_;
  net::Address address_;
  std::unique_ptr<net::Listener> listener_;
};

/// An address where nobody listens.
inline net::Address refusing_address(net::Loop& loop) {
  return FakeBackend(loop).address();
}

}  // namespace kvferry::test
