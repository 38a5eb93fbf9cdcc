// The memory of a shard: index, log of records, pieces of large values, and who has to go when it
// is full.
//
// Eviction is S3-FIFO on a log. New items are appended to the Small queue; when space is needed the
// oldest segment of Small is walked: items used meanwhile are copied to Main, the others leave and
// are remembered by the ghost, which sends them to Main directly when they come back. Items of Main
// get another round for each recorded use. Since both queues are logs, walking is also what
// defrags: there are no size classes between which memory would have to move. Overwrites leave dead
// records; before anything good is evicted, segments that are mostly dead are compacted.
//
// Limits:    every frame (records, pieces, index) and the ghost count against frames_max. Work per
// call is bounded: after kWalkMax records a walk drops what it meets. Threads:   guarded by the
// lock of the shard.
#pragma once

#include <cstddef>
#include <cstdint>

#include "store/frame_pool.h"
#include "store/ghost.h"
#include "store/index.h"
#include "store/operations.h"
#include "store/piece_set.h"
#include "store/segment.h"
#include "store/segment_table.h"
#include "store/store_stats.h"

namespace kvferry::store {

class ItemSpace {
 public:
  /// `frames` must outlive the space. `is_evicting` false: good items stay and new ones are
  /// refused.
  ItemSpace(FramePool& frames, std::size_t frames_max, bool is_evicting);
  ItemSpace(const ItemSpace&) = delete;
  ItemSpace& operator=(const ItemSpace&) = delete;
  ~ItemSpace();

  /// Finds an item that is neither dead, expired nor flushed; one that is leaves now.
  Slot find(const Key& key, Instant now) noexcept;
  /// Removes the item of `slot` when it has expired or was flushed; returns whether it had.
  bool remove_if_gone(const Key& key, const Slot& slot, Instant now) noexcept;
  bool is_expired(const Record& record, Instant now) const noexcept {
    return has_passed(record.exptime(), now);
  }
  bool is_flushed(const Record& record) const noexcept {
    return flushed_segments_ > 0 && Segment::of(record).generation != generation_;
  }
  Index& index() noexcept { return index_; }

  /// Where an item that is not in the index has to go; forgets that it was evicted.
  QueueName queue_of_new(const Key& key) noexcept {
    return ghost_.take(key) ? QueueName::Main : QueueName::Small;
  }
  /// Whether a record of `bytes` can be appended, and added to the index, without anything moving.
  bool has_room(QueueName queue, std::size_t bytes) const noexcept;
  /// Makes has_room() true by whatever it takes; every slot and record found before may have moved
  /// or gone. False: there is no memory.
  bool make_room(QueueName queue, std::size_t bytes, Instant now) noexcept;
  /// Appends an empty record with the lengths of `shape`; needs has_room(). The caller fills in the
  /// rest, then calls add() or replace().
  Record& append(QueueName queue, const RecordShape& shape) noexcept;
  Slot add(const Key& key, Record& record) noexcept;
  /// Puts `record` in the place of the item of `slot`, which dies.
  void replace(Slot& slot, Record& record) noexcept;
  void remove(const Key& key, const Slot& slot) noexcept;
  /// Moves the item of `slot` to a record of `shape`, which has more fields. Returns its slot, an
  /// empty one when there is no memory or the item went to make some.
  Slot reshape(const Key& key, Slot slot, const RecordShape& shape, Instant now) noexcept;
  /// Call after `record` got another exptime in place.
  static void note_exptime(Record& record) noexcept {
    Segment::of(record).note_exptime(record.exptime());
  }
  /// Call after `record` was overwritten by a new item of the same length.
  void note_overwritten(Record& record) noexcept {
    note_exptime(record);
    ++counts_.total_items;
  }

  /// A piece, or null when there is no memory for it.
  Piece* acquire_piece(Instant now) noexcept;
  void release_chain(Piece* first) noexcept;
  /// Releases the chain when its item is gone and `first` has no reader any more.
  void drop_reader(Piece* first) noexcept;

  /// Hides everything stored so far.
  void flush() noexcept;
  /// Frees what is dead, within a bound; gives frames above the limit back.
  void maintain(Instant now) noexcept;
  void set_frames_max(std::size_t frames_max);
  std::size_t frames_max() const noexcept { return frames_max_; }

  /// Null: nobody is told of evictions.
  void set_observer(EvictionObserver* observer) noexcept { observer_ = observer; }

  StoreStats stats() const noexcept;
  void reset_counters() noexcept;

 private:
  struct FreeFrame {
    FreeFrame* next;
  };
  /// One search for memory.
  struct Walk {
    std::size_t records = 0;  // Looked at so far.
  };
  /// What a frame is taken for; the last ones are kept for moving records.
  enum class Purpose : std::uint8_t { Growth, Moving };

  SegmentQueue& queue(QueueName name) noexcept { return queues_[static_cast<std::size_t>(name)]; }
  const SegmentQueue& queue(QueueName name) const noexcept {
    return queues_[static_cast<std::size_t>(name)];
  }

  // Frames.
  /// What the ghost takes from the limit; a small one is not worth a frame.
  std::size_t frames_of_ghost() const noexcept {
    return (ghost_.size_bytes() + kFrameBytes / 2) / kFrameBytes;
  }
  std::size_t frames_reserved() const noexcept;
  std::size_t frames_available() const noexcept;
  void* try_acquire_frame(Purpose purpose) noexcept;
  void* acquire_frame(Instant now) noexcept;
  void keep_frame(void* frame) noexcept;
  bool return_free_frame() noexcept;
  bool reclaim(Walk& walk, Instant now) noexcept;

  // The log.
  bool has_open_room(QueueName name, std::size_t bytes) const noexcept;
  void open_segment(QueueName name, void* frame) noexcept;
  void close_open_segment(SegmentQueue& queue) noexcept;
  void free_segment(Segment& segment) noexcept;
  Record& place(QueueName name, std::size_t record_bytes, std::size_t pieces_bytes) noexcept;
  void bury(Record& record) noexcept;
  bool relocate(Slot slot, QueueName name, unsigned uses) noexcept;

  // Who has to go.
  SegmentQueue* queue_to_evict() noexcept;
  bool walk_next(SegmentQueue& from, Walk& walk, Instant now) noexcept;
  void judge(Record& record, bool is_forced, Instant now) noexcept;
  bool compact(Instant now) noexcept;
  bool compact_segment(Segment& segment, Instant now) noexcept;
  void crawl(Instant now) noexcept;
  void crawl_segment(Segment& segment, Instant now) noexcept;
  void shrink(Instant now) noexcept;
  void remove_all() noexcept;

  FramePool& frames_;
  std::size_t frames_max_ = 0;
  std::size_t frames_held_ = 0;
  std::size_t free_count_ = 0;
  std::size_t free_low_ = 0;  // Fewest free frames since the last maintain().
  FreeFrame* free_ = nullptr;
  bool is_evicting_;
  EvictionObserver* observer_ = nullptr;
  std::uint16_t generation_ = 1;
  std::size_t flushed_segments_ = 0;  // Those of an older generation.
  std::size_t hidden_items_ = 0;      // What is in them.

  SegmentTable segments_;
  Index index_;
  Ghost ghost_;
  PieceSet pieces_;
  SegmentQueue queues_[2];
  LivenessIndex liveness_;
  Segment* crawled_ = nullptr;  // Where the crawl goes on, in crawled_queue_.
  QueueName crawled_queue_ = QueueName::Main;

  StoreStats counts_;
};

}  // namespace kvferry::store
