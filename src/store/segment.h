// Segments: frames that records are appended to, and the queues they form.
//
//   frame: | segment header | record | record | ... | unused |
//                                                   ^ end_bytes
//
// A queue is a FIFO of segments, the newest one being open for records. Eviction walks the oldest
// one record by record. Records die in place; a closed segment is filed by how much of it still
// lives, so that compaction finds the emptiest at once, and goes away when nothing lives in it.
// Threads: guarded by the lock of the shard.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/intrusive_list.h"
#include "store/frame_pool.h"
#include "store/record.h"

namespace kvferry::store {

/// Which queue of S3-FIFO: new items enter Small, those that proved useful live in Main.
enum class QueueName : std::uint8_t { Small, Main };

/// Later than every exptime.
inline constexpr std::uint32_t kNoExptime = std::numeric_limits<std::uint32_t>::max();

struct FifoTag;
struct LiveTag;

/// Can be in the list of its queue, and in one list by liveness.
struct Segment : base::ListHook<FifoTag>, base::ListHook<LiveTag> {
  Segment(QueueName name, std::uint16_t segment_generation) noexcept
      : generation(segment_generation), queue(name) {}

  static Segment& of(const Record& record) noexcept {
    return *static_cast<Segment*>(frame_of(&record));
  }
  Record* record_at(std::size_t at) noexcept {
    return reinterpret_cast<Record*>(reinterpret_cast<char*>(this) + at);
  }
  std::size_t room_bytes() const noexcept { return kFrameBytes - end_bytes; }
  /// Keeps the bound when a record gets an exptime.
  void note_exptime(Instant exptime) noexcept {
    if (exptime != kNever && exptime.get() < exptime_min) {
      exptime_min = exptime.get();
    }
  }

  std::uint32_t end_bytes = kSegmentHeadBytes;
  std::uint32_t live_bytes = 0;
  std::uint32_t exptime_min = kNoExptime;  // No item goes earlier.
  std::uint32_t number = 0;                // In the table of the shard.
  std::uint16_t generation = 0;            // Of every record here: the number of flushes before it.
  QueueName queue;
  bool is_open = true;
  bool is_walked = false;       // Eviction has begun on it: compaction keeps away.
  std::uint8_t live_class = 0;  // Which list by liveness, while closed.

  static constexpr std::uint32_t kSegmentHeadBytes = 64;
};
static_assert(sizeof(Segment) <= Segment::kSegmentHeadBytes);
static_assert(kRecordBytesMax * 4 < kFrameBytes, "the end of a segment would be wasted");

using SegmentFifo = base::List<Segment, FifoTag>;

/// One queue: its segments from the oldest to the newest.
struct SegmentQueue {
  SegmentFifo segments;
  Segment* open = nullptr;       // Where records are appended; the newest.
  Segment* walked = nullptr;     // Where eviction is, if that is still the oldest.
  std::size_t walked_bytes = 0;  // How far it has got there.
  std::size_t segment_count = 0;
  std::size_t piece_bytes = 0;  // Of pieces of the items in here.

  /// Memory that eviction from this queue can win.
  std::size_t footprint_bytes() const noexcept { return segment_count * kFrameBytes + piece_bytes; }
};

/// Closed segments by eighths of a frame that live.
class LivenessIndex {
 public:
  ~LivenessIndex() {
    for (auto& list : lists_) {
      while (list.pop_front() != nullptr) {
      }
    }
  }

  void add(Segment& segment) noexcept {
    segment.live_class = class_of(segment);
    lists_[segment.live_class].push_back(segment);
  }
  /// Call after live_bytes of a closed segment has changed.
  void update(Segment& segment) noexcept {
    if (class_of(segment) != segment.live_class) {
      remove(segment);
      add(segment);
    }
  }
  static void remove(Segment& segment) noexcept {
    static_cast<base::ListHook<LiveTag>&>(segment).unlink();
  }
  /// The emptiest closed segment with at most `eighths_max` eighths alive, or null.
  Segment* emptiest(std::size_t eighths_max) noexcept {
    for (std::size_t i = 0; i < eighths_max; ++i) {
      if (Segment* segment = lists_[i].front(); segment != nullptr) {
        return segment;
      }
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t kClasses = 8;
  static std::uint8_t class_of(const Segment& segment) noexcept {
    return static_cast<std::uint8_t>(std::size_t{segment.live_bytes} * kClasses / kFrameBytes);
  }
  std::array<base::List<Segment, LiveTag>, kClasses> lists_;
};

}  // namespace kvferry::store
