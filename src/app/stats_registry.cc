#include "app/stats_registry.h"

#include <algorithm>

namespace kvferry::app {

void StatsRegistry::add(const ServiceEntry& entry) {
  const std::lock_guard lock(mutex_);
  services_.push_back(
      WeakService{.pool = entry.pool, .address = entry.address, .stats = entry.stats});
}

void StatsRegistry::add(const BackendEntry& entry) {
  const std::lock_guard lock(mutex_);
  WeakBackend weak{.pool = entry.pool,
                   .label = entry.label,
                   .address = entry.address,
                   .is_ejecting = entry.is_ejecting,
                   .health = entry.health,
                   .stats = entry.stats};
  const auto known =
      std::find_if(backends_.begin(), backends_.end(),
                   [&](const WeakBackend& other) { return other.stats.lock() == entry.stats; });
  if (known == backends_.end()) {
    backends_.push_back(std::move(weak));
  } else {
    *known = std::move(weak);
  }
}

void StatsRegistry::add(const route::StoreCommandStats& stats) {
  const std::lock_guard lock(mutex_);
  stores_.push_back(&stats);
}

void StatsRegistry::remove(const route::StoreCommandStats& stats) {
  const std::lock_guard lock(mutex_);
  std::erase(stores_, &stats);
}

route::StoreCommandTotals StatsRegistry::sum_stores() const {
  route::StoreCommandTotals totals{};
  for (const route::StoreCommandStats* stats : stores_) {
    stats->add_to(totals);
  }
  return totals;
}

route::StoreCommandTotals StatsRegistry::store_totals() {
  const std::lock_guard lock(mutex_);
  route::StoreCommandTotals totals = sum_stores();
  for (std::size_t i = 0; i < totals.size(); ++i) {
    totals[i] -= std::min(totals[i], stores_before_[i]);
  }
  return totals;
}

void StatsRegistry::reset_store_totals() {
  const std::lock_guard lock(mutex_);
  stores_before_ = sum_stores();
}

void StatsRegistry::set_routes(const RoutePlans& routes) {
  const std::lock_guard lock(mutex_);
  routes_ = routes;
}

std::map<std::string, std::uint64_t> StatsRegistry::route_counts() {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::uint64_t> counts;
  for (const auto& routes : routes_) {
    for (const auto& [name, counter] : routes->counters) {
      counts[name] = counter->sum();
    }
  }
  return counts;
}

std::vector<StatsRegistry::ServiceEntry> StatsRegistry::services() {
  const std::lock_guard lock(mutex_);
  std::erase_if(services_, [](const WeakService& weak) { return weak.stats.expired(); });
  std::vector<ServiceEntry> alive;
  for (const WeakService& weak : services_) {
    if (auto stats = weak.stats.lock()) {
      alive.push_back(
          ServiceEntry{.pool = weak.pool, .address = weak.address, .stats = std::move(stats)});
    }
  }
  return alive;
}

std::vector<StatsRegistry::BackendEntry> StatsRegistry::backends() {
  const std::lock_guard lock(mutex_);
  std::erase_if(backends_, [](const WeakBackend& weak) {
    return weak.stats.expired() || weak.health.expired();
  });
  std::vector<BackendEntry> alive;
  for (const WeakBackend& weak : backends_) {
    auto stats = weak.stats.lock();
    auto health = weak.health.lock();
    if (stats && health) {
      alive.push_back(BackendEntry{.pool = weak.pool,
                                   .label = weak.label,
                                   .address = weak.address,
                                   .is_ejecting = weak.is_ejecting,
                                   .health = std::move(health),
                                   .stats = std::move(stats)});
    }
  }
  return alive;
}

}  // namespace kvferry::app
