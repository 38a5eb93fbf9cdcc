#include "pool/health.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace kvferry::pool {
namespace {

TEST(BackendHealth, GoesDownAtTheLimitExactlyOnce) {
  for (const std::uint32_t limit : {1U, 2U, 3U}) {
    BackendHealth health(limit);
    for (std::uint32_t i = 1; i <= limit + 2; ++i) {
      EXPECT_EQ(health.on_failure(), i == limit) << i << " of " << limit;
      EXPECT_EQ(health.is_down(), i >= limit);
    }
  }
}

TEST(BackendHealth, AReplyClearsTheCountButDoesNotLiftDown) {
  BackendHealth health(2);
  health.on_failure();
  health.on_reply();
  EXPECT_EQ(health.failures(), 0U);
  EXPECT_FALSE(health.on_failure());
  EXPECT_TRUE(health.on_failure());
  health.on_reply();
  EXPECT_TRUE(health.is_down());
}

TEST(BackendHealth, AProbeLiftsDownAndTheNextFallIsToldAgain) {
  BackendHealth health(2);
  health.on_failure();
  health.on_failure();
  health.on_probed();
  EXPECT_FALSE(health.is_down());
  EXPECT_FALSE(health.on_failure());
  EXPECT_TRUE(health.on_failure());
}

TEST(BackendHealth, ALowerLimitHoldsForTheNextFailure) {
  BackendHealth health(10);
  health.on_failure();
  health.on_failure();
  health.set_failure_limit(3);
  EXPECT_FALSE(health.is_down());
  EXPECT_TRUE(health.on_failure());
}

TEST(BackendHealth, OneOfManyThreadsReportsTheFall) {
  BackendHealth health(50);
  std::atomic<int> falls{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 100; ++j) {
        falls += health.on_failure() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(falls.load(), 1);
  EXPECT_EQ(health.failures(), 400U);
}

}  // namespace
}  // namespace kvferry::pool
