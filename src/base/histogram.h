// Histogram: latencies in log-linear buckets, written by one thread, merged by any.
//
// Units:   microseconds; a bucket is at most 1/16 of its value wide. What is longer than 134 s
// counts as
//          134 s.
// Threads: record() on the owning thread, everything else on any.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/counter.h"

namespace kvferry::base {

class Histogram {
 public:
  // Values below 2^kSubBits microseconds have a bucket each; above, every octave has 2^kSubBits
  // buckets.
  static constexpr unsigned kSubBits = 4;
  static constexpr unsigned kOctaves = 23;
  static constexpr std::size_t kBuckets = (kOctaves + 1) << kSubBits;

  /// Owning thread only.
  void record(Nanos latency) noexcept {
    const auto micros = latency.count() <= 0 ? std::uint64_t{0}
                                             : static_cast<std::uint64_t>(latency.count()) / 1000;
    buckets_[index_of(micros)].add(1);
    sum_us_.add(micros);
  }

  static constexpr std::size_t index_of(std::uint64_t micros) noexcept {
    if (micros < (1U << kSubBits)) {
      return static_cast<std::size_t>(micros);
    }
    const unsigned octave = static_cast<unsigned>(std::bit_width(micros)) - kSubBits;  // 1 or more
    const std::size_t index = (static_cast<std::size_t>(octave) << kSubBits) +
                              ((micros >> (octave - 1)) & ((1U << kSubBits) - 1));
    return index < kBuckets ? index : kBuckets - 1;
  }
  /// Smallest value, in microseconds, that does not fall into bucket `index` or one before it.
  static constexpr std::uint64_t upper_bound_us(std::size_t index) noexcept {
    if (index < (1U << kSubBits)) {
      return index + 1;
    }
    const std::size_t octave = index >> kSubBits;
    const std::uint64_t step = std::uint64_t{1} << (octave - 1);
    return ((std::uint64_t{1} << kSubBits) + (index & ((1U << kSubBits) - 1)) + 1) * step;
  }

  std::uint64_t bucket(std::size_t index) const noexcept { return buckets_[index].get(); }
  std::uint64_t sum_us() const noexcept { return sum_us_.get(); }

 private:
  std::array<Counter, kBuckets> buckets_;
  Counter sum_us_;
};

/// Sum of histograms of several threads; answers questions.
class HistogramSum {
 public:
  void add(const Histogram& histogram) noexcept {
    for (std::size_t i = 0; i < Histogram::kBuckets; ++i) {
      // Read once: the owner may count on meanwhile, and the total must stay the sum of the counts.
      const std::uint64_t count = histogram.bucket(i);
      counts_[i] += count;
      total_ += count;
    }
    sum_us_ += histogram.sum_us();
  }
  std::uint64_t total() const noexcept { return total_; }
  std::uint64_t sum_us() const noexcept { return sum_us_; }
  std::uint64_t count(std::size_t index) const noexcept { return counts_[index]; }
  /// Upper bound, in microseconds, of the bucket that holds the value at `quantile` (0..1); 0 when
  /// empty.
  std::uint64_t quantile_us(double quantile) const noexcept {
    const auto rank = static_cast<std::uint64_t>(quantile * static_cast<double>(total_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < Histogram::kBuckets; ++i) {
      seen += counts_[i];
      if (seen > rank || (seen == total_ && total_ != 0)) {
        return Histogram::upper_bound_us(i);
      }
    }
    return 0;
  }

 private:
  std::array<std::uint64_t, Histogram::kBuckets> counts_{};
  std::uint64_t total_ = 0;
  std::uint64_t sum_us_ = 0;
};

}  // namespace kvferry::base
