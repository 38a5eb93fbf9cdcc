// A loop of either engine for tests over real sockets, and ways to wait: by a condition with a
// deadline, or for a while, to see that something does not happen.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/memory_budget.h"
#include "net/address.h"
#include "net/loop.h"
#include "net/timer.h"

namespace kvferry::test {

struct Engine {
  const char* name;
  net::Io io;
};
inline void PrintTo(const Engine& engine, std::ostream* out) {
  *out << engine.name;
}
inline const Engine kEpoll{"epoll", net::Io::Epoll};
inline const Engine kEngines[] = {kEpoll, {"uring", net::Io::Uring}};
inline std::string name_of(const testing::TestParamInfo<Engine>& info) {
  return info.param.name;
}

/// Bytes that repeat with a period that no buffer size divides, so that lost or swapped parts show.
inline std::string pattern(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>('a' + (i * 7 + i / 251) % 23);
  }
  return bytes;
}

/// Longer than any step of a test takes, with sanitizers on a busy machine too.
inline constexpr base::Seconds kStepTimeMax{60};

class LoopRig {
 public:
  explicit LoopRig(const Engine& engine) {
    net::LoopOptions options;
    options.io = engine.io;
    options.receive_buffers = 16;
    auto opened = net::Loop::open(options, budget);
    KVF_CHECK(opened.has_value());
    loop = std::move(opened).value();
  }

  static net::Address loopback(std::uint16_t port = 0) {
    return net::Address::from_ip("127.0.0.1", port).value();
  }

  /// Runs turns until `done`; false, and a failure, when that takes longer than a test should.
  template <typename Done>
  bool run_until(Done done) {
    const auto deadline = std::chrono::steady_clock::now() + kStepTimeMax;
    net::Timer watchdog(net::Timer::Callback::to<&LoopRig::wake>(this));
    loop->timers().arm(watchdog, deadline);
    while (!done()) {
      if (std::chrono::steady_clock::now() >= deadline) {
        ADD_FAILURE() << "the deadline of the test passed";
        return false;
      }
      loop->run_turn(true);
    }
    return true;
  }

  void run_for(base::Millis time) {
    const auto end = std::chrono::steady_clock::now() + time;
    net::Timer timer(net::Timer::Callback::to<&LoopRig::wake>(this));
    loop->timers().arm(timer, end);
    while (std::chrono::steady_clock::now() < end) {
      loop->run_turn(true);
    }
  }

  /// Some turns that do not wait: what is ready is done.
  void run_turns(int count) const {
    for (int i = 0; i < count; ++i) {
      loop->run_turn(false);
    }
  }

  base::MemoryBudget budget{0};
  std::unique_ptr<net::Loop> loop;

 private:
  void wake() {}
};

}  // namespace kvferry::test
