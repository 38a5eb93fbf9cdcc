// Numbers about a store as a whole, summed over its shards.
#pragma once

#include <cstdint>

namespace kvferry::store {

struct StoreStats {
  // State.
  std::uint64_t bytes = 0;         // Live items: records and pieces.
  std::uint64_t curr_items = 0;    // Those that are gone and were not found yet included.
  std::uint64_t hidden_items = 0;  // Those of them that a flush has hidden.
  std::uint64_t limit_maxbytes = 0;
  std::uint64_t allocated_bytes = 0;  // Frames held, for items and index; the limit is for this.
  std::uint64_t index_bytes = 0;
  std::uint64_t index_buckets = 0;
  // Counts since the start or the last reset.
  std::uint64_t total_items = 0;
  std::uint64_t evictions = 0;          // Items that had to go although they were good.
  std::uint64_t evicted_unfetched = 0;  // Those of them that were never read.
  std::uint64_t evicted_active = 0;     // Those of them that were read, lately and often.
  std::uint64_t reclaimed = 0;          // Dead items whose space eviction used again.
  std::uint64_t expired_unfetched = 0;  // Items that expired without having been read.
  std::uint64_t crawler_reclaimed = 0;
  std::uint64_t crawler_items_checked = 0;
  std::uint64_t moves_to_main = 0;      // Items that proved useful.
  std::uint64_t moves_within_main = 0;  // Items of the main queue that got another round.
  std::uint64_t compacted_segments = 0;

  StoreStats& operator+=(const StoreStats& other) noexcept;
};

}  // namespace kvferry::store
