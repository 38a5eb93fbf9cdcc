// Exptimes as Redis writes them, and as the store keeps them.
//
// Units:     milliseconds of the UNIX calendar in what Redis says, whole seconds in the store.
// Source:    redis.io, EXPIRE, SET; redis-server 7.0.
// Threads:   pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "store/instant.h"

namespace kvferry::redis {

/// How a command counts.
struct ExpiryForm {
  bool is_in_seconds = true;
  bool is_relative = true;
};

enum class ExpiryError : std::uint8_t {
  None,
  NoInteger,
  OutOfRange,  // Invalid as an exptime.
};

struct Expiry {
  ExpiryError error = ExpiryError::None;
  std::int64_t at_ms = 0;
};

/// Reads `text` as `form` says. `is_past_good`: what lies in the past, which EXPIRE takes and SET
/// does not.
Expiry read_expiry(std::string_view text, ExpiryForm form, bool is_past_good, std::int64_t now_ms);

/// The instant at which an item that is to end at `at_ms` is gone: the next whole second, and the
/// last one that the store knows for what lies behind it.
store::Instant instant_of(std::int64_t at_ms) noexcept;
inline std::int64_t milliseconds_of(store::Instant instant) noexcept {
  return std::int64_t{instant.get()} * 1000;
}

}  // namespace kvferry::redis
