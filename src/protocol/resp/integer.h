// Decimal integers as redis-server reads them: 64 bits with a sign, no zeros in front, no blanks,
// no plus sign.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace kvferry::resp {

/// Reads all of `text`; false when it is none or out of range.
inline bool read_integer(std::string_view text, std::int64_t& number) noexcept {
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.starts_with('0') && text != "0") {
    return false;
  }
  const char* const end = text.data() + text.size();
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the end goes with it.
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && stop == end;
}

}  // namespace kvferry::resp
