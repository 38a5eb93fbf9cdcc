#include "store/shard.h"

#include "base/check.h"
#include "store/new_record.h"

namespace kvferry::store {

Shard::Shard(FramePool& frames, const ShardOptions& options)
    : space_(frames, options.frames_max, options.is_evicting),
      cas_next_(options.cas_first),
      cas_step_(options.cas_step) {}

void Shard::on_time(Instant now) {
  if (flush_at_ != kNever && flush_at_ <= now) [[unlikely]] {
    flush_at_ = kNever;
    space_.flush();
  }
}

Slot Shard::find(const Key& key, Instant now, Miss& miss) {
  const Slot slot = space_.index().find(key);
  if (!slot) {
    miss = Miss::Absent;
    return {};
  }
  const Record& record = slot.record();
  if (space_.is_flushed(record)) [[unlikely]] {
    miss = Miss::Flushed;
  } else if (space_.is_expired(record, now)) [[unlikely]] {
    miss = Miss::Expired;
  } else {
    return slot;
  }
  space_.remove_if_gone(key, slot, now);
  return {};
}

std::uint64_t Shard::cas_or_next(std::uint64_t wanted) {
  if (wanted != 0) {
    return cas_step_ == 0 ? 0 : wanted;
  }
  const std::uint64_t cas = cas_next_;
  cas_next_ += cas_step_;
  return cas;
}

void Shard::use(Slot& slot, Instant now) {
  slot.add_use();
  slot.record().set_used_at(now);
}

ItemView Shard::view_of(const Record& record, Instant now) {
  return ItemView{
      .key = record.key(),
      .value = record.inline_value(),
      .cas = record.cas(),
      .value_bytes = static_cast<std::uint32_t>(record.value_bytes()),
      .client_flags = record.client_flags(),
      .idle_seconds = record.idle_seconds(now),
      .exptime = record.exptime(),
      .exptime_before = record.exptime(),
      .is_large = record.has(kLarge),
      .was_fetched = record.has(kFetched),
      .is_base64_key = record.has(kBase64Key),
      .is_stale = record.has(kStale),
      .was_won = record.has(kWon),
      .footprint_bytes = static_cast<std::uint32_t>(record.footprint_bytes()),
      .shard = this,
      .pieces = record.has(kLarge) ? record.first_piece() : nullptr,
  };
}

ReadResult Shard::read(const Key& key, const ReadOptions& options, Instant now, ItemVisitor visit) {
  const ShardGuard guard(lock_);
  on_time(now);
  ReadResult result;
  Slot slot = find(key, now, result.miss);
  bool has_won = false;
  if (slot) {
    result.status = ReadStatus::Hit;
  } else if (options.vivify.has_value()) {
    slot =
        put(key, Slot{},
            NewRecord{.exptime = *options.vivify,
                      .cas = cas_or_next(options.vivify_cas),
                      .marks = options.is_base64_key ? std::uint8_t{kBase64Key} : std::uint8_t{0}},
            now);
    result.status = slot ? ReadStatus::Created : ReadStatus::NoMemory;
    has_won = true;
  }
  if (!slot) {
    return result;
  }

  const Instant exptime_before = slot.record().exptime();
  if (options.exptime.has_value() && result.status == ReadStatus::Hit) {
    slot = give_exptime(key, slot, *options.exptime, now);
    if (!slot) {
      return ReadResult{.status = ReadStatus::NoMemory};
    }
  }
  Record& record = slot.record();
  ItemView view = view_of(record, now);
  view.exptime_before = exptime_before;
  view.is_new = result.status == ReadStatus::Created;
  if (options.is_leasing) {
    const Instant compared = options.recache_sees_exptime ? view.exptime : exptime_before;
    const bool is_due = options.recache_below.has_value() && compared != kNever &&
                        compared < *options.recache_below && result.status == ReadStatus::Hit;
    view.has_won = has_won || (!view.was_won && (is_due || view.is_stale));
    if (view.has_won) {
      record.set(kWon);
    }
  }
  if (visit) {
    visit(view);
  }
  if (options.is_use) {
    record.set(kFetched);
    use(slot, now);
  }
  return result;
}

TouchStatus Shard::touch(const Key& key, Instant exptime, Instant now) {
  const ReadResult result = read(key, ReadOptions{.exptime = exptime}, now, ItemVisitor{});
  switch (result.status) {
    case ReadStatus::Miss:
      return TouchStatus::NotFound;
    case ReadStatus::NoMemory:
      return TouchStatus::NoMemory;
    case ReadStatus::Hit:
    case ReadStatus::Created:
      break;
  }
  return TouchStatus::Done;
}

Slot Shard::give_exptime(const Key& key, Slot slot, Instant exptime, Instant now) {
  if (!slot.record().has(kHasExptime)) {
    if (exptime == kNever) {
      return slot;
    }
    RecordShape shape = slot.record().shape();
    shape.has_exptime = true;
    if (Record::total_bytes_of(shape) == slot.record().total_bytes()) {
      slot.record().insert_exptime();
    } else if (slot = space_.reshape(key, slot, shape, now); !slot) {
      return slot;
    }
  }
  slot.record().set_exptime(exptime);
  ItemSpace::note_exptime(slot.record());
  return slot;
}

Slot Shard::give_cas(const Key& key, Slot slot, std::uint64_t cas, Instant now) {
  if (!slot.record().fits_cas(cas)) {
    RecordShape shape = slot.record().shape();
    shape.has_wide_cas = true;
    slot = space_.reshape(key, slot, shape, now);
  }
  if (slot) {
    slot.record().set_cas(cas);
  }
  return slot;
}

DeleteResult Shard::remove(const Key& key, const DeleteOptions& options, Instant now) {
  const ShardGuard guard(lock_);
  on_time(now);
  Miss miss{};
  Slot slot = find(key, now, miss);
  if (!slot) {
    return DeleteResult{};
  }
  const Record& old = slot.record();
  const bool is_base64_key = old.has(kBase64Key);
  if (options.has_compare_cas && old.cas() != options.compare_cas) {
    return DeleteResult{.status = DeleteStatus::Exists, .is_base64_key = is_base64_key};
  }
  if (!options.is_clearing && !options.is_invalidation) {
    const DeleteResult result{.status = DeleteStatus::Done,
                              .is_base64_key = is_base64_key,
                              .value_bytes = static_cast<std::uint32_t>(old.value_bytes())};
    space_.remove(key, slot);
    return result;
  }

  if (options.is_clearing) {
    const bool keeps_cas = options.new_cas == 0;
    slot = put(key, slot,
               NewRecord{.client_flags = options.client_flags,
                         .exptime = options.exptime.value_or(kNever),
                         .cas = keeps_cas ? old.cas() : cas_or_next(options.new_cas),
                         .marks = static_cast<std::uint8_t>(old.item_marks() & kBase64Key)},
               now);
  } else if (options.exptime.has_value()) {
    slot = give_exptime(key, slot, *options.exptime, now);
  }
  if (slot && options.is_invalidation) {
    slot = give_cas(key, slot, cas_or_next(options.new_cas), now);
  }
  if (!slot) {
    return DeleteResult{.status = DeleteStatus::NoMemory, .is_base64_key = is_base64_key};
  }
  if (options.is_invalidation) {
    slot.record().set(kStale);
    slot.record().clear(kWon);
  }
  return DeleteResult{.status = DeleteStatus::Done, .is_base64_key = is_base64_key};
}

Piece* Shard::acquire_pieces(std::size_t count, Instant now) {
  const ShardGuard guard(lock_);
  Piece* chain = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    Piece* const piece = space_.acquire_piece(now);
    if (piece == nullptr) {
      space_.release_chain(chain);
      return nullptr;
    }
    piece->next = chain;
    chain = piece;
  }
  return chain;
}

void Shard::release_pieces(Piece* first) {
  const ShardGuard guard(lock_);
  space_.release_chain(first);
}

void Shard::drop_reader(Piece* first) {
  const ShardGuard guard(lock_);
  space_.drop_reader(first);
}

ItemRef Shard::pin(Shard& shard, Piece* first) noexcept {
  ++first->readers;
  return ItemRef(shard, first);
}

ItemRef ItemView::pin() const noexcept {
  KVF_CHECK(is_large);
  return Shard::pin(*shard, pieces);
}

void ItemRef::release() noexcept {
  if (first_ != nullptr) {
    shard_->drop_reader(first_);
    shard_ = nullptr;
    first_ = at_ = nullptr;
  }
}

bool Shard::visit_bucket(std::size_t number, Instant now, ItemVisitor visit) {
  const ShardGuard guard(lock_);
  on_time(now);
  Index& index = space_.index();
  if (number >= index.bucket_count()) {
    return false;
  }
  index.for_each_in(number, [&](const Record& record) {
    if (!space_.is_flushed(record) && !space_.is_expired(record, now)) {
      visit(view_of(record, now));
    }
  });
  return true;
}

std::size_t Shard::bucket_count() {
  const ShardGuard guard(lock_);
  return space_.index().bucket_count();
}

void Shard::set_observer(EvictionObserver* observer) {
  const ShardGuard guard(lock_);
  space_.set_observer(observer);
}

void Shard::flush(Instant when, Instant now) {
  const ShardGuard guard(lock_);
  on_time(now);
  flush_at_ = when == kNever ? kLongAgo : when;
  on_time(now);
}

void Shard::maintain(Instant now) {
  const ShardGuard guard(lock_);
  on_time(now);
  space_.maintain(now);
}

void Shard::set_frames_max(std::size_t frames_max) {
  const ShardGuard guard(lock_);
  space_.set_frames_max(frames_max);
}

std::size_t Shard::frames_max() {
  const ShardGuard guard(lock_);
  return space_.frames_max();
}

std::uint64_t Shard::next_cas() {
  const ShardGuard guard(lock_);
  return cas_next_;
}

void Shard::raise_cas(std::uint64_t cas) {
  const ShardGuard guard(lock_);
  if (cas_step_ != 0 && cas_next_ <= cas) {
    cas_next_ += ((cas - cas_next_) / cas_step_ + 1) * cas_step_;
  }
}

StoreStats Shard::stats() {
  const ShardGuard guard(lock_);
  return space_.stats();
}

void Shard::reset_counters() {
  const ShardGuard guard(lock_);
  space_.reset_counters();
}

}  // namespace kvferry::store
