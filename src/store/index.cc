#include "store/index.h"

#include <cstring>
#include <new>

namespace kvferry::store {

bool Index::wants_frame() const noexcept {
  return buckets_.empty() || spare_count_ < kSparesLow || (is_split_due() && !has_bucket_space());
}

void Index::add_frame(void* frame) noexcept {
  std::memset(frame, 0, kFrameBytes);
  auto* buckets = static_cast<Bucket*>(frame);
  ++frame_count_;
  if (buckets_.empty()) {
    buckets_.push_back(buckets);
    bucket_count_ = level_buckets_ = kBucketsMin;
    return;
  }
  if (spare_count_ >= kSparesLow) {
    buckets_.push_back(buckets);
    return;
  }
  for (std::size_t i = 0; i < kBucketsPerFrame; ++i) {
    buckets[i].overflow = spares_;
    spares_ = &buckets[i];
  }
  spare_count_ += kBucketsPerFrame;
}

Index::Bucket& Index::bucket_of(std::uint64_t hash) noexcept {
  std::size_t number = hash & (level_buckets_ - 1);
  if (number < split_at_) {
    number = hash & (2 * level_buckets_ - 1);
  }
  return bucket_at(number);
}

Slot* Index::find(const Key& key) noexcept {
  if (buckets_.empty()) {
    return nullptr;
  }
  const std::uint64_t tag = key.tag();
  for (Bucket* bucket = &bucket_of(key.hash); bucket != nullptr; bucket = bucket->overflow) {
    for (Slot& slot : bucket->slots) {
      if (slot.tag() == tag && !slot.is_empty() && slot.record()->key() == key.bytes) {
        return &slot;
      }
    }
  }
  return nullptr;
}

Slot* Index::find_record(const Key& key, const Record* record) noexcept {
  for (Bucket* bucket = &bucket_of(key.hash); bucket != nullptr; bucket = bucket->overflow) {
    for (Slot& slot : bucket->slots) {
      if (slot.record() == record) {
        return &slot;
      }
    }
  }
  return nullptr;
}

Slot* Index::insert(const Key& key, Record* record, unsigned uses) noexcept {
  if (is_split_due() && has_bucket_space()) {
    split_next();
  }
  Slot* slot = empty_slot(bucket_of(key.hash));
  KVF_CHECK(slot != nullptr);
  slot->fill(record, key.tag(), uses);
  ++size_;
  return slot;
}

void Index::erase(const Key& key, Slot* slot) noexcept {
  --size_;
  // The last slot of the chain fills the hole, so that chains do not keep buckets they do not need.
  Bucket* before_last = nullptr;
  Bucket* last = &bucket_of(key.hash);
  while (last->overflow != nullptr) {
    before_last = last;
    last = last->overflow;
  }
  std::size_t used = kSlotsPerBucket;
  while (last->slots[used - 1].is_empty()) {
    --used;
  }
  Slot& filler = last->slots[used - 1];
  *slot = filler;
  filler.clear();
  if (used == 1 && before_last != nullptr) {
    before_last->overflow = nullptr;
    release_spare(last);
  }
}

Slot* Index::empty_slot(Bucket& first) noexcept {
  for (Bucket* bucket = &first;; bucket = bucket->overflow) {
    for (Slot& slot : bucket->slots) {
      if (slot.is_empty()) {
        return &slot;
      }
    }
    if (bucket->overflow == nullptr) {
      bucket->overflow = acquire_spare();
      if (bucket->overflow == nullptr) {
        return nullptr;
      }
    }
  }
}

void Index::split_next() noexcept {
  Bucket& old_bucket = bucket_at(split_at_);
  Bucket& new_bucket = bucket_at(bucket_count_);
  const std::uint64_t high_bit = level_buckets_;
  ++bucket_count_;
  if (++split_at_ == level_buckets_) {
    level_buckets_ *= 2;
    split_at_ = 0;
  }

  // The old chain is emptied bucket by bucket; its overflow buckets serve both new chains, which
  // together cannot need more than there were, the first bucket of the new chain being extra.
  Bucket chain = old_bucket;
  old_bucket = Bucket{};
  new_bucket = Bucket{};
  for (Bucket* bucket = &chain; bucket != nullptr;) {
    const std::array<Slot, kSlotsPerBucket> slots = bucket->slots;
    Bucket* const next = bucket->overflow;
    if (bucket != &chain) {
      release_spare(bucket);
    }
    for (const Slot& slot : slots) {
      if (!slot.is_empty()) {
        const bool is_high = (hash_of(slot.record()->key()) & high_bit) != 0;
        *empty_slot(is_high ? new_bucket : old_bucket) = slot;
      }
    }
    bucket = next;
  }
}

Index::Bucket* Index::acquire_spare() noexcept {
  Bucket* bucket = spares_;
  if (bucket != nullptr) {
    spares_ = bucket->overflow;
    --spare_count_;
    *bucket = Bucket{};
  }
  return bucket;
}

void Index::release_spare(Bucket* bucket) noexcept {
  bucket->overflow = spares_;
  spares_ = bucket;
  ++spare_count_;
}

}  // namespace kvferry::store
