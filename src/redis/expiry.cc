#include "redis/expiry.h"

#include <algorithm>
#include <limits>

#include "protocol/resp/integer.h"

namespace kvferry::redis {

namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kPerSecond = 1000;

}  // namespace

Expiry read_expiry(std::string_view text, ExpiryForm form, bool is_past_good, std::int64_t now_ms) {
  std::int64_t number = 0;
  if (!resp::read_integer(text, number)) {
    return {.error = ExpiryError::NoInteger};
  }
  const Expiry out_of_range{.error = ExpiryError::OutOfRange};
  if (!is_past_good && number <= 0) {
    return out_of_range;
  }
  if (form.is_in_seconds) {
    if (number > kMax / kPerSecond || number < kMin / kPerSecond) {
      return out_of_range;
    }
    number *= kPerSecond;
  }
  if (form.is_relative) {
    if (number > kMax - now_ms) {
      return out_of_range;
    }
    number += now_ms;
  }
  return {.at_ms = number};
}

store::Instant instant_of(std::int64_t at_ms) noexcept {
  constexpr std::int64_t kLast = std::numeric_limits<std::uint32_t>::max();
  if (at_ms <= 0) {
    return store::kLongAgo;
  }
  const std::int64_t seconds = at_ms / kPerSecond + (at_ms % kPerSecond != 0 ? 1 : 0);
  return store::Instant{static_cast<std::uint32_t>(std::min(seconds, kLast))};
}

}  // namespace kvferry::redis
