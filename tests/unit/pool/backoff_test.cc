#include "pool/backoff.h"

#include <gtest/gtest.h>

namespace kvferry::pool {
namespace {

using base::Millis;

TEST(Backoff, DoublesUpToTheMaximum) {
  Backoff backoff(Millis(50), Millis(300));
  EXPECT_FALSE(backoff.is_failing());
  for (const int step : {50, 100, 200, 300, 300, 300}) {
    // The random word that gives the whole of the step.
    EXPECT_EQ(backoff.on_failure(static_cast<std::uint64_t>(step) / 2), Millis(step));
    EXPECT_TRUE(backoff.is_failing());
  }
}

TEST(Backoff, ASuccessBeginsAnew) {
  Backoff backoff(Millis(50), Millis(300));
  backoff.on_failure(0);
  backoff.on_failure(0);
  backoff.on_success();
  EXPECT_FALSE(backoff.is_failing());
  EXPECT_EQ(backoff.on_failure(25), Millis(50));
}

TEST(Backoff, NewLimitsHoldForTheStepUnderWay) {
  Backoff backoff(Millis(50), Millis(400));
  EXPECT_FALSE(backoff.set_limits(Millis(50), Millis(400)));
  EXPECT_TRUE(backoff.set_limits(Millis(100), Millis(400)));
  EXPECT_FALSE(backoff.is_failing()) << "new limits are no failure";
  for (const int step : {100, 200, 400}) {
    EXPECT_EQ(backoff.on_failure(static_cast<std::uint64_t>(step) / 2), Millis(step));
  }
  EXPECT_TRUE(backoff.set_limits(Millis(10), Millis(20)));
  EXPECT_TRUE(backoff.is_failing());
  EXPECT_EQ(backoff.wait(10), Millis(20)) << "lowered to the new maximum";
  EXPECT_TRUE(backoff.set_limits(Millis(60), Millis(90)));
  EXPECT_EQ(backoff.wait(30), Millis(60)) << "raised to the new minimum";
  EXPECT_EQ(backoff.on_failure(45), Millis(90));
}

TEST(Backoff, JitterStaysBetweenHalfAndTheWholeStep) {
  std::uint64_t random = 1;
  Millis least(1000);
  Millis most(0);
  for (int i = 0; i < 2000; ++i) {
    Backoff backoff(Millis(80), Millis(80));
    const Millis wait = backoff.on_failure(next_random(random));
    least = std::min(least, wait);
    most = std::max(most, wait);
  }
  EXPECT_EQ(least, Millis(40));
  EXPECT_EQ(most, Millis(80));
}

TEST(Backoff, OfOneMillisecondIsNotZeroForEver) {
  Backoff backoff(Millis(1), Millis(8));
  for (int i = 0; i < 5; ++i) {
    backoff.on_failure(~std::uint64_t{0});
  }
  EXPECT_GE(backoff.on_failure(0), Millis(4));
}

TEST(NextRandom, NeverBecomesZero) {
  std::uint64_t state = 1;
  std::uint64_t ones = 0;
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_NE(next_random(state), 0U);
    ones += state & 1;
  }
  EXPECT_GT(ones, 4500U);
  EXPECT_LT(ones, 5500U);
}

}  // namespace
}  // namespace kvferry::pool
