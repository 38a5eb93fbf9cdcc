// What the store can be asked, and what it answers. No wire format: exptimes are instants, tokens
// are bools.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/delegate.h"
#include "store/instant.h"
#include "store/item_ref.h"

namespace kvferry::store {

/// Why nothing was found.
enum class Miss : std::uint8_t { Absent, Expired, Flushed };

/// An item as a reader sees it, while the shard is locked: copy what you need, fast, and pin() what
/// is large.
struct ItemView {
  std::string_view key{};
  std::string_view value{};  // All of it, or what lies behind the pieces when is_large.
  std::uint64_t cas = 0;
  std::uint32_t value_bytes = 0;  // Pieces included.
  std::uint32_t client_flags = 0;
  std::uint32_t idle_seconds = 0;  // Since the access before this one.
  Instant exptime{};               // After this read; exptime_before: before it.
  Instant exptime_before{};
  bool is_large = false;
  bool is_new = false;       // This read has made it.
  bool was_fetched = false;  // Before this read.
  bool is_base64_key = false;
  bool is_stale = false;
  bool was_won = false;  // Another reader has been told to recache.
  bool has_won = false;  // This one is told now.
  std::uint32_t footprint_bytes = 0;

  Shard* shard = nullptr;  // For pin().
  Piece* pieces = nullptr;

  /// Keeps the pieces of a large value after the read.
  ItemRef pin() const noexcept;
};
using ItemVisitor = base::Delegate<void(const ItemView&)>;

struct ReadOptions {
  bool is_use = true;                      // Counts for eviction, marks the item as fetched.
  bool is_leasing = false;                 // Takes part in stale and win; plain reads do not.
  bool recache_sees_exptime = false;       // recache_below compares with the new exptime.
  std::optional<Instant> exptime{};        // Set it.
  std::optional<Instant> vivify{};         // On a miss: create an empty item with this exptime.
  std::optional<Instant> recache_below{};  // Win when the item would be gone before.
  std::uint64_t vivify_cas = 0;            // 0: the next one.
  bool is_base64_key = false;              // Of an item made by vivify.
};

enum class ReadStatus : std::uint8_t { Hit, Created, Miss, NoMemory };
struct ReadResult {
  ReadStatus status = ReadStatus::Miss;
  Miss miss = Miss::Absent;
};

enum class StoreMode : std::uint8_t { Set, Add, Replace, Append, Prepend, Cas };
struct StoreOptions {
  StoreMode mode = StoreMode::Set;
  bool has_compare_cas = false;  // Always with Cas; Append and Prepend heed it too.
  bool may_invalidate = false;   // Cas with a lower number stores, and marks as stale.
  bool is_base64_key = false;
  std::uint32_t client_flags = 0;
  Instant exptime = kNever;
  std::uint64_t compare_cas = 0;
  std::uint64_t new_cas = 0;        // 0: the next one.
  std::optional<Instant> vivify{};  // Append and Prepend on a miss: create with this exptime.
};

enum class StoreStatus : std::uint8_t { Stored, NotStored, Exists, NotFound, TooLarge, NoMemory };
struct StoreResult {
  StoreStatus status = StoreStatus::NotStored;
  bool is_base64_key = false;
  std::uint64_t cas = 0;          // Of the stored item; 0 when nothing was stored.
  std::uint64_t value_bytes = 0;  // Of the stored item, or of the value that was not.
};

struct DeleteOptions {
  bool has_compare_cas = false;
  bool is_invalidation = false;  // Mark as stale instead of deleting.
  bool is_clearing = false;      // Empty the value instead of deleting.
  std::uint64_t compare_cas = 0;
  std::uint64_t new_cas = 0;         // 0: the next one (invalidation), or the old one (clearing).
  std::optional<Instant> exptime{};  // With invalidation or clearing.
  std::uint32_t client_flags = 0;    // With clearing.
};
enum class DeleteStatus : std::uint8_t { Done, NotFound, Exists, NoMemory };
struct DeleteResult {
  DeleteStatus status = DeleteStatus::NotFound;
  bool is_base64_key = false;
  std::uint32_t value_bytes = 0;  // Of what was deleted.
};

struct ArithOptions {
  bool is_decrement = false;
  bool has_compare_cas = false;
  bool is_base64_key = false;  // Of an item made by vivify.
  std::uint64_t delta = 1;
  std::uint64_t initial = 0;
  std::uint64_t compare_cas = 0;
  std::uint64_t new_cas = 0;         // 0: the next one.
  std::optional<Instant> exptime{};  // Set it, on a hit.
  std::optional<Instant> vivify{};   // On a miss: create with `initial` and this exptime.
};
enum class ArithStatus : std::uint8_t { Done, Created, NotFound, Exists, NonNumeric, NoMemory };
struct ArithResult {
  ArithStatus status = ArithStatus::NotFound;
  bool is_base64_key = false;
  std::uint64_t number = 0;
  std::uint64_t cas = 0;
  Instant exptime{};
  Instant exptime_before{};
};

enum class TouchStatus : std::uint8_t { Done, NotFound, NoMemory };

/// An item that has to go although it is good.
struct EvictedItem {
  std::string_view key;
  std::uint32_t value_bytes = 0;
  std::uint32_t idle_seconds = 0;
  Instant exptime{};
  bool was_fetched = false;
};

/// Told of evictions while a shard is locked: quick, and not a user of the store.
class EvictionObserver {
 public:
  virtual bool wants() const noexcept = 0;
  /// `now` is that of the operation that needed the memory.
  virtual void on_evicted(const EvictedItem& item, Instant now) noexcept = 0;

 protected:
  ~EvictionObserver() = default;
};

}  // namespace kvferry::store
