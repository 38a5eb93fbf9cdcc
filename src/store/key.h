// A key with its hash, which is computed once per operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvferry::store {

inline constexpr std::size_t kKeyBytesMax = 250;

/// Hash of a key. Where its bits go: 0..31 bucket of the index, 32..47 tag in the slot, 48..63
/// shard.
std::uint64_t hash_of(std::string_view key) noexcept;

struct Key {
  explicit Key(std::string_view key_bytes) noexcept : bytes(key_bytes), hash(hash_of(key_bytes)) {}

  std::uint64_t tag() const noexcept { return (hash >> 32) & 0xffff; }
  std::size_t shard_bits() const noexcept { return static_cast<std::size_t>(hash >> 48); }

  std::string_view bytes;  // At most kKeyBytesMax, at least 1.
  std::uint64_t hash;
};

}  // namespace kvferry::store
