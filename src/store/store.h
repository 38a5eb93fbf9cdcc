// Store: a cache in memory that all workers share: get, set and their relatives with exptime, CAS,
// leases, eviction, and a memory limit that covers everything.
//
// Keys are spread over shards by hash; each operation takes one short lock. Values up to
// kInlineBytesMax are copied under it, larger ones are pinned (ItemRef) or filled in beforehand
// (PendingValue). `now` comes from the caller and should never go back.
// Source:    memcached's rules, docs/store.md; no wire formats here.
// Threads:   any. maintain() from one thread, about every 100 ms.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "store/frame_pool.h"
#include "store/item_copy.h"
#include "store/key.h"
#include "store/operations.h"
#include "store/pending_value.h"
#include "store/store_stats.h"

namespace kvferry::store {

inline constexpr std::size_t kLimitBytesDefault = std::size_t{64} * 1024 * 1024;
/// Smaller limits are raised to this.
inline constexpr std::size_t kLimitBytesMin = std::size_t{1} * 1024 * 1024;
inline constexpr std::size_t kItemBytesMaxDefault = std::size_t{1} * 1024 * 1024;
inline constexpr std::size_t kShardsMax = 256;

struct StoreConfig {
  std::size_t limit_bytes = kLimitBytesDefault;       // Items, index, everything.
  std::size_t item_bytes_max = kItemBytesMaxDefault;  // Key, value and record of one item.
  bool is_evicting = true;                            // False: a full store refuses new items.
  bool has_cas = true;                                // False: every CAS unique is 0.
  std::size_t shard_count = 0;                        // A power of two; 0: chosen from the limits.
  EvictionObserver* observer = nullptr;               // Outlives the store.
};

/// Where a walk over all items goes on.
struct WalkPlace {
  std::size_t shard = 0;
  std::size_t bucket = 0;
};

class Store {
 public:
  explicit Store(const StoreConfig& config);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  /// No ItemRef and no PendingValue may be left.
  ~Store();

  /// Looks up `key`; `visit` sees the item while it is locked.
  ReadResult read(const Key& key, const ReadOptions& options, Instant now, ItemVisitor visit);
  TouchStatus touch(const Key& key, Instant exptime, Instant now);
  /// Stores `value`. A refused Set for lack of space, or for its size, removes the item that was
  /// there.
  StoreResult store(const Key& key, const StoreOptions& options, std::string_view value,
                    Instant now);
  DeleteResult remove(const Key& key, const DeleteOptions& options, Instant now);
  ArithResult add_delta(const Key& key, const ArithOptions& options, Instant now);

  /// Begins a value that will come in parts; is not needed for values up to kInlineBytesMax.
  /// Returns Stored, TooLarge or NoMemory.
  StoreStatus begin_value(const Key& key, std::uint64_t value_bytes, PendingValue& value);
  /// Stores a filled value; `value` is empty afterwards.
  StoreResult store(const Key& key, const StoreOptions& options, PendingValue& value, Instant now);

  // For operations that decide by the old value: see item_copy.h.

  /// Copies the item of `key`, as a read would.
  void copy(const Key& key, Instant now, ItemCopy& copy);
  /// Stores `value` in the place of what `copy` says, which may be nothing.
  EditStatus replace(const Key& key, const ItemCopy& copy, const EditOptions& options,
                     std::string_view value, Instant now);
  EditStatus remove_copied(const Key& key, const ItemCopy& copy, Instant now);
  /// Of an item that was found.
  EditStatus set_exptime(const Key& key, const ItemCopy& copy, Instant exptime, Instant now);

  /// Shows the live items of some bucket that has any; false when there is none. Where the search
  /// begins is decided by `random`.
  bool visit_any(std::uint64_t random, Instant now, ItemVisitor visit);
  /// Shows a few live items, each while it is locked, and moves `place` on; false at the end. Items
  /// stored meanwhile may be missing, others may be met twice.
  bool walk(WalkPlace& place, Instant now, ItemVisitor visit);

  /// Hides everything stored so far, now or at `when` (kNever: now). A later call replaces an
  /// earlier one that has not happened yet.
  void flush(Instant when, Instant now);
  /// Frees what has expired, gives memory above the limit back; bounded work.
  void maintain(Instant now);
  /// Takes effect as operations and maintain() go on. Returns what was set (at least the minimum).
  std::size_t set_memory_limit(std::size_t limit_bytes);

  /// Whether an item of this size is refused whatever the memory.
  bool is_too_large(std::size_t key_bytes, std::uint64_t value_bytes) const noexcept;
  /// As given; see limit_bytes() for the limit that holds now.
  const StoreConfig& config() const noexcept { return config_; }
  std::size_t limit_bytes() const noexcept { return limit_bytes_.load(std::memory_order_relaxed); }
  std::size_t shard_count() const noexcept { return shard_count_; }
  /// No CAS unique that the store has chosen is above it; and none that it chooses from now on is
  /// `cas` or below.
  std::uint64_t last_cas();
  void raise_cas(std::uint64_t cas);
  StoreStats snapshot();
  void reset_counters();

 private:
  Shard& shard_of(const Key& key) noexcept;
  StoreResult join(Shard& shard, const Key& key, const StoreOptions& options, std::string_view part,
                   Instant now) const;
  StoreResult join(Shard& shard, const Key& key, const StoreOptions& options, PendingValue& part,
                   Instant now) const;
  StoreResult refuse(const Key& key, const StoreOptions& options, StoreStatus status,
                     std::uint64_t value_bytes, Instant now);
  std::size_t frames_of_shard(std::size_t limit_bytes, std::size_t number) const noexcept;

  StoreConfig config_;
  std::size_t shard_count_;
  std::atomic<std::size_t> limit_bytes_;
  FramePool frames_;  // Outlives the shards.
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace kvferry::store
