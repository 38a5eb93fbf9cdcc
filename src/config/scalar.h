// Texts of scalars turned into values. YAML's own typing is never used, so that what is written is
// what is read (docs/configuration.md, "Values").
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvferry::config {

/// A whole number in decimal, or the reason why it is none.
struct WholeNumber {
  enum class State : std::uint8_t { Good, NotNumber, TooLarge };

  State state = State::NotNumber;
  std::int64_t value = 0;
};

/// Digits with an optional minus sign; nothing else.
WholeNumber parse_whole(std::string_view text) noexcept;

/// "true" or "false", exactly.
std::optional<bool> parse_bool(std::string_view text) noexcept;

/// Milliseconds of "400ms", "2s", "5m" or "1h"; without a unit only when `unit_required` is false.
WholeNumber parse_millis(std::string_view text, bool unit_required) noexcept;

/// Bytes of "65536", "16kb", "16mb" or "2gb" (units of 1024).
WholeNumber parse_bytes(std::string_view text) noexcept;

/// The shortest text that parse_millis(..., true) reads as `millis`.
std::string millis_text(std::int64_t millis);

/// The shortest text that parse_bytes() reads as `bytes`.
std::string bytes_text(std::uint64_t bytes);

}  // namespace kvferry::config
