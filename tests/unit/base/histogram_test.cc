#include "base/histogram.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace kvferry::base {
namespace {

constexpr std::uint64_t kLongestUs = std::uint64_t{1} << 27;

TEST(Histogram, EveryValueLiesBelowTheBoundOfItsBucketAndNotBelowTheOneBefore) {
  for (std::uint64_t power = 1; power <= kLongestUs; power *= 2) {
    for (const std::uint64_t micros : {power - 1, power, power + 1, power + power / 3}) {
      if (micros >= kLongestUs) {
        continue;
      }
      const std::size_t index = Histogram::index_of(micros);
      EXPECT_LT(micros, Histogram::upper_bound_us(index)) << micros;
      if (index > 0) {
        EXPECT_GE(micros, Histogram::upper_bound_us(index - 1)) << micros;
      }
    }
  }
}

TEST(Histogram, BucketsAreAtMostASixteenthOfTheirValueWide) {
  for (std::size_t index = 1; index < Histogram::kBuckets; ++index) {
    const std::uint64_t low = Histogram::upper_bound_us(index - 1);
    const std::uint64_t width = Histogram::upper_bound_us(index) - low;
    EXPECT_TRUE(width == 1 || width * 16 <= low) << index;
    EXPECT_EQ(Histogram::index_of(low), index) << "no gap and no overlap";
  }
}

TEST(Histogram, TheLongestBucketTakesEverythingBeyond) {
  const std::size_t last = Histogram::kBuckets - 1;
  EXPECT_EQ(Histogram::upper_bound_us(last), kLongestUs);
  for (const std::uint64_t micros :
       {kLongestUs - 1, kLongestUs, kLongestUs + 1, ~std::uint64_t{0}}) {
    EXPECT_EQ(Histogram::index_of(micros), last) << micros;
  }
}

TEST(Histogram, CountsNegativeLatenciesAsNone) {
  Histogram histogram;
  histogram.record(Nanos(-5));
  histogram.record(Nanos(999));
  EXPECT_EQ(histogram.bucket(0), 2U);
  EXPECT_EQ(histogram.sum_us(), 0U);
}

TEST(HistogramSum, AnswersNothingWhenEmpty) {
  const HistogramSum sum;
  EXPECT_EQ(sum.total(), 0U);
  EXPECT_EQ(sum.quantile_us(0.5), 0U);
  EXPECT_EQ(sum.quantile_us(1.0), 0U);
}

TEST(HistogramSum, QuantilesMatchTheSortedValuesWithinABucket) {
  std::mt19937 random(3);
  Histogram first;
  Histogram second;
  std::vector<std::uint64_t> values;
  std::uint64_t expected_sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t micros = random() % (std::uint64_t{1} << (random() % 24));
    (i % 2 == 0 ? first : second).record(Micros(micros));
    values.push_back(micros);
    expected_sum += micros;
  }
  std::ranges::sort(values);
  HistogramSum sum;
  sum.add(first);
  sum.add(second);
  EXPECT_EQ(sum.total(), values.size());
  EXPECT_EQ(sum.sum_us(), expected_sum);
  for (const double quantile : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = std::min(
        values.size() - 1, static_cast<std::size_t>(quantile * static_cast<double>(values.size())));
    EXPECT_EQ(sum.quantile_us(quantile),
              Histogram::upper_bound_us(Histogram::index_of(values[rank])))
        << quantile;
  }
}

TEST(HistogramSum, TotalIsTheSumOfItsCountsWhileTheOwnerCountsOn) {
  Histogram histogram;
  std::atomic<bool> stop{false};
  std::thread owner([&] {
    std::uint64_t micros = 0;
    while (!stop.load(std::memory_order_relaxed)) {
      histogram.record(Micros(micros++ % 8));
    }
  });
  for (int i = 0; i < 2000; ++i) {
    HistogramSum sum;
    sum.add(histogram);
    std::uint64_t counted = 0;
    for (std::size_t index = 0; index < Histogram::kBuckets; ++index) {
      counted += sum.count(index);
    }
    ASSERT_EQ(sum.total(), counted);
  }
  stop.store(true, std::memory_order_relaxed);
  owner.join();
}

}  // namespace
}  // namespace kvferry::base
