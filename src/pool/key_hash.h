// From a key to a number: which bytes of the key are hashed, and the hash functions.
//
// Source:    twemproxy 0.5.0 for its twelve functions, bit for bit on x86-64; memcached's built-in
//            proxy for its filters.
// Units:     functions of 32 bits give numbers below 2^32; Xxh3 fills 64 bits; Atol is a signed
//            64-bit number in two's complement.
// Lifetime:  returned views point into the key.
// Threads:   pure functions without shared state, which never allocate.
#pragma once

#include <cstdint>
#include <string_view>

#include "pool/options.h"

namespace kvferry::pool {

inline constexpr std::uint32_t kSlotCount = 16384;  // Hash slots of a Redis cluster.

/// The hash of `key`. Results of 32-bit functions are zero-extended.
std::uint64_t hash_key(HashKind kind, std::string_view key) noexcept;

/// XXH3 of 64 bits with a seed; hash_key(Xxh3) has seed 0.
std::uint64_t hash_xxh3(std::string_view key, std::uint64_t seed) noexcept;

/// The bytes of `key` that are hashed under twemproxy's rule for `hash_tag` (empty, or two bytes a
/// and b): what lies between the first a and the first b after it. The whole key when there is no
/// such pair or nothing between.
std::string_view hashed_part(std::string_view key, std::string_view hash_tag) noexcept;

/// The same under any filter. MemcachedTags differs from HashTag in one point: an empty tag hashes
/// the empty text. MemcachedStop gives the bytes before the first `conf`.
std::string_view hashed_part(std::string_view key, KeyFilter filter,
                             std::string_view conf) noexcept;

/// The name that configuration files give to `kind`, such as "fnv1a_64".
std::string_view name_of(HashKind kind) noexcept;

}  // namespace kvferry::pool
