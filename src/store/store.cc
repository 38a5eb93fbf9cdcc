#include "store/store.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "store/segment_table.h"
#include "store/shard.h"

namespace kvferry::store {

namespace {

/// A shard has at least so much memory, and room for so many of the largest items.
constexpr std::size_t kShardBytesMin = std::size_t{8} * 1024 * 1024;
constexpr std::size_t kLargestItemsPerShard = 4;

std::size_t choose_shard_count(const StoreConfig& config) {
  if (config.shard_count != 0) {
    return std::min(std::bit_floor(config.shard_count), kShardsMax);
  }
  const std::size_t shard_bytes =
      std::max(kShardBytesMin, config.item_bytes_max * kLargestItemsPerShard);
  return std::min(std::bit_floor(std::max<std::size_t>(config.limit_bytes / shard_bytes, 1)),
                  kShardsMax);
}

StoreConfig checked(StoreConfig config) {
  config.limit_bytes = std::max(config.limit_bytes, kLimitBytesMin);
  return config;
}

}  // namespace

StoreStats& StoreStats::operator+=(const StoreStats& other) noexcept {
  bytes += other.bytes;
  curr_items += other.curr_items;
  hidden_items += other.hidden_items;
  limit_maxbytes += other.limit_maxbytes;
  allocated_bytes += other.allocated_bytes;
  index_bytes += other.index_bytes;
  index_buckets += other.index_buckets;
  total_items += other.total_items;
  evictions += other.evictions;
  evicted_unfetched += other.evicted_unfetched;
  evicted_active += other.evicted_active;
  reclaimed += other.reclaimed;
  expired_unfetched += other.expired_unfetched;
  crawler_reclaimed += other.crawler_reclaimed;
  crawler_items_checked += other.crawler_items_checked;
  moves_to_main += other.moves_to_main;
  moves_within_main += other.moves_within_main;
  compacted_segments += other.compacted_segments;
  return *this;
}

Store::Store(const StoreConfig& config)
    : config_(checked(config)),
      shard_count_(choose_shard_count(config_)),
      limit_bytes_(config_.limit_bytes) {
  shards_.reserve(shard_count_);
  for (std::size_t i = 0; i < shard_count_; ++i) {
    const ShardOptions options{.frames_max = frames_of_shard(config_.limit_bytes, i),
                               .is_evicting = config_.is_evicting,
                               .cas_first = config_.has_cas ? i + 1 : 0,
                               .cas_step = config_.has_cas ? shard_count_ : 0};
    shards_.push_back(std::make_unique<Shard>(frames_, options));
    shards_.back()->set_observer(config_.observer);
  }
}

Store::~Store() = default;

Shard& Store::shard_of(const Key& key) noexcept {
  return *shards_[key.shard_bits() & (shard_count_ - 1)];
}

std::size_t Store::frames_of_shard(std::size_t limit_bytes, std::size_t number) const noexcept {
  const std::size_t frames = limit_bytes / kFrameBytes;
  const std::size_t share = frames / shard_count_ + (number < frames % shard_count_ ? 1 : 0);
  return std::min(share, kSegmentsMax);
}

bool Store::is_too_large(std::size_t key_bytes, std::uint64_t value_bytes) const noexcept {
  const std::size_t overhead = Record::kHeadBytes + key_bytes;
  return value_bytes > config_.item_bytes_max || value_bytes + overhead > config_.item_bytes_max;
}

ReadResult Store::read(const Key& key, const ReadOptions& options, Instant now, ItemVisitor visit) {
  return shard_of(key).read(key, options, now, visit);
}

TouchStatus Store::touch(const Key& key, Instant exptime, Instant now) {
  return shard_of(key).touch(key, exptime, now);
}

StoreResult Store::refuse(const Key& key, const StoreOptions& options, StoreStatus status,
                          std::uint64_t value_bytes, Instant now) {
  if (options.mode == StoreMode::Set) {
    remove(key, DeleteOptions{}, now);
  }
  return StoreResult{
      .status = status, .is_base64_key = options.is_base64_key, .value_bytes = value_bytes};
}

StoreResult Store::store(const Key& key, const StoreOptions& options, std::string_view value,
                         Instant now) {
  if (is_too_large(key.bytes.size(), value.size())) {
    return refuse(key, options, StoreStatus::TooLarge, value.size(), now);
  }
  Shard& shard = shard_of(key);
  if (value.size() <= kInlineBytesMax) {
    const std::optional<StoreResult> result = shard.store(key, options, value, now);
    return result.has_value() ? *result : join(shard, key, options, value, now);
  }
  PendingValue pending;
  if (begin_value(key, value.size(), pending) != StoreStatus::Stored ||
      !pending.append(value, now)) {
    return refuse(key, options, StoreStatus::NoMemory, value.size(), now);
  }
  return store(key, options, pending, now);
}

StoreStatus Store::begin_value(const Key& key, std::uint64_t value_bytes, PendingValue& value) {
  if (is_too_large(key.bytes.size(), value_bytes)) {
    return StoreStatus::TooLarge;
  }
  // A value that would push out half of its shard is not worth it.
  Shard& shard = shard_of(key);
  if (value_bytes > shard.frames_max() * kFrameBytes / 2) {
    return StoreStatus::NoMemory;
  }
  value.begin(shard, value_bytes);
  return StoreStatus::Stored;
}

StoreResult Store::store(const Key& key, const StoreOptions& options, PendingValue& value,
                         Instant now) {
  KVF_CHECK(value.missing_bytes() == 0);
  Shard& shard = shard_of(key);
  const std::optional<StoreResult> stored = shard.store(key, options, value, now);
  const StoreResult result = stored.has_value() ? *stored : join(shard, key, options, value, now);
  value.drop();
  return result;
}

ArithResult Store::add_delta(const Key& key, const ArithOptions& options, Instant now) {
  return shard_of(key).add_delta(key, options, now);
}

DeleteResult Store::remove(const Key& key, const DeleteOptions& options, Instant now) {
  return shard_of(key).remove(key, options, now);
}

bool Store::walk(WalkPlace& place, Instant now, ItemVisitor visit) {
  if (place.shard >= shard_count_) {
    return false;
  }
  if (shards_[place.shard]->visit_bucket(place.bucket, now, visit)) {
    ++place.bucket;
  } else {
    ++place.shard;
    place.bucket = 0;
  }
  return place.shard < shard_count_;
}

void Store::flush(Instant when, Instant now) {
  for (const std::unique_ptr<Shard>& shard : shards_) {
    shard->flush(when, now);
  }
}

void Store::maintain(Instant now) {
  for (const std::unique_ptr<Shard>& shard : shards_) {
    shard->maintain(now);
  }
}

std::size_t Store::set_memory_limit(std::size_t limit_bytes) {
  const std::size_t limit = std::max(limit_bytes, kLimitBytesMin);
  limit_bytes_.store(limit, std::memory_order_relaxed);
  for (std::size_t i = 0; i < shard_count_; ++i) {
    shards_[i]->set_frames_max(frames_of_shard(limit, i));
  }
  return limit;
}

std::uint64_t Store::last_cas() {
  std::uint64_t last = 0;
  for (const std::unique_ptr<Shard>& shard : shards_) {
    last = std::max(last, shard->next_cas());
  }
  return last;
}

void Store::raise_cas(std::uint64_t cas) {
  for (const std::unique_ptr<Shard>& shard : shards_) {
    shard->raise_cas(cas);
  }
}

StoreStats Store::snapshot() {
  StoreStats sum;
  for (const std::unique_ptr<Shard>& shard : shards_) {
    sum += shard->stats();
  }
  sum.limit_maxbytes = limit_bytes_.load(std::memory_order_relaxed);
  return sum;
}

void Store::reset_counters() {
  for (const std::unique_ptr<Shard>& shard : shards_) {
    shard->reset_counters();
  }
}

}  // namespace kvferry::store
