// PackedWord: a name of a command as four numbers, small letters whatever was sent, so that names
// are compared without a loop over their bytes.
//
//   "GeoRadiusByMember"      first = "georadiu"   middle = "sbymembe" (only above 16 bytes)   last
//   = "bymember"
//
// Words of 8 bytes or more lie in the last 8 bytes and the first 8, which overlap; shorter ones
// leave `last` empty. Together with the length that is the whole word. The plain version, which a
// test compares it with, is equal_letters(). Threads:   pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace kvferry::redis {

/// No command has a longer name.
inline constexpr std::size_t kWordBytesMax = 24;

struct PackedWord {
  std::uint64_t first = 0;
  std::uint64_t middle = 0;
  std::uint64_t last = 0;
  std::uint64_t size_bytes = 0;

  friend bool operator==(const PackedWord& one, const PackedWord& other) noexcept {
    return ((one.first ^ other.first) | (one.middle ^ other.middle) | (one.last ^ other.last) |
            (one.size_bytes ^ other.size_bytes)) == 0;
  }
};

/// Capital letters of ASCII among the eight bytes become small ones.
constexpr std::uint64_t small_letters(std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kEach = 0x0101010101010101;
  const std::uint64_t low_bits = bytes & (kEach * 0x7f);
  // The top bit of a byte of these sums says that the byte is above 'Z', or not below 'A'.
  const std::uint64_t above_z = low_bits + kEach * (0x7f - 'Z');
  const std::uint64_t from_a = low_bits + kEach * (0x80 - 'A');
  const std::uint64_t capital = (from_a ^ above_z) & ~bytes & (kEach * 0x80);
  return bytes | (capital >> 2);
}

/// Packs `text`; false when it is empty or longer than any command.
inline bool pack_word(std::string_view text, PackedWord& word) noexcept {
  const std::size_t size = text.size();
  if (size == 0 || size > kWordBytesMax) {
    return false;
  }
  const auto eight_bytes = [&text](std::size_t at) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, text.data() + at, sizeof bytes);
    return small_letters(bytes);
  };
  word = PackedWord{.size_bytes = size};
  if (size >= sizeof word.first) {
    word.first = eight_bytes(0);
    word.middle = size > 2 * sizeof word.first ? eight_bytes(sizeof word.first) : 0;
    word.last = eight_bytes(size - sizeof word.first);
    return true;
  }
  std::uint64_t bytes = 0;
  for (std::size_t at = size; at-- > 0;) {
    bytes = (bytes << 8) | static_cast<unsigned char>(text[at]);
  }
  word.first = small_letters(bytes);
  return true;
}

/// Where the search for a word begins, among 2^bits slots.
inline std::size_t slot_of(const PackedWord& word, std::uint64_t multiplier,
                           unsigned bits) noexcept {
  const std::uint64_t mixed =
      word.first ^ (word.middle << 1) ^ ((word.last << 29) | (word.last >> 35));
  return static_cast<std::size_t>(((mixed + word.size_bytes) * multiplier) >> (64 - bits));
}

/// Whether two texts are equal but for the case of letters; not on the path of requests.
constexpr bool equal_letters(std::string_view one, std::string_view other) noexcept {
  const auto small = [](char byte) {
    return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
  };
  if (one.size() != other.size()) {
    return false;
  }
  for (std::size_t at = 0; at < one.size(); ++at) {
    if (small(one[at]) != small(other[at])) {
      return false;
    }
  }
  return true;
}

}  // namespace kvferry::redis
