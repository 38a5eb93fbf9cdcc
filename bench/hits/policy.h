// Policies of eviction as models: no values, only who is in, so that ideas can be compared quickly.
//
// Each counts an item as its key, its value and kItemBytes, and holds as many as fit into its
// capacity. Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hits/trace.h"

namespace kvferry::hits {

/// What a model takes for an item beside key and value.
inline constexpr std::size_t kItemBytes = 24;

inline std::size_t footprint_of(const Access& access) noexcept {
  return kKeyBytes + access.value_bytes + kItemBytes;
}

class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  virtual std::string_view name() const noexcept = 0;
  /// A read, and a write when it misses. Returns whether it hit.
  virtual bool access(const Access& access) = 0;
};

/// One list, the least recently used goes first.
std::unique_ptr<Policy> make_lru(std::size_t capacity_bytes);
/// HOT, WARM and COLD as memcached 1.6 has them: the second use of an item in COLD moves it to
/// WARM.
std::unique_ptr<Policy> make_segmented_lru(std::size_t capacity_bytes);
/// A small queue in front of a main one, and a ghost of as many keys as main has items.
std::unique_ptr<Policy> make_s3_fifo(std::size_t capacity_bytes);
/// A window of a hundredth, then a segmented LRU that only those enter who are asked for more often
/// than who would have to go.
std::unique_ptr<Policy> make_w_tiny_lfu(std::size_t capacity_bytes);

}  // namespace kvferry::hits
