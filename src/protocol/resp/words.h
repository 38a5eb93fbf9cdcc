// Words of requests, which are the same in small and capital letters.
//
// Threads: pure.
#pragma once

#include <algorithm>
#include <string_view>

namespace kvferry::resp {

inline char small_letter(char byte) noexcept {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte | 0x20) : byte;
}

/// Whether `text` is `lower` but for its case; `lower` has no capital letters.
inline bool is_word(std::string_view text, std::string_view lower) noexcept {
  return std::ranges::equal(text, lower,
                            [](char byte, char wanted) { return small_letter(byte) == wanted; });
}

}  // namespace kvferry::resp
