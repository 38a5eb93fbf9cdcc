// Who has to go: the part of ItemSpace that wins memory back.
#include <algorithm>

#include "store/item_space.h"

namespace kvferry::store {

namespace {

/// Frames that only moving records may take, so that walks and compaction work when memory is full:
/// a walk in each queue and a compaction can each have one half filled at a time.
constexpr std::size_t kFramesReservedMin = 2;
constexpr std::size_t kFramesReservedMax = 4;
constexpr std::size_t kFramesPerReserved = 64;
/// Share of the memory that the Small queue is left with.
constexpr std::size_t kSmallPercent = 10;
/// Uses in the Small queue that move an item to Main.
constexpr unsigned kUsesToPromote = 2;
/// Records that one search for memory walks before it stops being choosy.
constexpr std::size_t kWalkMax = 4096;
/// Segments with more eighths alive than this are not worth compacting.
constexpr std::size_t kCompactEighthsMax = 5;
/// Work of one maintain() per shard.
constexpr std::size_t kCrawlSegmentsMax = 4;
constexpr std::size_t kCrawlHeadsMax = 128;
constexpr std::size_t kShrinkFramesMax = 64;

}  // namespace

std::size_t ItemSpace::frames_reserved() const noexcept {
  return std::clamp(frames_max_ / kFramesPerReserved, kFramesReservedMin, kFramesReservedMax);
}

std::size_t ItemSpace::frames_available() const noexcept {
  return free_count_ + (frames_max_ > frames_held_ ? frames_max_ - frames_held_ : 0);
}

void* ItemSpace::try_acquire_frame(Purpose purpose) noexcept {
  if (frames_available() <= (purpose == Purpose::Moving ? 0 : frames_reserved())) {
    return nullptr;
  }
  if (free_ != nullptr) {
    FreeFrame* const frame = free_;
    free_ = frame->next;
    --free_count_;
    free_low_ = std::min(free_low_, free_count_);
    return frame;
  }
  void* frame = frames_.acquire();
  if (frame != nullptr) {
    ++frames_held_;
  }
  return frame;
}

void* ItemSpace::acquire_frame(Instant now) noexcept {
  Walk walk;
  for (;;) {
    if (void* frame = try_acquire_frame(Purpose::Growth); frame != nullptr) {
      return frame;
    }
    if (!reclaim(walk, now)) {
      return nullptr;
    }
  }
}

Piece* ItemSpace::acquire_piece(Instant now) noexcept {
  Walk walk;
  for (;;) {
    if (Piece* piece = pieces_.try_acquire(); piece != nullptr) {
      return piece;
    }
    if (void* frame = try_acquire_frame(Purpose::Growth); frame != nullptr) {
      pieces_.add_frame(frame);
    } else if (!reclaim(walk, now)) {
      return nullptr;
    }
  }
}

bool ItemSpace::reclaim(Walk& walk, Instant now) noexcept {
  if (compact(now)) {
    return true;
  }
  SegmentQueue* const from = queue_to_evict();
  return is_evicting_ && from != nullptr && walk_next(*from, walk, now);
}

SegmentQueue* ItemSpace::queue_to_evict() noexcept {
  SegmentQueue& small = queue(QueueName::Small);
  SegmentQueue& main = queue(QueueName::Main);
  if (small.segments.empty()) {
    return main.segments.empty() ? nullptr : &main;
  }
  const std::size_t small_max = frames_max_ * kFrameBytes / 100 * kSmallPercent;
  return main.segments.empty() || small.footprint_bytes() > small_max ? &small : &main;
}

bool ItemSpace::walk_next(SegmentQueue& from, Walk& walk, Instant now) noexcept {
  Segment* const segment = from.segments.front();
  if (segment == nullptr) {
    return false;
  }
  if (from.walked != segment) {
    // Compaction would take what is left of it for new.
    LivenessIndex::remove(*segment);
    segment->is_walked = true;
    from.walked = segment;
    from.walked_bytes = Segment::kSegmentHeadBytes;
  }
  while (from.walked_bytes < segment->end_bytes) {
    Record& record = *segment->record_at(from.walked_bytes);
    from.walked_bytes += record.total_bytes();
    ++walk.records;
    if (!record.has(kDead)) {
      judge(record, walk.records > kWalkMax, now);
      return true;
    }
  }
  // Whatever lay before the walk is dead, so this can only be the open segment: a closed one leaves
  // with its last record.
  KVF_CHECK(segment->is_open && segment->live_bytes == 0);
  close_open_segment(from);
  return true;
}

void ItemSpace::judge(Record& record, bool is_forced, Instant now) noexcept {
  const Key key(record.key());
  const Slot slot = index_.find_record(key, record);
  if (remove_if_gone(key, slot, now)) {
    ++counts_.reclaimed;
    return;
  }
  const unsigned uses = slot.uses();
  if (Segment::of(record).queue == QueueName::Small) {
    if (uses >= kUsesToPromote && !is_forced && relocate(slot, QueueName::Main, 0)) {
      ++counts_.moves_to_main;
      return;
    }
    ghost_.add(key);
  } else if (uses > 0 && !is_forced && relocate(slot, QueueName::Main, uses - 1)) {
    ++counts_.moves_within_main;
    return;
  }
  ++counts_.evictions;
  counts_.evicted_unfetched += record.has(kFetched) ? 0 : 1;
  counts_.evicted_active += uses >= kUsesToPromote ? 1 : 0;
  if (observer_ != nullptr && observer_->wants()) [[unlikely]] {
    observer_->on_evicted(
        EvictedItem{.key = record.key(),
                    .value_bytes = static_cast<std::uint32_t>(record.value_bytes()),
                    .idle_seconds = record.idle_seconds(now),
                    .exptime = record.exptime(),
                    .was_fetched = record.has(kFetched)},
        now);
  }
  remove(key, slot);
}

bool ItemSpace::compact(Instant now) noexcept {
  if (frames_available() == 0) {
    return false;
  }
  Segment* const segment = liveness_.emptiest(kCompactEighthsMax);
  return segment != nullptr && compact_segment(*segment, now);
}

bool ItemSpace::compact_segment(Segment& segment, Instant now) noexcept {
  const QueueName name = segment.queue;
  std::size_t at = Segment::kSegmentHeadBytes;
  // The segment is gone once its last record has moved, so what is left is counted here.
  for (std::size_t left = segment.live_bytes; left > 0;) {
    Record& record = *segment.record_at(at);
    const std::size_t bytes = record.total_bytes();
    at += bytes;
    if (record.has(kDead)) {
      continue;
    }
    left -= bytes;
    const Key key(record.key());
    const Slot slot = index_.find_record(key, record);
    if (!remove_if_gone(key, slot, now) && !relocate(slot, name, slot.uses())) {
      return false;
    }
  }
  ++counts_.compacted_segments;
  return true;
}

void ItemSpace::maintain(Instant now) noexcept {
  crawl(now);
  shrink(now);
}

void ItemSpace::crawl(Instant now) noexcept {
  std::size_t walked = 0;
  for (std::size_t heads = 0; heads < kCrawlHeadsMax && walked < kCrawlSegmentsMax; ++heads) {
    if (crawled_ == nullptr) {
      crawled_queue_ = crawled_queue_ == QueueName::Small ? QueueName::Main : QueueName::Small;
      crawled_ = queue(crawled_queue_).segments.front();
      continue;
    }
    Segment& segment = *crawled_;
    if (segment.exptime_min <= now.get() || segment.generation != generation_) {
      crawl_segment(segment, now);
      ++walked;
    }
    if (crawled_ == &segment) {
      crawled_ = queue(crawled_queue_).segments.next(segment);
    }
  }
}

void ItemSpace::crawl_segment(Segment& segment, Instant now) noexcept {
  std::uint32_t exptime_min = kNoExptime;
  std::size_t at = Segment::kSegmentHeadBytes;
  for (std::size_t left = segment.live_bytes; left > 0;) {
    Record& record = *segment.record_at(at);
    const std::size_t bytes = record.total_bytes();
    at += bytes;
    if (record.has(kDead)) {
      continue;
    }
    left -= bytes;
    ++counts_.crawler_items_checked;
    if (is_expired(record, now) || is_flushed(record)) {
      ++counts_.crawler_reclaimed;
      const Key key(record.key());
      remove_if_gone(key, index_.find_record(key, record), now);
    } else if (const Instant exptime = record.exptime(); exptime != kNever) {
      exptime_min = std::min(exptime_min, exptime.get());
    }
  }
  // A closed segment that has lost its last record is gone, and the crawl has been moved on.
  if (crawled_ == &segment) {
    segment.exptime_min = exptime_min;
  }
}

void ItemSpace::shrink(Instant now) noexcept {
  Walk walk;
  std::size_t returned = 0;
  while (frames_held_ > frames_max_ && returned < kShrinkFramesMax) {
    if (return_free_frame()) {
      ++returned;
    } else if (!reclaim(walk, now)) {
      break;
    }
  }
  // What was free all the time since the last call is more than is needed: half of it goes.
  const std::size_t kept = frames_reserved();
  const std::size_t idle = free_low_ > kept ? (free_low_ - kept + 1) / 2 : 0;
  for (std::size_t i = 0; i < std::min(idle, kShrinkFramesMax); ++i) {
    return_free_frame();
  }
  free_low_ = free_count_;
}

bool ItemSpace::return_free_frame() noexcept {
  if (free_ == nullptr) {
    return false;
  }
  FreeFrame* const frame = free_;
  free_ = frame->next;
  --free_count_;
  --frames_held_;
  frames_.release(frame);
  return true;
}

void ItemSpace::remove_all() noexcept {
  for (SegmentQueue& each : queues_) {
    Walk walk;
    while (walk_next(each, walk, kLongAgo)) {
    }
  }
}

}  // namespace kvferry::store
