// Backoff: how long to wait before the next connection attempt. Doubles with full jitter up to a
// maximum.
//
// Pure: the random word is a parameter.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace kvferry::pool {

class Backoff {
 public:
  Backoff(base::Millis min, base::Millis max) noexcept : min_(min), max_(max) {}

  /// The delay after one more failure: between half of the current step and the whole of it,
  /// `random` deciding.
  base::Millis on_failure(std::uint64_t random) noexcept {
    step_ = step_.count() == 0 ? min_ : std::min(step_ * 2, max_);
    return wait(random);
  }
  /// The delay of the current step once more, for a wait that begins anew.
  base::Millis wait(std::uint64_t random) const noexcept {
    const auto half = static_cast<std::uint64_t>(step_.count()) / 2;
    return base::Millis(static_cast<std::int64_t>(half + random % (half + 1)));
  }
  /// New limits, which hold for the current step too. True when they differ from those before.
  bool set_limits(base::Millis min, base::Millis max) noexcept {
    if (min == min_ && max == max_) {
      return false;
    }
    min_ = min;
    max_ = max;
    if (is_failing()) {
      step_ = std::min(std::max(step_, min_), max_);
    }
    return true;
  }
  void on_success() noexcept { step_ = base::Millis(0); }
  /// True after a failure, until a success.
  bool is_failing() const noexcept { return step_.count() != 0; }

 private:
  base::Millis min_;
  base::Millis max_;
  base::Millis step_{0};
};

/// xorshift64: spreads retries and random placement; not for secrets. `state` must not be 0.
inline std::uint64_t next_random(std::uint64_t& state) noexcept {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

}  // namespace kvferry::pool
