#include "store/index.h"

#include <memory>

namespace kvferry::store {

bool Index::wants_frame() const noexcept {
  return buckets_.empty() || spare_count_ < kSparesLow || (is_split_due() && !has_bucket_space());
}

void Index::add_frame(void* frame) {
  auto* const buckets = static_cast<IndexBucket*>(frame);
  std::uninitialized_value_construct_n(buckets, kBucketsPerFrame);
  if (buckets_.empty() || spare_count_ >= kSparesLow) {
    if (buckets_.empty()) {
      bucket_count_ = level_buckets_ = kBucketsMin;
    }
    buckets_.push_back(buckets);
    return;
  }
  const std::size_t first = overflows_.size() * kBucketsPerFrame;
  overflows_.push_back(buckets);
  for (std::size_t i = kBucketsPerFrame; i > 0; --i) {
    release_spare(static_cast<std::uint32_t>(first + i));
  }
}

IndexBucket& Index::bucket_of(std::uint64_t hash) const noexcept {
  std::size_t number = hash & (level_buckets_ - 1);
  if (number < split_at_) {
    number = hash & (2 * level_buckets_ - 1);
  }
  return bucket_at(number);
}

Slot Index::find(const Key& key) noexcept {
  if (buckets_.empty()) {
    return {};
  }
  const std::uint16_t tag = IndexBucket::tag_of(key);
  for (IndexBucket* bucket = &bucket_of(key.hash); bucket != nullptr; bucket = next_of(*bucket)) {
    for (std::size_t i = 0; i < IndexBucket::kSlots; ++i) {
      if (!bucket->has_tag(i, tag) || bucket->places[i] == kNowhere) {
        continue;
      }
      Record& record = segments_.record_at(bucket->places[i]);
      if (record.key() == key.bytes) {
        return {*bucket, i, record};
      }
    }
  }
  return {};
}

Slot Index::find_record(const Key& key, Record& record) noexcept {
  const Place place = SegmentTable::place_of(record);
  for (IndexBucket* bucket = &bucket_of(key.hash); bucket != nullptr; bucket = next_of(*bucket)) {
    for (std::size_t i = 0; i < IndexBucket::kSlots; ++i) {
      if (bucket->places[i] == place) {
        return {*bucket, i, record};
      }
    }
  }
  KVF_CHECK(false);
}

Slot Index::insert(const Key& key, Record& record) noexcept {
  if (is_split_due() && has_bucket_space()) {
    split_next();
  }
  const Vacancy vacancy = find_vacancy(bucket_of(key.hash));
  KVF_CHECK(vacancy.bucket != nullptr);
  vacancy.bucket->places[vacancy.at] = SegmentTable::place_of(record);
  vacancy.bucket->words[vacancy.at] = IndexBucket::tag_of(key);
  ++size_;
  return {*vacancy.bucket, vacancy.at, record};
}

void Index::set_record(Slot& slot, Record& record) noexcept {
  slot.bucket_->places[slot.at_] = SegmentTable::place_of(record);
  slot.record_ = &record;
}

void Index::erase(const Key& key, const Slot& slot) noexcept {
  --size_;
  // The last slot of the chain fills the hole, so that chains do not keep buckets they do not need.
  IndexBucket* before_last = nullptr;
  IndexBucket* last = &bucket_of(key.hash);
  while (IndexBucket* const next = next_of(*last)) {
    before_last = last;
    last = next;
  }
  std::size_t used = IndexBucket::kSlots;
  while (last->places[used - 1] == kNowhere) {
    --used;
  }
  slot.bucket_->places[slot.at_] = last->places[used - 1];
  slot.bucket_->words[slot.at_] = last->words[used - 1];
  last->places[used - 1] = kNowhere;
  if (used == 1 && before_last != nullptr) {
    release_spare(before_last->overflow);
    before_last->overflow = 0;
  }
}

Index::Vacancy Index::find_vacancy(IndexBucket& first) noexcept {
  for (IndexBucket* bucket = &first;; bucket = next_of(*bucket)) {
    for (std::size_t i = 0; i < IndexBucket::kSlots; ++i) {
      if (bucket->places[i] == kNowhere) {
        return {bucket, i};
      }
    }
    if (bucket->overflow == 0) {
      bucket->overflow = acquire_spare();
      if (bucket->overflow == 0) {
        return {};
      }
    }
  }
}

void Index::split_next() noexcept {
  IndexBucket& old_bucket = bucket_at(split_at_);
  IndexBucket& new_bucket = bucket_at(bucket_count_);
  const std::uint64_t high_bit = level_buckets_;
  ++bucket_count_;
  if (++split_at_ == level_buckets_) {
    level_buckets_ *= 2;
    split_at_ = 0;
  }

  // The old chain is emptied bucket by bucket; its overflow buckets serve both new chains, which
  // together cannot need more than there were, the first bucket of the new chain being extra.
  IndexBucket from = old_bucket;
  old_bucket = IndexBucket{};
  new_bucket = IndexBucket{};
  for (;;) {
    for (std::size_t i = 0; i < IndexBucket::kSlots && from.places[i] != kNowhere; ++i) {
      const std::string_view key = segments_.record_at(from.places[i]).key();
      const bool is_high = (hash_of(key) & high_bit) != 0;
      const Vacancy to = find_vacancy(is_high ? new_bucket : old_bucket);
      to.bucket->places[to.at] = from.places[i];
      to.bucket->words[to.at] = from.words[i];
    }
    const std::uint32_t link = from.overflow;
    if (link == 0) {
      return;
    }
    from = bucket_in(overflows_, link - 1);
    release_spare(link);
  }
}

std::uint32_t Index::acquire_spare() noexcept {
  const std::uint32_t link = spares_;
  if (link != 0) {
    IndexBucket& bucket = bucket_in(overflows_, link - 1);
    spares_ = bucket.overflow;
    --spare_count_;
    bucket = IndexBucket{};
  }
  return link;
}

void Index::release_spare(std::uint32_t link) noexcept {
  bucket_in(overflows_, link - 1).overflow = spares_;
  spares_ = link;
  ++spare_count_;
}

}  // namespace kvferry::store
