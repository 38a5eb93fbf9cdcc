// Shard: the operations of the store on the keys that hash to it, each atomic under one short lock.
//
// Threads: any; nothing larger than kInlineBytesMax is copied while the lock is held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "store/item_copy.h"
#include "store/item_space.h"
#include "store/operations.h"
#include "store/pending_value.h"
#include "store/shard_lock.h"

namespace kvferry::store {

struct ShardOptions {
  std::size_t frames_max = 0;
  bool is_evicting = true;
  std::uint64_t cas_first = 1;  // CAS uniques of a shard: this, then steps of cas_step.
  std::uint64_t cas_step = 1;
};

class alignas(64) Shard {
 public:
  Shard(FramePool& frames, const ShardOptions& options);

  ReadResult read(const Key& key, const ReadOptions& options, Instant now, ItemVisitor visit);
  TouchStatus touch(const Key& key, Instant exptime, Instant now);
  /// `value` is at most kInlineBytesMax long; nullopt when old and new value together are longer
  /// (append, prepend): the caller joins them without the lock.
  std::optional<StoreResult> store(const Key& key, const StoreOptions& options,
                                   std::string_view value, Instant now);
  /// Stores a large value, which is filled; takes its pieces when it does. nullopt: as above.
  std::optional<StoreResult> store(const Key& key, const StoreOptions& options, PendingValue& value,
                                   Instant now);
  DeleteResult remove(const Key& key, const DeleteOptions& options, Instant now);
  ArithResult add_delta(const Key& key, const ArithOptions& options, Instant now);

  // For store/store.h, which says more.

  void copy(const Key& key, Instant now, ItemCopy& copy);
  /// `value` is at most kInlineBytesMax long.
  EditStatus replace(const Key& key, const ItemCopy& copy, const EditOptions& options,
                     std::string_view value, Instant now);
  /// Takes the pieces of `value`, which is filled, when it is Done.
  EditStatus replace(const Key& key, const ItemCopy& copy, const EditOptions& options,
                     PendingValue& value, Instant now);
  EditStatus remove_copied(const Key& key, const ItemCopy& copy, Instant now);
  EditStatus set_exptime(const Key& key, const ItemCopy& copy, Instant exptime, Instant now);

  /// What append and prepend to a large value start from.
  struct JoinBase {
    StoreStatus status = StoreStatus::Stored;  // Not Stored: the operation ends with this.
    ItemCopy item;
  };
  void begin_join(const Key& key, const StoreOptions& options, Instant now, JoinBase& base);
  /// Stores `joined` if the item still is what `base` says; nullopt: it is not, begin again.
  std::optional<StoreResult> finish_join(const Key& key, const StoreOptions& options,
                                         const JoinBase& base, PendingValue& joined, Instant now);

  /// A chain of up to `count` pieces, or null when there is no memory.
  Piece* acquire_pieces(std::size_t count, Instant now);
  void release_pieces(Piece* first);
  void drop_reader(Piece* first);
  /// Called under the lock, by a visitor.
  static ItemRef pin(Shard& shard, Piece* first) noexcept;

  /// Shows the live items of bucket `number` of the index; false when there is no such bucket.
  bool visit_bucket(std::size_t number, Instant now, ItemVisitor visit);
  std::size_t bucket_count();
  void set_observer(EvictionObserver* observer);

  /// Hides everything stored so far, at `when`; kNever or what has passed: now.
  void flush(Instant when, Instant now);
  void maintain(Instant now);
  void set_frames_max(std::size_t frames_max);
  std::size_t frames_max();
  StoreStats stats();
  void reset_counters();
  /// The CAS unique that comes next.
  std::uint64_t next_cas();
  /// Goes on above `cas`.
  void raise_cas(std::uint64_t cas);

 private:
  enum class Verdict : std::uint8_t { Store, Join, Refuse };
  struct Decision {
    Verdict verdict = Verdict::Store;
    StoreStatus status = StoreStatus::Stored;  // Of a refusal.
    bool is_stale = false;                     // Stored by a lower CAS.
  };
  struct NewRecord;

  void on_time(Instant now) KVF_REQUIRES(lock_);
  Slot find(const Key& key, Instant now, Miss& miss) KVF_REQUIRES(lock_);
  std::uint64_t cas_or_next(std::uint64_t wanted) KVF_REQUIRES(lock_);
  void use(Slot& slot, Instant now) KVF_REQUIRES(lock_);
  static Decision decide(const Record* old, const StoreOptions& options);
  /// Puts `item` in the place of what `slot` holds, or anew; empty: no memory. Nothing of `item`
  /// may lie in the store.
  Slot put(const Key& key, Slot slot, const NewRecord& item, Instant now) KVF_REQUIRES(lock_);
  static void fill(Record& record, const Key& key, const NewRecord& item, Instant now);
  Slot give_exptime(const Key& key, Slot slot, Instant exptime, Instant now) KVF_REQUIRES(lock_);
  Slot give_cas(const Key& key, Slot slot, std::uint64_t cas, Instant now) KVF_REQUIRES(lock_);
  ItemView view_of(const Record& record, Instant now);
  void fill_copy(const Record& record, ItemCopy& copy) KVF_REQUIRES(lock_);
  static bool has_same_value(const Record& record, const ItemCopy& copy);
  static bool is_same(const Slot& slot, const ItemCopy& copy);
  EditStatus edit(const Key& key, const ItemCopy& copy, const EditOptions& options, NewRecord item,
                  Instant now);
  /// What is stored when `decision` says so: the options, and what is kept of `old`.
  static NewRecord new_record(const Record* old, const StoreOptions& options,
                              const Decision& decision);
  StoreResult finish(const Key& key, Slot slot, NewRecord& item, const StoreOptions& options,
                     Instant now) KVF_REQUIRES(lock_);
  StoreResult refuse(Slot slot, const StoreOptions& options, const Decision& decision,
                     std::uint64_t value_bytes, Instant now) KVF_REQUIRES(lock_);
  ArithResult create_number(const Key& key, const ArithOptions& options, Instant exptime,
                            Instant now) KVF_REQUIRES(lock_);
  ArithResult write_number(const Key& key, Slot slot, const ArithOptions& options,
                           std::uint64_t number, Instant now) KVF_REQUIRES(lock_);

  ShardLock lock_;
  ItemSpace space_ KVF_GUARDED_BY(lock_);
  Instant flush_at_ KVF_GUARDED_BY(lock_) = kNever;
  std::uint64_t cas_next_ KVF_GUARDED_BY(lock_);
  const std::uint64_t cas_step_;
};

}  // namespace kvferry::store
