// Reads of little-endian words from the bytes of a key.
//
// The published hashes that read several bytes at once are defined on little-endian machines, so
// these give the same words on every machine. Callers check that the bytes are there.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace kvferry::pool {

inline std::uint16_t load_little16(const char* bytes) noexcept {
  std::uint16_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  if constexpr (std::endian::native == std::endian::big) {
    word = __builtin_bswap16(word);
  }
  return word;
}

inline std::uint32_t load_little32(const char* bytes) noexcept {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  if constexpr (std::endian::native == std::endian::big) {
    word = __builtin_bswap32(word);
  }
  return word;
}

/// Reads 0 to 3 bytes as one little-endian number.
inline std::uint32_t load_little_tail(const char* bytes, std::size_t size) noexcept {
  std::uint32_t word = 0;
  for (std::size_t at = size; at > 0; --at) {
    word = (word << 8) | static_cast<unsigned char>(bytes[at - 1]);
  }
  return word;
}

}  // namespace kvferry::pool
