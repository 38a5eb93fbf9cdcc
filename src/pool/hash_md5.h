// MD5 (RFC 1321) of short texts, for placement only.
//
// Ours, because hashing a key must not allocate, and the contexts of crypto libraries do. MD5 is
// broken as a signature; here it only spreads keys and points as other proxies spread them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace kvferry::pool {

/// The digest as four words; word n is made of digest bytes 4n to 4n + 3, little-endian.
using Md5Words = std::array<std::uint32_t, 4>;

Md5Words md5_words(std::string_view text) noexcept;

/// First word of the digest: the hash `md5` of keys.
inline std::uint32_t hash_md5(std::string_view key) noexcept {
  return md5_words(key)[0];
}

}  // namespace kvferry::pool
