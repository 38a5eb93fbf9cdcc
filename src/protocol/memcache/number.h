// Decimal numbers of the memcached protocol: digits only, no blanks, no plus sign, range checked.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace kvferry::memcache {

/// Reads all of `text` as a decimal `Number`; false when it is none or out of range. Signed types
/// accept one minus sign.
template <typename Number>
bool read_number(std::string_view text, Number& number) noexcept {
  const char* const end = text.data() + text.size();
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the end goes with it.
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && stop == end;
}

/// Reads the announced length of a value, 0 to `bytes_max`.
inline bool read_value_length(std::string_view text, std::uint64_t bytes_max,
                              std::uint64_t& bytes) noexcept {
  std::uint64_t sum = 0;
  for (const char byte : text) {
    const unsigned digit = static_cast<unsigned char>(byte) - unsigned{'0'};
    if (digit > 9) {
      return false;
    }
    sum = sum * 10 + digit;
    if (sum > bytes_max) {
      return false;
    }
  }
  bytes = sum;
  return !text.empty();
}

}  // namespace kvferry::memcache
