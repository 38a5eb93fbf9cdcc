// Index of a shard: from a key to its record, 6 bytes a slot, by linear hashing.
//
// Buckets are one cache line: ten slots and a link to an overflow bucket. When there are more items
// than slots in the buckets proper, an insertion splits the one bucket whose turn it is, so there
// is no rehash pause and no second table. A slot is a place (segment_table.h) and a word
//
//   15         3      2    1    0
//   +----------+-------+------+
//   | tag      | spare | uses |
//   +----------+-------+------+
//
// The tag is 13 bits of the hash. The uses (0..3) are what eviction goes by; they lie here so that
// a read does not have to write into the record for them. The spare bit will tell records whose
// value lies on flash. Memory:    frames that add_frame() brings; never given back while the index
// lives. Threads:   guarded by the lock of the shard.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "store/frame_pool.h"
#include "store/key.h"
#include "store/record.h"
#include "store/segment_table.h"

namespace kvferry::store {

inline constexpr unsigned kUsesMax = 3;

/// A cache line of the index.
struct alignas(64) IndexBucket {
  static constexpr std::size_t kSlots = 10;
  static constexpr unsigned kTagShift = 3;
  static constexpr unsigned kUsesMask = kUsesMax;

  std::array<Place, kSlots> places{};  // kNowhere: the slot is empty; used slots come first.
  std::array<std::uint16_t, kSlots> words{};
  std::uint32_t overflow = 0;  // Number of the next bucket of the chain, plus one; 0: none.

  /// Of a key, in the bits where the words have theirs.
  static std::uint16_t tag_of(const Key& key) noexcept {
    return static_cast<std::uint16_t>(key.tag() << kTagShift);
  }
  bool has_tag(std::size_t at, std::uint16_t tag) const noexcept {
    return static_cast<std::uint16_t>(words[at] & ~((1U << kTagShift) - 1)) == tag;
  }
  unsigned uses(std::size_t at) const noexcept { return words[at] & kUsesMask; }
};
static_assert(sizeof(IndexBucket) == 64);

/// Where the index has an item, with its record; empty when there is none. Good until the index
/// changes.
class Slot {
 public:
  Slot() = default;
  Slot(IndexBucket& bucket, std::size_t at, Record& record) noexcept
      : bucket_(&bucket), record_(&record), at_(at) {}

  explicit operator bool() const noexcept { return bucket_ != nullptr; }
  Record& record() const noexcept { return *record_; }
  unsigned uses() const noexcept { return bucket_->uses(at_); }
  void set_uses(unsigned uses) noexcept {
    bucket_->words[at_] = static_cast<std::uint16_t>(
        (bucket_->words[at_] & ~IndexBucket::kUsesMask) | (uses & IndexBucket::kUsesMask));
  }
  void add_use() noexcept {
    if (uses() < kUsesMax) {
      ++bucket_->words[at_];
    }
  }

 private:
  friend class Index;

  IndexBucket* bucket_ = nullptr;
  Record* record_ = nullptr;
  std::size_t at_ = 0;
};

class Index {
 public:
  /// `segments` resolves places, and outlives the index.
  explicit Index(const SegmentTable& segments) noexcept : segments_(segments) {}
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  /// Whether insertions want another frame. They go on without one for a while (longer chains),
  /// until can_insert() is false.
  bool wants_frame() const noexcept;
  bool can_insert() const noexcept { return !buckets_.empty() && spare_count_ > 0; }
  void add_frame(void* frame);

  /// The slot of `key`, or an empty one.
  Slot find(const Key& key) noexcept;
  /// The slot that holds `record`, which has `key` and is in the index.
  Slot find_record(const Key& key, Record& record) noexcept;
  /// Adds a record whose key is not there. Needs can_insert(). Slots found before are no longer
  /// valid.
  Slot insert(const Key& key, Record& record) noexcept;
  /// Puts another record with the same key in its place; the uses stay.
  void set_record(Slot& slot, Record& record) noexcept;
  /// Removes `slot`, which holds a record with `key`. Other slots of its bucket may move.
  void erase(const Key& key, const Slot& slot) noexcept;

  /// Calls `visit` with each record of bucket `number`, which is below bucket_count(); it may
  /// change nothing. An item is in one bucket; when buckets are split in between it may be met
  /// twice.
  template <typename Visit>
  void for_each_in(std::size_t number, const Visit& visit) noexcept {
    for (IndexBucket* bucket = &bucket_at(number); bucket != nullptr; bucket = next_of(*bucket)) {
      for (const Place place : bucket->places) {
        if (place != kNowhere) {
          visit(segments_.record_at(place));
        }
      }
    }
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t bucket_count() const noexcept { return bucket_count_; }
  std::size_t frame_count() const noexcept { return buckets_.size() + overflows_.size(); }

 private:
  static constexpr std::size_t kBucketsPerFrame = kFrameBytes / sizeof(IndexBucket);
  /// Buckets of an empty index; a power of two.
  static constexpr std::size_t kBucketsMin = 64;
  /// Items for each ten slots of the buckets proper at which buckets are split. A bucket whose turn
  /// is still to come holds up to twice that, so the last ones have an overflow bucket, which is
  /// what the memory goes for: 9 bytes an item at 10, where 8.5 takes 9.6 and 12 takes 8.7.
  static constexpr std::size_t kLoadMaxTenths = 10;
  /// Below this many spare overflow buckets another frame is wanted.
  static constexpr std::size_t kSparesLow = 16;

  using Frames = std::vector<IndexBucket*>;

  static IndexBucket& bucket_in(const Frames& frames, std::size_t number) noexcept {
    return frames[number / kBucketsPerFrame][number % kBucketsPerFrame];
  }
  IndexBucket& bucket_at(std::size_t number) const noexcept { return bucket_in(buckets_, number); }
  IndexBucket& bucket_of(std::uint64_t hash) const noexcept;
  IndexBucket* next_of(const IndexBucket& bucket) const noexcept {
    return bucket.overflow == 0 ? nullptr : &bucket_in(overflows_, bucket.overflow - 1);
  }
  bool is_split_due() const noexcept {
    return size_ * 10 > bucket_count_ * IndexBucket::kSlots * kLoadMaxTenths;
  }
  bool has_bucket_space() const noexcept {
    return bucket_count_ < buckets_.size() * kBucketsPerFrame;
  }
  struct Vacancy {
    IndexBucket* bucket = nullptr;
    std::size_t at = 0;
  };
  Vacancy find_vacancy(IndexBucket& first) noexcept;
  void split_next() noexcept;
  std::uint32_t acquire_spare() noexcept;
  void release_spare(std::uint32_t link) noexcept;

  const SegmentTable& segments_;
  Frames buckets_;                 // One entry a frame of buckets proper.
  Frames overflows_;               // One entry a frame of overflow buckets.
  std::size_t bucket_count_ = 0;   // Buckets in use: level_buckets_ + split_at_.
  std::size_t level_buckets_ = 0;  // Power of two; buckets before split_at_ are already split.
  std::size_t split_at_ = 0;
  std::size_t size_ = 0;
  std::uint32_t spares_ = 0;  // Overflow buckets that nobody uses, as a chain.
  std::size_t spare_count_ = 0;
};

}  // namespace kvferry::store
