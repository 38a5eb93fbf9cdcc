// Hashes that take a key byte by byte: the FNV family and Jenkins' one-at-a-time.
//
// Twemproxy reads keys as signed characters, so a byte above 0x7f is sign-extended to the width of
// the register before it is mixed in. Keys of other than plain ASCII land elsewhere without this.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvferry::pool {

inline constexpr std::uint64_t kFnv64Offset = 0xcbf29ce484222325U;
inline constexpr std::uint64_t kFnv64Prime = 0x100000001b3U;
inline constexpr std::uint32_t kFnv32Offset = 0x811c9dc5U;
inline constexpr std::uint32_t kFnv32Prime = 0x01000193U;

/// The byte as twemproxy sees it: signed, widened to 64 bits.
inline std::uint64_t signed_byte64(char byte) noexcept {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<signed char>(byte)));
}

/// The byte as twemproxy sees it: signed, widened to 32 bits.
inline std::uint32_t signed_byte32(char byte) noexcept {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(static_cast<signed char>(byte)));
}

inline std::uint32_t hash_one_at_a_time(std::string_view key) noexcept {
  std::uint32_t hash = 0;
  for (const char byte : key) {
    hash += signed_byte32(byte);
    hash += hash << 10;
    hash ^= hash >> 6;
  }
  hash += hash << 3;
  hash ^= hash >> 11;
  hash += hash << 15;
  return hash;
}

inline std::uint32_t hash_fnv1_64(std::string_view key) noexcept {
  std::uint64_t hash = kFnv64Offset;
  for (const char byte : key) {
    hash *= kFnv64Prime;
    hash ^= signed_byte64(byte);
  }
  return static_cast<std::uint32_t>(hash);
}

/// Despite its name a 32-bit hash: twemproxy and libmemcached keep only the low halves of the
/// 64-bit constants.
inline std::uint32_t hash_fnv1a_64(std::string_view key) noexcept {
  constexpr auto kPrime = static_cast<std::uint32_t>(kFnv64Prime);
  auto hash = static_cast<std::uint32_t>(kFnv64Offset);
  for (const char byte : key) {
    hash ^= signed_byte32(byte);
    hash *= kPrime;
  }
  return hash;
}

inline std::uint32_t hash_fnv1_32(std::string_view key) noexcept {
  std::uint32_t hash = kFnv32Offset;
  for (const char byte : key) {
    hash *= kFnv32Prime;
    hash ^= signed_byte32(byte);
  }
  return hash;
}

inline std::uint32_t hash_fnv1a_32(std::string_view key) noexcept {
  std::uint32_t hash = kFnv32Offset;
  for (const char byte : key) {
    hash ^= signed_byte32(byte);
    hash *= kFnv32Prime;
  }
  return hash;
}

}  // namespace kvferry::pool
