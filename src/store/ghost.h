// Fingerprints of items that were evicted lately, so that an item which comes back soon is not
// taken for a new one.
//
// A direct-mapped table: a newer fingerprint overwrites an older one in its place, which forgets at
// about the rate of the evictions. A false match costs nothing but a place in the main queue.
// Threads: guarded by the lock of the shard.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/key.h"

namespace kvferry::store {

class Ghost {
 public:
  explicit Ghost(std::size_t places) : prints_(std::max<std::size_t>(places, 1)) {}

  void add(const Key& key) noexcept { place_of(key) = print_of(key); }
  /// Whether `key` was evicted lately; forgets it.
  bool take(const Key& key) noexcept {
    std::uint16_t& place = place_of(key);
    if (place != print_of(key)) {
      return false;
    }
    place = 0;
    return true;
  }
  std::size_t size_bytes() const noexcept { return prints_.size() * sizeof(prints_[0]); }

 private:
  /// Never 0, which marks an empty place.
  static std::uint16_t print_of(const Key& key) noexcept {
    return static_cast<std::uint16_t>(key.hash >> 32) | 1;
  }
  /// By the bits of the hash that the print has not.
  std::uint16_t& place_of(const Key& key) noexcept {
    const std::uint64_t low = key.hash & 0xffffffff;
    return prints_[static_cast<std::size_t>(low * prints_.size() >> 32)];
  }

  std::vector<std::uint16_t> prints_;
};

}  // namespace kvferry::store
