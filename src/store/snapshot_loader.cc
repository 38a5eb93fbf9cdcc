#include "store/snapshot_loader.h"

#include <algorithm>
#include <limits>

namespace kvferry::store {

namespace {

/// Beyond this a CAS unique of a snapshot would leave no room to count on from.
constexpr std::uint64_t kCasMax = std::uint64_t{1} << 62;

/// Every exptime is below it.
constexpr Instant kLatest{std::numeric_limits<std::uint32_t>::max()};

}  // namespace

void SnapshotLoader::on_head(const SnapshotHead& head) {
  written_at_ = head.written_at;
  store_.raise_cas(std::min(head.last_cas, kCasMax));
}

void SnapshotLoader::on_item(const SnapshotItem& item) {
  way_ = Way::Dropped;
  if (has_passed(item.exptime, now_)) {
    ++counts_.expired;
    return;
  }
  if (store_.is_too_large(item.key.size(), item.value_bytes)) {
    ++counts_.too_large;
    return;
  }
  item_ = item;
  std::copy(item.key.begin(), item.key.end(), key_.begin());
  item_.key = {key_.data(), item.key.size()};
  if (item.value_bytes <= kInlineBytesMax) {
    value_.clear();
    way_ = Way::Whole;
  } else if (const StoreStatus status =
                 store_.begin_value(Key(item_.key), item.value_bytes, pending_);
             status == StoreStatus::Stored) {
    way_ = Way::InParts;
  } else {
    count(status);
  }
}

void SnapshotLoader::on_value(std::string_view bytes) {
  if (way_ == Way::Whole) {
    value_.append(bytes);
  } else if (way_ == Way::InParts && !pending_.append(bytes, now_)) {
    pending_.drop();
    ++counts_.no_memory;
    way_ = Way::Dropped;
  }
}

void SnapshotLoader::on_item_end() {
  if (way_ == Way::Dropped) {
    return;
  }
  const StoreOptions options{.mode = StoreMode::Set,
                             .is_base64_key = item_.has(kSnapshotBase64Key),
                             .client_flags = item_.client_flags,
                             .exptime = item_.exptime,
                             .new_cas = item_.cas};
  const Key key(item_.key);
  const StoreStatus status = way_ == Way::Whole ? store_.store(key, options, value_, now_).status
                                                : store_.store(key, options, pending_, now_).status;
  count(status);
  if (status == StoreStatus::Stored) {
    restore_marks(key);
  }
}

void SnapshotLoader::count(StoreStatus status) {
  if (status == StoreStatus::Stored) {
    ++counts_.stored;
  } else if (status == StoreStatus::TooLarge) {
    ++counts_.too_large;
  } else {
    ++counts_.no_memory;
  }
}

void SnapshotLoader::restore_marks(const Key& key) {
  if (item_.has(kSnapshotStale)) {
    store_.remove(key, DeleteOptions{.is_invalidation = true, .new_cas = item_.cas}, now_);
  }
  if (item_.has(kSnapshotWon)) {
    // Somebody has won it already: that was us, whatever exptime it has.
    store_.read(key, ReadOptions{.is_use = false, .is_leasing = true, .recache_below = kLatest},
                now_, ItemVisitor{});
  }
  if (item_.has(kSnapshotFetched)) {
    store_.read(key, ReadOptions{}, now_, ItemVisitor{});
  }
}

}  // namespace kvferry::store
