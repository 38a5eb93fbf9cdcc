#include "redis/expiry.h"

#include <gtest/gtest.h>

namespace kvferry::redis {
namespace {

constexpr std::int64_t kNow = 1'800'000'000'123;

TEST(Expiry, CountsAsItsFormSays) {
  EXPECT_EQ(read_expiry("10", {.is_in_seconds = true, .is_relative = true}, false, kNow).at_ms,
            kNow + 10'000);
  EXPECT_EQ(read_expiry("10", {.is_in_seconds = false, .is_relative = true}, false, kNow).at_ms,
            kNow + 10);
  EXPECT_EQ(read_expiry("10", {.is_in_seconds = true, .is_relative = false}, false, kNow).at_ms,
            10'000);
  EXPECT_EQ(read_expiry("10", {.is_in_seconds = false, .is_relative = false}, false, kNow).at_ms,
            10);
}

TEST(Expiry, MayBePastOnlyWhereItIsGood) {
  EXPECT_EQ(read_expiry("-1", {}, true, kNow).at_ms, kNow - 1'000);
  EXPECT_EQ(read_expiry("-1", {}, false, kNow).error, ExpiryError::OutOfRange);
  EXPECT_EQ(read_expiry("0", {}, false, kNow).error, ExpiryError::OutOfRange);
}

TEST(Expiry, StaysInRange) {
  EXPECT_EQ(read_expiry("x", {}, true, kNow).error, ExpiryError::NoInteger);
  EXPECT_EQ(read_expiry("9223372036854775807", {}, true, kNow).error, ExpiryError::OutOfRange);
  EXPECT_EQ(read_expiry("-9223372036854775808", {}, true, kNow).error, ExpiryError::OutOfRange);
  const ExpiryForm milliseconds{.is_in_seconds = false, .is_relative = true};
  EXPECT_EQ(read_expiry("9223372036854775807", milliseconds, true, kNow).error,
            ExpiryError::OutOfRange);
}

TEST(Expiry, IsNeverTooEarlyInTheStore) {
  EXPECT_EQ(instant_of(1'000).get(), 1U);
  EXPECT_EQ(instant_of(1'001).get(), 2U);
  EXPECT_EQ(instant_of(1'999).get(), 2U);
  EXPECT_EQ(instant_of(0), store::kLongAgo);
  EXPECT_EQ(instant_of(-5), store::kLongAgo);
  EXPECT_EQ(instant_of(std::int64_t{1} << 60).get(), 4'294'967'295U);
}

}  // namespace
}  // namespace kvferry::redis
