// Fingerprints of items that were evicted lately, so that an item which comes back soon is not
// taken for a new one.
//
// A direct-mapped table: a newer fingerprint overwrites an older one in its place, which forgets at
// about the rate of the evictions. A false match costs nothing but a place in the main queue.
// Threads: guarded by the lock of the shard.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/key.h"

namespace kvferry::store {

class Ghost {
 public:
  /// A table of about `places` entries, rounded up to a power of two.
  explicit Ghost(std::size_t places) : prints_(std::bit_ceil(places < 2 ? 2 : places)) {}

  void add(const Key& key) noexcept { place_of(key) = print_of(key); }
  /// Whether `key` was evicted lately; forgets it.
  bool take(const Key& key) noexcept {
    std::uint32_t& place = place_of(key);
    if (place != print_of(key)) {
      return false;
    }
    place = 0;
    return true;
  }
  std::size_t size_bytes() const noexcept { return prints_.size() * sizeof(prints_[0]); }

 private:
  /// Never 0, which marks an empty place.
  static std::uint32_t print_of(const Key& key) noexcept {
    return static_cast<std::uint32_t>(key.hash >> 24) | 1;
  }
  std::uint32_t& place_of(const Key& key) noexcept {
    return prints_[key.hash & (prints_.size() - 1)];
  }

  std::vector<std::uint32_t> prints_;
};

}  // namespace kvferry::store
