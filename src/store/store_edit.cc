// Operations that make a new value of the old one.
#include "store/shard.h"
#include "store/store.h"

namespace kvferry::store {

namespace {

struct CountingVisitor {
  ItemVisitor visit;
  std::size_t count = 0;

  void on_item(const ItemView& item) {
    ++count;
    visit(item);
  }
};

}  // namespace

void Store::copy(const Key& key, Instant now, ItemCopy& copy) {
  shard_of(key).copy(key, now, copy);
}

EditStatus Store::replace(const Key& key, const ItemCopy& copy, const EditOptions& options,
                          std::string_view value, Instant now) {
  if (is_too_large(key.bytes.size(), value.size())) {
    return EditStatus::TooLarge;
  }
  Shard& shard = shard_of(key);
  if (value.size() <= kInlineBytesMax) {
    return shard.replace(key, copy, options, value, now);
  }
  PendingValue pending;
  if (begin_value(key, value.size(), pending) != StoreStatus::Stored ||
      !pending.append(value, now)) {
    return EditStatus::NoMemory;
  }
  return shard.replace(key, copy, options, pending, now);
}

EditStatus Store::remove_copied(const Key& key, const ItemCopy& copy, Instant now) {
  return shard_of(key).remove_copied(key, copy, now);
}

EditStatus Store::set_exptime(const Key& key, const ItemCopy& copy, Instant exptime, Instant now) {
  return shard_of(key).set_exptime(key, copy, exptime, now);
}

bool Store::visit_any(std::uint64_t random, Instant now, ItemVisitor visit) {
  CountingVisitor counter{.visit = visit};
  for (std::size_t i = 0; i < shard_count_ && counter.count == 0; ++i) {
    Shard& shard = *shards_[(random + i) % shard_count_];
    const std::size_t count = shard.bucket_count();
    const std::size_t first = count == 0 ? 0 : (random >> 16) % count;
    for (std::size_t k = 0; k < count && counter.count == 0; ++k) {
      shard.visit_bucket((first + k) % count, now,
                         ItemVisitor::to<&CountingVisitor::on_item>(&counter));
    }
  }
  return counter.count != 0;
}

}  // namespace kvferry::store
