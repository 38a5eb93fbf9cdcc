// What the tests of net share: a loop of each engine, recording handlers, waiting with a deadline.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/memory_budget.h"
#include "net/loop.h"

namespace kvferry::net {

struct Engine {
  const char* name;
  Io io;
  std::uint32_t uring_features_off = 0;
};
inline void PrintTo(const Engine& engine, std::ostream* out) {
  *out << engine.name;
}

inline const Engine kEngines[] = {
    {"epoll", Io::Epoll},
    {"uring", Io::Uring},
    {"uring_loud", Io::Uring, kUringQuietSend},
    {"uring_old", Io::Uring, kUringAllOptional},
};
inline std::string engine_name_of(const testing::TestParamInfo<Engine>& info) {
  return info.param.name;
}

/// Records all that a stream reports, and owns the stream.
class Recorder final : public StreamHandler {
 public:
  StreamPtr stream;
  std::string data;
  bool is_connected = false;
  int ends = 0;
  int closes = 0;
  int error = 0;
  int drained = 0;
  bool echoes = false;
  bool keeps_data = true;
  std::size_t bytes = 0;
  std::function<void(std::string_view)> then_data;
  std::function<void()> then_connected;
  std::function<void()> then_end;
  std::function<void()> then_closed;
  std::function<void()> then_drained;

  void on_connected() override {
    is_connected = true;
    call(then_connected);
  }
  void on_data(std::string_view got) override {
    EXPECT_EQ(closes, 0);
    EXPECT_FALSE(stream == nullptr);
    EXPECT_FALSE(stream != nullptr && stream->is_reading_paused());
    EXPECT_FALSE(got.empty());
    bytes += got.size();
    if (keeps_data) {
      data += got;
    }
    if (echoes) {
      stream->write(got);
    }
    if (then_data) {
      then_data(got);
    }
  }
  void on_end() override {
    ++ends;
    call(then_end);
  }
  void on_closed(int why) override {
    ++closes;
    error = why;
    call(then_closed);
  }
  void on_drained() override {
    ++drained;
    call(then_drained);
  }

 private:
  static void call(const std::function<void()>& hook) {
    if (hook) {
      hook();
    }
  }
};

/// Keeps what it accepts as recorders.
class Acceptor final : public AcceptHandler {
 public:
  std::vector<std::unique_ptr<Recorder>> accepted;
  std::vector<Address> peers;
  bool echoes = false;
  std::function<bool(StreamPtr&)> instead;  // True: it took or dropped the stream.

  void on_accepted(StreamPtr stream, const Address& peer) override {
    peers.push_back(peer);
    if (instead && instead(stream)) {
      return;
    }
    accepted.push_back(std::make_unique<Recorder>());
    Recorder& recorder = *accepted.back();
    recorder.echoes = echoes;
    recorder.stream = std::move(stream);
    recorder.stream->set_handler(recorder);
  }
};

class LoopTest : public testing::TestWithParam<Engine> {
 protected:
  LoopTest() {
    LoopOptions options;
    options.io = GetParam().io;
    options.uring_features_off = GetParam().uring_features_off;
    options.receive_buffers = 16;
    auto opened = Loop::open(options, budget_);
    KVF_CHECK(opened.has_value());
    loop_ = std::move(opened).value();
  }

  /// Runs turns until `done`; false when that takes longer than a test should.
  template <typename Done>
  bool run_until(Done done) {
    is_late_ = false;
    Timer watchdog(Timer::Callback::to<&LoopTest::on_late>(this));
    loop_->timers().arm(watchdog, std::chrono::steady_clock::now() + base::Seconds(20));
    while (!done() && !is_late_) {
      loop_->run_turn(true);
    }
    return done();
  }
  /// Runs turns for a while, to see that something does not happen.
  void run_for(base::Millis time) { turns_in(time); }
  /// The same, and tells how many turns it took: a loop that spins takes thousands.
  int turns_in(base::Millis time) {
    bool is_over = false;
    struct Flag {
      bool* over;
      void set() const { *over = true; }
    } flag{&is_over};
    Timer timer(Timer::Callback::to<&Flag::set>(&flag));
    loop_->timers().arm(timer, std::chrono::steady_clock::now() + time);
    int turns = 0;
    while (!is_over) {
      loop_->run_turn(true);
      ++turns;
    }
    return turns;
  }

  std::unique_ptr<Listener> listen(const Address& address, AcceptHandler& handler,
                                   ListenOptions options = {}) {
    auto made = loop_->listen(address, options, handler);
    if (!made) {
      ADD_FAILURE() << made.error().text();
      return nullptr;
    }
    return std::move(made).value();
  }
  void connect(Recorder& recorder, const Address& address) {
    auto made = loop_->connect(address, {}, recorder);
    ASSERT_TRUE(made.has_value()) << made.error().text();
    recorder.stream = std::move(made).value();
    EXPECT_FALSE(recorder.is_connected);
    EXPECT_EQ(recorder.closes, 0);
  }
  static Address loopback(std::uint16_t port = 0) {
    return Address::from_ip("127.0.0.1", port).value();
  }

  base::MemoryBudget budget_{0};
  std::unique_ptr<Loop> loop_;

 private:
  void on_late() {
    is_late_ = true;
    ADD_FAILURE() << "the deadline of the test passed";
  }
  bool is_late_ = false;
};

/// A connected pair on the loop: a client made by connect() and what the listener accepted.
class PairTest : public LoopTest {
 protected:
  void SetUp() override {
    listener_ = listen(loopback(), acceptor_);
    open_pair();
  }
  void open_pair() {
    const std::size_t before = acceptor_.accepted.size();
    client_.is_connected = false;
    client_.ends = client_.closes = 0;
    connect(client_, listener_->address());
    ASSERT_TRUE(
        run_until([&] { return client_.is_connected && acceptor_.accepted.size() > before; }));
  }
  Recorder& server() { return *acceptor_.accepted.back(); }

  Acceptor acceptor_;
  std::unique_ptr<Listener> listener_;
  Recorder client_;
};

}  // namespace kvferry::net
