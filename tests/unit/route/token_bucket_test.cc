#include "route/token_bucket.h"

#include <limits>

#include <gtest/gtest.h>

namespace kvferry::route {
namespace {

using base::Millis;

constexpr base::SteadyTime kStart{base::Seconds(1000)};
constexpr TokenBucketOptions kSmall{.limit = 5, .fill_rate = 1, .tick = Millis(1000)};

TEST(TokenBucket, IsNeverEmptiedWhole) {
  TokenBucket bucket(kSmall, kStart);
  EXPECT_TRUE(bucket.take(2, kStart));
  EXPECT_TRUE(bucket.take(2, kStart));
  EXPECT_FALSE(bucket.take(1, kStart));
  EXPECT_TRUE(bucket.take(0, kStart));
}

TEST(TokenBucket, FillsByWholeTicksOnly) {
  TokenBucket bucket(kSmall, kStart);
  ASSERT_TRUE(bucket.take(4, kStart));
  EXPECT_FALSE(bucket.take(1, kStart + Millis(1000)))
      << "one tick's time must have passed, and more";
  EXPECT_TRUE(bucket.take(1, kStart + Millis(1001)));
  EXPECT_FALSE(bucket.take(1, kStart + Millis(1999)));
  EXPECT_TRUE(bucket.take(1, kStart + Millis(2001))) << "ticks are counted from the start";
}

TEST(TokenBucket, HoldsNoMoreThanItsLimitAfterAnyPause) {
  TokenBucket bucket({.limit = 4294967294U, .fill_rate = 4294967294U, .tick = Millis(1)}, kStart);
  ASSERT_TRUE(bucket.take(4294967293, kStart));
  const base::SteadyTime later = kStart + base::Seconds(std::int64_t{86400} * 3650);
  EXPECT_TRUE(bucket.take(4294967293, later));
  EXPECT_FALSE(bucket.take(1, later));
}

TEST(SharedTokenBucket, CountsForAllWhoShareIt) {
  SharedTokenBucket bucket(kSmall, kStart);
  EXPECT_TRUE(bucket.take(4, kStart));
  EXPECT_FALSE(bucket.take(1, kStart));
}

}  // namespace
}  // namespace kvferry::route
