// Base64 of keys (meta flag b): the alphabet with '+' and '/', padded to groups of four.
//
// Units:     sizes in bytes. Neither direction allocates.
// Threads:   pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "protocol/memcache/request.h"

namespace kvferry::memcache {

inline constexpr std::size_t encoded_base64_bytes(std::size_t plain_bytes) noexcept {
  return (plain_bytes + 2) / 3 * 4;
}

/// Space that any decoded key fits into. Text clients cannot use all of it, since the limit of 250
/// bytes holds on the wire for them; keys of binary clients are encoded by us.
inline constexpr std::size_t kDecodedKeyBytesMax = kKeyBytesMax;

/// Decodes `encoded` into `out` and returns what was written; nullopt when it is empty, not base64,
/// or does not fit. Bits that padding leaves over are ignored, as memcached does it.
std::optional<std::string_view> decode_base64_key(std::string_view encoded,
                                                  std::span<char> out) noexcept;

/// Encodes `plain` into `out` and returns what was written; empty when it does not fit.
std::string_view encode_base64_key(std::string_view plain, std::span<char> out) noexcept;

}  // namespace kvferry::memcache
