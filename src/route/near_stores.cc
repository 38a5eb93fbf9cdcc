#include "route/near_stores.h"

#include <vector>

namespace kvferry::route {

NearStore NearStores::of(NearSpace space, std::size_t limit_bytes) {
  const std::scoped_lock lock(mutex_);
  NearStore& store = stores_[space];
  if (store == nullptr) {
    store = std::make_shared<store::Store>(
        store::StoreConfig{.limit_bytes = limit_bytes, .item_bytes_max = item_bytes_max_});
  }
  return store;
}

std::map<NearSpace, NearStore> NearStores::all() {
  const std::scoped_lock lock(mutex_);
  return stores_;
}

void NearStores::flush(store::Instant when, store::Instant now) {
  for (const auto& [space, store] : all()) {
    store->flush(when, now);
  }
}

void NearStores::maintain(store::Instant now) {
  std::vector<NearStore> unused;  // They end without the lock.
  {
    const std::scoped_lock lock(mutex_);
    for (auto place = stores_.begin(); place != stores_.end();) {
      // Nobody gets it without the lock.
      if (place->second.use_count() == 1) {
        unused.push_back(std::move(place->second));
        place = stores_.erase(place);
      } else {
        ++place;
      }
    }
  }
  for (const auto& [space, store] : all()) {
    store->maintain(now);
  }
}

NearStores::Figures NearStores::figures() {
  Figures sum;
  for (const auto& [space, store] : all()) {
    const store::StoreStats stats = store->snapshot();
    ++sum.stores;
    sum.bytes += stats.allocated_bytes;
    sum.limit_bytes += stats.limit_maxbytes;
    sum.items += stats.curr_items;
    sum.evictions += stats.evictions;
  }
  return sum;
}

}  // namespace kvferry::route
