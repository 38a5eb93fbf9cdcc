// Instants of the store's clock, and what an exptime of the protocol means in it.
//
// Units: seconds of the UNIX calendar; the store never reads a clock, `now` is handed in.
#pragma once

#include <compare>
#include <cstdint>

#include "base/strong.h"

namespace kvferry::store {

/// Seconds of the UNIX calendar, good until the year 2106.
using Instant = base::Strong<struct InstantTag, std::uint32_t>;

/// An item with this exptime stays until it is evicted.
inline constexpr Instant kNever{0};
/// An exptime that has passed whatever the clock says.
inline constexpr Instant kLongAgo{1};

/// Exptimes up to this are counted from now, larger ones are instants of the calendar.
inline constexpr std::int64_t kRelativeSecondsMax = std::int64_t{60} * 60 * 24 * 30;

/// When an item with `exptime` (memcached's number: 0 never, negative at once, relative, absolute)
/// is gone.
constexpr Instant instant_of_exptime(std::int64_t exptime, Instant now) noexcept {
  if (exptime == 0) {
    return kNever;
  }
  if (exptime < 0) {
    return kLongAgo;
  }
  if (exptime <= kRelativeSecondsMax) {
    return Instant{now.get() + static_cast<std::uint32_t>(exptime)};
  }
  return exptime <= std::int64_t{now.get()} ? kLongAgo
                                            : Instant{static_cast<std::uint32_t>(exptime)};
}

/// Whether an item with `exptime` is gone at `now`.
constexpr bool has_passed(Instant exptime, Instant now) noexcept {
  return exptime != kNever && exptime <= now;
}

}  // namespace kvferry::store
