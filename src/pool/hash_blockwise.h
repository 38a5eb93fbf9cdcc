// Hashes that read a key in words: MurmurHash2, MurmurHash3, Hsieh's SuperFastHash and Jenkins'
// lookup3, with the start values that twemproxy and Dynomite use.
#pragma once

#include <cstdint>
#include <string_view>

#include "pool/little_endian.h"

namespace kvferry::pool {

/// MurmurHash2 with twemproxy's start value. Inline, because it is a common choice on the hot path.
inline std::uint32_t hash_murmur(std::string_view key) noexcept {
  constexpr std::uint32_t kMultiplier = 0x5bd1e995U;
  const auto size = static_cast<std::uint32_t>(key.size());
  std::uint32_t hash = (0xdeadbeefU * size) ^ size;

  const char* bytes = key.data();
  std::size_t left = key.size();
  for (; left >= 4; left -= 4, bytes += 4) {
    std::uint32_t word = load_little32(bytes) * kMultiplier;
    word ^= word >> 24;
    hash = (hash * kMultiplier) ^ (word * kMultiplier);
  }
  if (left > 0) {
    hash = (hash ^ load_little_tail(bytes, left)) * kMultiplier;
  }

  hash ^= hash >> 13;
  hash *= kMultiplier;
  hash ^= hash >> 15;
  return hash;
}

/// First word of MurmurHash3 x86_128 with the seed of Dynomite's rewrite.
std::uint32_t hash_murmur3(std::string_view key) noexcept;

/// SuperFastHash with start value 0; of the tail bytes the third is signed, a single one is not.
std::uint32_t hash_hsieh(std::string_view key) noexcept;

/// Result c of lookup3's hashlittle with start value 13.
std::uint32_t hash_jenkins(std::string_view key) noexcept;

}  // namespace kvferry::pool
