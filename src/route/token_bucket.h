// TokenBucket: how much of something may pass. Plain, or shared by threads.
//
//   limit       size of the bucket, which starts full
//   fill_rate   tokens added per tick
//   tick        length of a tick
//
// A bucket is never emptied whole: n tokens are given only when more than n are there, as
// memcached's proxy counts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "base/clock.h"

namespace kvferry::route {

struct TokenBucketOptions {
  std::uint32_t limit = 0;
  std::uint32_t fill_rate = 1;
  base::Millis tick{1};

  friend bool operator==(const TokenBucketOptions&, const TokenBucketOptions&) = default;
};

class TokenBucket {
 public:
  TokenBucket(const TokenBucketOptions& options, base::SteadyTime now)
      : options_(options), tokens_(options.limit), updated_(now) {}

  /// Takes `count` tokens if they are there.
  bool take(std::int64_t count, base::SteadyTime now) {
    const auto ticks = (now - updated_) / options_.tick;
    if (now - updated_ > options_.tick) {
      // How many ticks fill it; more of them would only overflow.
      const std::int64_t full = (options_.limit - tokens_) / options_.fill_rate + 1;
      tokens_ = ticks >= full ? options_.limit : tokens_ + ticks * options_.fill_rate;
      updated_ += options_.tick * ticks;
    }
    if (tokens_ <= count) {
      return false;
    }
    tokens_ -= count;
    return true;
  }
  const TokenBucketOptions& options() const { return options_; }

 private:
  TokenBucketOptions options_;
  std::int64_t tokens_;
  base::SteadyTime updated_;
};

/// One bucket for all workers. Any thread; the lock is held for a few instructions.
class SharedTokenBucket {
 public:
  SharedTokenBucket(const TokenBucketOptions& options, base::SteadyTime now)
      : bucket_(options, now) {}

  bool take(std::int64_t count, base::SteadyTime now) {
    const std::lock_guard<std::mutex> guard(mutex_);
    return bucket_.take(count, now);
  }

 private:
  std::mutex mutex_;
  TokenBucket bucket_;
};

}  // namespace kvferry::route
