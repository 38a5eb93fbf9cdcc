#include "store/item_space.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace kvferry::store {

namespace {

/// A ghost entry for so many bytes of memory.
constexpr std::size_t kBytesPerGhost = 256;

}  // namespace

ItemSpace::ItemSpace(FramePool& frames, std::size_t frames_max, bool is_evicting)
    : frames_(frames),
      is_evicting_(is_evicting),
      index_(segments_),
      ghost_(frames_max * kFrameBytes / kBytesPerGhost) {
  set_frames_max(frames_max);
}

ItemSpace::~ItemSpace() {
  // The pool unmaps the frames; only the hooks in them have to be let go of.
  for (SegmentQueue& each : queues_) {
    while (Segment* segment = each.segments.pop_front()) {
      LivenessIndex::remove(*segment);
    }
  }
}

Slot ItemSpace::find(const Key& key, Instant now) noexcept {
  const Slot slot = index_.find(key);
  return slot && !remove_if_gone(key, slot, now) ? slot : Slot{};
}

bool ItemSpace::remove_if_gone(const Key& key, const Slot& slot, Instant now) noexcept {
  const Record& record = slot.record();
  const bool is_out = is_expired(record, now);
  if (!is_out && !is_flushed(record)) {
    return false;
  }
  if (is_out && !record.has(kFetched)) {
    ++counts_.expired_unfetched;
  }
  remove(key, slot);
  return true;
}

bool ItemSpace::has_room(QueueName name, std::size_t bytes) const noexcept {
  return has_open_room(name, bytes) && !index_.wants_frame();
}

bool ItemSpace::has_open_room(QueueName name, std::size_t bytes) const noexcept {
  const Segment* open = queue(name).open;
  return open != nullptr && open->room_bytes() >= bytes;
}

bool ItemSpace::make_room(QueueName name, std::size_t bytes, Instant now) noexcept {
  while (index_.wants_frame()) {
    void* frame = acquire_frame(now);
    if (frame == nullptr) {
      // Longer chains will do, as long as there are overflow buckets.
      if (!index_.can_insert()) {
        return false;
      }
      break;
    }
    index_.add_frame(frame);
  }
  // Moving records to win memory may open a segment that has room as well: a second one would leave
  // it half empty.
  Walk walk;
  while (!has_open_room(name, bytes)) {
    if (void* frame = try_acquire_frame(Purpose::Growth); frame != nullptr) {
      open_segment(name, frame);
    } else if (!reclaim(walk, now)) {
      return false;
    }
  }
  return true;
}

Record& ItemSpace::append(QueueName name, const RecordShape& shape) noexcept {
  Record& record = place(name, Record::total_bytes_of(shape),
                         Record::pieces_of(shape.value_bytes) * kPieceTotalBytes);
  record.begin(shape);
  ++counts_.total_items;
  return record;
}

Slot ItemSpace::add(const Key& key, Record& record) noexcept {
  note_exptime(record);
  return index_.insert(key, record);
}

void ItemSpace::replace(Slot& slot, Record& record) noexcept {
  Record& old = slot.record();
  note_exptime(record);
  index_.set_record(slot, record);
  if (old.has(kLarge)) {
    release_chain(old.first_piece());
  }
  bury(old);
}

void ItemSpace::remove(const Key& key, const Slot& slot) noexcept {
  Record& record = slot.record();
  hidden_items_ -= is_flushed(record) ? 1 : 0;
  index_.erase(key, slot);
  if (record.has(kLarge)) {
    release_chain(record.first_piece());
  }
  bury(record);
}

Slot ItemSpace::reshape(const Key& key, Slot slot, const RecordShape& shape, Instant now) noexcept {
  const QueueName name = Segment::of(slot.record()).queue;
  const std::size_t bytes = Record::total_bytes_of(shape);
  if (!has_room(name, bytes)) {
    slot = make_room(name, bytes, now) ? find(key, now) : Slot{};
    if (!slot) {
      return {};
    }
  }
  Record& old = slot.record();
  Record& record = append(name, shape);
  --counts_.total_items;  // The same item in another place.
  record.copy_from(old);
  note_exptime(record);
  index_.set_record(slot, record);
  bury(old);
  return slot;
}

void ItemSpace::release_chain(Piece* first) noexcept {
  if (first != nullptr && first->readers > 0) {
    first->is_orphan = 1;
    return;
  }
  while (first != nullptr) {
    Piece* const next = first->next;
    if (void* frame = pieces_.release(first); frame != nullptr) {
      keep_frame(frame);
    }
    first = next;
  }
}

void ItemSpace::drop_reader(Piece* first) noexcept {
  if (--first->readers == 0 && first->is_orphan != 0) {
    release_chain(first);
  }
}

Record& ItemSpace::place(QueueName name, std::size_t record_bytes,
                         std::size_t pieces_bytes) noexcept {
  SegmentQueue& into = queue(name);
  Segment& segment = *into.open;
  KVF_DCHECK(segment.room_bytes() >= record_bytes);
  Record& record = *segment.record_at(segment.end_bytes);
  segment.end_bytes += static_cast<std::uint32_t>(record_bytes);
  segment.live_bytes += static_cast<std::uint32_t>(record_bytes);
  into.piece_bytes += pieces_bytes;
  counts_.bytes += record_bytes + pieces_bytes;
  return record;
}

void ItemSpace::bury(Record& record) noexcept {
  Segment& segment = Segment::of(record);
  const std::size_t record_bytes = record.total_bytes();
  const std::size_t pieces_bytes = record.pieces_bytes();
  record.set(kDead);
  segment.live_bytes -= static_cast<std::uint32_t>(record_bytes);
  queue(segment.queue).piece_bytes -= pieces_bytes;
  counts_.bytes -= record_bytes + pieces_bytes;
  if (segment.is_open) {
    return;
  }
  if (segment.live_bytes == 0) {
    free_segment(segment);
  } else if (!segment.is_walked) {
    liveness_.update(segment);
  }
}

bool ItemSpace::relocate(Slot slot, QueueName name, unsigned uses) noexcept {
  Record& old = slot.record();
  const std::size_t bytes = old.total_bytes();
  if (!has_open_room(name, bytes)) {
    void* frame = try_acquire_frame(Purpose::Moving);
    if (frame == nullptr) {
      return false;
    }
    open_segment(name, frame);
  }
  Record& record = place(name, bytes, old.pieces_bytes());
  std::memcpy(static_cast<void*>(&record), &old, bytes);
  note_exptime(record);
  index_.set_record(slot, record);
  slot.set_uses(uses);
  bury(old);
  return true;
}

void ItemSpace::open_segment(QueueName name, void* frame) noexcept {
  SegmentQueue& into = queue(name);
  close_open_segment(into);
  into.open = std::construct_at(static_cast<Segment*>(frame), name, generation_);
  segments_.add(*into.open);
  into.segments.push_back(*into.open);
  ++into.segment_count;
}

void ItemSpace::close_open_segment(SegmentQueue& from) noexcept {
  Segment* const segment = from.open;
  if (segment == nullptr) {
    return;
  }
  from.open = nullptr;
  segment->is_open = false;
  if (segment->live_bytes == 0) {
    free_segment(*segment);
  } else if (!segment->is_walked) {
    liveness_.add(*segment);
  }
}

void ItemSpace::free_segment(Segment& segment) noexcept {
  SegmentQueue& from = queue(segment.queue);
  if (crawled_ == &segment) {
    crawled_ = from.segments.next(segment);
  }
  if (from.walked == &segment) {
    from.walked = nullptr;
  }
  LivenessIndex::remove(segment);
  static_cast<base::ListHook<FifoTag>&>(segment).unlink();
  --from.segment_count;
  flushed_segments_ -= segment.generation != generation_ ? 1 : 0;
  segments_.remove(segment);
  segment.~Segment();
  keep_frame(&segment);
}

void ItemSpace::keep_frame(void* frame) noexcept {
  free_ = std::construct_at(static_cast<FreeFrame*>(frame), free_);
  ++free_count_;
}

void ItemSpace::flush() noexcept {
  // No segment holds records of two generations.
  for (SegmentQueue& each : queues_) {
    close_open_segment(each);
  }
  flushed_segments_ = queues_[0].segment_count + queues_[1].segment_count;
  hidden_items_ = index_.size();
  if (++generation_ != 0) {
    return;
  }
  // The numbers are used up: drop everything for real, so that they can begin anew.
  remove_all();
  generation_ = 1;
}

void ItemSpace::set_frames_max(std::size_t frames_max) {
  frames_max_ = frames_max - std::min(frames_max / 2, frames_of_ghost());
  segments_.reserve(frames_max);
}

StoreStats ItemSpace::stats() const noexcept {
  StoreStats stats = counts_;
  stats.curr_items = index_.size();
  stats.hidden_items = hidden_items_;
  stats.limit_maxbytes = (frames_max_ + frames_of_ghost()) * kFrameBytes;
  stats.allocated_bytes = (frames_held_ + frames_of_ghost()) * kFrameBytes;
  stats.index_bytes = index_.frame_count() * kFrameBytes;
  stats.index_buckets = index_.bucket_count();
  return stats;
}

void ItemSpace::reset_counters() noexcept {
  const std::uint64_t bytes = counts_.bytes;
  counts_ = StoreStats{};
  counts_.bytes = bytes;
}

}  // namespace kvferry::store
