// Index of a shard: from a key to its record, 8 bytes a slot, by linear hashing.
//
// Buckets are one cache line: seven slots and a link to an overflow bucket. When the load passes a
// bound, an insertion splits the one bucket whose turn it is, so there is no rehash pause and no
// second table. A slot packs
//
//   63         48  47     46  45 44                         0
//   +------------+-------+------+---------------------------+
//   | tag        | spare | uses | address of the record / 8 |    0: empty
//   +------------+-------+------+---------------------------+
//
// The uses (0..3) are what eviction goes by; they lie here so that a read does not have to write
// into the record for them. The spare bit will tell records whose value lies on flash.
// Memory:    frames that add_frame() brings; never given back while the index lives.
// Threads:   guarded by the lock of the shard.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "store/frame_pool.h"
#include "store/key.h"
#include "store/record.h"

namespace kvferry::store {

inline constexpr unsigned kUsesMax = 3;

class Slot {
 public:
  bool is_empty() const noexcept { return word_ == 0; }
  Record* record() const noexcept {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses are packed on purpose
    return reinterpret_cast<Record*>((word_ & kAddressMask) << 3);
  }
  std::uint64_t tag() const noexcept { return word_ >> kTagShift; }
  unsigned uses() const noexcept { return static_cast<unsigned>(word_ >> kUsesShift) & kUsesMax; }

  void fill(Record* record, std::uint64_t tag, unsigned uses) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(record) >> 3;
    KVF_DCHECK((address & ~kAddressMask) == 0);
    word_ = (tag << kTagShift) | (std::uint64_t{uses} << kUsesShift) | address;
  }
  void set_record(Record* record) noexcept { fill(record, tag(), uses()); }
  void set_uses(unsigned uses) noexcept { fill(record(), tag(), uses); }
  void add_use() noexcept {
    if (uses() < kUsesMax) {
      word_ += std::uint64_t{1} << kUsesShift;
    }
  }
  void clear() noexcept { word_ = 0; }

 private:
  static constexpr unsigned kUsesShift = 45;
  static constexpr unsigned kTagShift = 48;
  static constexpr std::uint64_t kAddressMask = (std::uint64_t{1} << kUsesShift) - 1;
  std::uint64_t word_ = 0;
};

class Index {
 public:
  Index() = default;
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  /// Whether insertions want another frame. They go on without one for a while (longer chains),
  /// until can_insert() is false.
  bool wants_frame() const noexcept;
  bool can_insert() const noexcept { return !buckets_.empty() && spare_count_ > 0; }
  void add_frame(void* frame) noexcept;

  /// The slot of `key`, or null.
  Slot* find(const Key& key) noexcept;
  /// The slot that holds `record`, which has `key`; never null for a record that is in the index.
  Slot* find_record(const Key& key, const Record* record) noexcept;
  /// Adds a record whose key is not there. Needs can_insert(). Slots found before are no longer
  /// valid.
  Slot* insert(const Key& key, Record* record, unsigned uses) noexcept;
  /// Removes `slot`, which holds a record with `key`. Other slots of its bucket may move.
  void erase(const Key& key, Slot* slot) noexcept;

  /// Calls `visit` with each slot of bucket `number`, which is below bucket_count(); it may change
  /// nothing. An item is in one bucket; when buckets are split in between it may be met twice.
  template <typename Visit>
  void for_each_in(std::size_t number, const Visit& visit) noexcept {
    for (Bucket* bucket = &bucket_at(number); bucket != nullptr; bucket = bucket->overflow) {
      for (const Slot& slot : bucket->slots) {
        if (!slot.is_empty()) {
          visit(slot);
        }
      }
    }
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t bucket_count() const noexcept { return bucket_count_; }
  std::size_t frame_count() const noexcept { return frame_count_; }

 private:
  static constexpr std::size_t kSlotsPerBucket = 7;
  struct alignas(64) Bucket {
    std::array<Slot, kSlotsPerBucket> slots;
    Bucket* overflow = nullptr;
  };
  static_assert(sizeof(Bucket) == 64);
  static constexpr std::size_t kBucketsPerFrame = kFrameBytes / sizeof(Bucket);
  /// Buckets of an empty index; a power of two.
  static constexpr std::size_t kBucketsMin = 64;
  /// Slots in use of 16 at which buckets are split.
  static constexpr std::size_t kLoadMaxSixteenths = 14;
  /// Below this many spare overflow buckets another frame is wanted.
  static constexpr std::size_t kSparesLow = 16;

  Bucket& bucket_at(std::size_t number) noexcept {
    return buckets_[number / kBucketsPerFrame][number % kBucketsPerFrame];
  }
  Bucket& bucket_of(std::uint64_t hash) noexcept;
  bool is_split_due() const noexcept {
    return size_ * 16 > bucket_count_ * kSlotsPerBucket * kLoadMaxSixteenths;
  }
  bool has_bucket_space() const noexcept {
    return bucket_count_ < buckets_.size() * kBucketsPerFrame;
  }
  Slot* empty_slot(Bucket& bucket) noexcept;
  void split_next() noexcept;
  Bucket* acquire_spare() noexcept;
  void release_spare(Bucket* bucket) noexcept;

  std::vector<Bucket*> buckets_;   // One entry a frame of buckets.
  std::size_t bucket_count_ = 0;   // Buckets in use: level_buckets_ + split_next_.
  std::size_t level_buckets_ = 0;  // Power of two; buckets before split_at_ are already split.
  std::size_t split_at_ = 0;
  std::size_t size_ = 0;
  Bucket* spares_ = nullptr;  // Overflow buckets that nobody uses.
  std::size_t spare_count_ = 0;
  std::size_t frame_count_ = 0;
};

}  // namespace kvferry::store
