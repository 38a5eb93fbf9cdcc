#include "net/timer.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace kvferry::net {
namespace {

using base::Millis;
using base::SteadyTime;

/// A timer that counts, and may do more when it fires.
struct Probe {
  Probe() : timer(Timer::Callback::to<&Probe::on_fire>(this)) {}
  void on_fire() {
    ++fired;
    if (then) {
      then();
    }
  }
  int fired = 0;
  std::function<void()> then;
  Timer timer;
};

class TimerWheelTest : public testing::Test {
 protected:
  SteadyTime at(int millis) const { return start_ + Millis(millis); }
  SteadyTime start_{std::chrono::hours(5)};
  TimerWheel wheel_{start_};
};

TEST_F(TimerWheelTest, FiresNeverEarlyAndAtMostOneTickLate) {
  for (const int delay : {0, 1, 3, 4, 5, 100, 4095, 4096, 4097, 4100, 9000, 60'000}) {
    TimerWheel wheel{start_};
    Probe probe;
    wheel.arm(probe.timer, at(delay));
    for (int now = 0; probe.fired == 0; ++now) {
      ASSERT_LE(now, delay + TimerWheel::kTickLength.count());
      wheel.advance(at(now));
      if (now < delay) {
        ASSERT_EQ(probe.fired, 0) << delay << " at " << now;
      }
    }
    EXPECT_FALSE(probe.timer.is_armed());
    wheel.advance(at(delay + 20'000));
    EXPECT_EQ(probe.fired, 1);
  }
}

TEST_F(TimerWheelTest, CancelledAndDestroyedTimersDoNotFire) {
  Probe cancelled;
  wheel_.arm(cancelled.timer, at(10));
  cancelled.timer.cancel();
  cancelled.timer.cancel();
  {
    Probe destroyed;
    wheel_.arm(destroyed.timer, at(10));
  }
  wheel_.advance(at(1000));
  EXPECT_EQ(cancelled.fired, 0);
}

TEST_F(TimerWheelTest, ArmingAgainMovesATimer) {
  Probe probe;
  wheel_.arm(probe.timer, at(10));
  wheel_.arm(probe.timer, at(5000));
  wheel_.advance(at(4999));
  EXPECT_EQ(probe.fired, 0);
  wheel_.arm(probe.timer, at(5010));
  wheel_.arm(probe.timer, at(5002));
  wheel_.advance(at(5008));
  EXPECT_EQ(probe.fired, 1);
}

TEST_F(TimerWheelTest, SleepsUntilTheNextTimer) {
  EXPECT_LT(wheel_.sleep_max(at(0)), Millis(0));
  Probe probe;
  wheel_.arm(probe.timer, at(100));
  EXPECT_EQ(wheel_.sleep_max(at(0)), Millis(100));
  EXPECT_EQ(wheel_.sleep_max(at(40)), Millis(60));
  EXPECT_EQ(wheel_.sleep_max(at(100)), Millis(0));
  EXPECT_EQ(wheel_.sleep_max(at(500)), Millis(0));
  Probe earlier;
  wheel_.arm(earlier.timer, at(20));
  EXPECT_EQ(wheel_.sleep_max(at(0)), Millis(20));
  earlier.timer.cancel();
  EXPECT_EQ(wheel_.sleep_max(at(0)), Millis(100));
  probe.timer.cancel();
  EXPECT_LT(wheel_.sleep_max(at(0)), Millis(0));
}

TEST_F(TimerWheelTest, SleepIsNeverLongerThanTheNextTimerHoweverFarItIs) {
  Probe probe;
  wheel_.arm(probe.timer, at(100'000));
  int now = 0;
  int wakes = 0;
  while (probe.fired == 0) {
    const Millis sleep = wheel_.sleep_max(at(now));
    ASSERT_GE(sleep, Millis(0));
    ASSERT_LE(now + sleep.count(), 100'004);
    now += static_cast<int>(std::max<Millis::rep>(sleep.count(), 1));
    wheel_.advance(at(now));
    ++wakes;
  }
  // A round of the wheel is about 4 s, so a timer in 100 s costs about 25 wakes.
  EXPECT_LE(wakes, 60);
}

TEST_F(TimerWheelTest, CallbacksMayArmAndCancelAnyTimer) {
  Probe first;
  Probe second;
  Probe third;
  first.then = [&] {
    second.timer.cancel();
    wheel_.arm(third.timer, at(40));
    if (first.fired < 3) {
      wheel_.arm(first.timer, at(10));  // Long past: fires in a later tick, not for ever.
    }
  };
  wheel_.arm(first.timer, at(10));
  wheel_.arm(second.timer, at(10));
  wheel_.arm(third.timer, at(10));
  wheel_.advance(at(12));
  EXPECT_EQ(first.fired, 1);
  EXPECT_EQ(second.fired, 0);
  EXPECT_EQ(third.fired, 0);
  wheel_.advance(at(60));
  EXPECT_EQ(first.fired, 3);
  EXPECT_EQ(third.fired, 1);
}

TEST_F(TimerWheelTest, AgreesWithAModelUnderRandomUse) {
  const unsigned seed = 20;
  std::mt19937 random(seed);
  constexpr int kTimers = 3000;
  std::vector<std::unique_ptr<Probe>> probes;
  std::vector<int> due(kTimers, -1);  // -1: not armed.
  int now = 0;
  int last = 0;
  for (int i = 0; i < kTimers; ++i) {
    probes.push_back(std::make_unique<Probe>());
    probes.back()->then = [&, i] {
      ASSERT_NE(due[static_cast<std::size_t>(i)], -1) << "fired without being armed";
      ASSERT_LE(due[static_cast<std::size_t>(i)], now) << "fired early";
      due[static_cast<std::size_t>(i)] = -1;
    };
  }
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t i = random() % kTimers;
    if (random() % 4 == 0) {
      probes[i]->timer.cancel();
      due[i] = -1;
    } else {
      due[i] = now + static_cast<int>(random() % (random() % 8 == 0 ? 30'000 : 3000));
      wheel_.arm(probes[i]->timer, at(due[i]));
    }
    if (random() % 3 == 0) {
      last = now;
      now += static_cast<int>(random() % (random() % 500 == 0 ? 9000 : 20));
      const Millis sleep = wheel_.sleep_max(at(last));
      wheel_.advance(at(now));
      const int first = *std::min_element(due.begin(), due.end(), [](int a, int b) {
        return static_cast<unsigned>(a) < static_cast<unsigned>(b);
      });
      static_cast<void>(sleep);
      if (first != -1) {
        ASSERT_GE(first + TimerWheel::kTickLength.count(), now) << "late; seed " << seed;
        ASSERT_LE(wheel_.sleep_max(at(now)),
                  Millis(std::max(first - now, 0)) + TimerWheel::kTickLength);
      }
    }
  }
}

}  // namespace
}  // namespace kvferry::net
