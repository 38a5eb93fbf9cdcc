#include "app/worker_routes.h"

#include <algorithm>
#include <random>
#include <utility>

#include "base/check.h"

namespace kvferry::app {

void WorkerRoutes::apply(const RoutePlans& plans, const FindPool& find_pool,
                         const route::StoreTarget& clock) {
  auto before = std::exchange(slots_, {});
  for (const std::shared_ptr<const RoutePlan>& plan : plans) {
    std::vector<call::Target*> pools;
    route::for_each_route(plan->config.spec, [&](const route::RouteSpec& spec) {
      if (spec.kind == route::RouteKind::Pool) {
        pools.push_back(&find_pool(spec.text));
      }
    });
    const std::string& name = plan->config.name;
    const auto kept = before.find(name);
    if (kept != before.end() && kept->second.plan == plan && kept->second.pools == pools) {
      slots_[name] = std::move(kept->second);
      before.erase(kept);
    } else {
      slots_[name] = make(plan, find_pool, std::move(pools), clock);
    }
  }
  for (auto& [name, slot] : before) {
    retired_.push_back(std::move(slot));
  }
}

WorkerRoutes::Slot WorkerRoutes::make(const std::shared_ptr<const RoutePlan>& plan,
                                      const FindPool& find_pool, std::vector<call::Target*> pools,
                                      const route::StoreTarget& clock) {
  const auto find_counter = [&](std::string_view name) -> base::Counter* {
    const auto found = plan->counters.find(name);
    return found == plan->counters.end() ? nullptr : &found->second->of(setup_.worker);
  };
  std::random_device device;
  const route::RouteTree::Setup setup{.loop = setup_.loop,
                                      .calls = setup_.calls,
                                      .budget = setup_.budget,
                                      .pool = find_pool,
                                      .counter = find_counter,
                                      .buckets = plan->buckets,
                                      .near_spaces = plan->near_spaces,
                                      .near_stores = &setup_.near_stores,
                                      .clock = &clock,
                                      .writes = &setup_.writes,
                                      .seed = (std::uint64_t{device()} << 32U) | device()};
  return Slot{.plan = plan,
              .pools = std::move(pools),
              .tree = std::make_unique<route::RouteTree>(setup, plan->config.spec)};
}

call::Target& WorkerRoutes::target(const std::string& name) const {
  const auto found = slots_.find(name);
  KVF_CHECK(found != slots_.end());
  return *found->second.tree;
}

void WorkerRoutes::sweep() {
  std::erase_if(retired_, [](const Slot& slot) { return slot.tree->is_idle(); });
}

bool WorkerRoutes::is_idle() const {
  const auto is_idle = [](const Slot& slot) { return slot.tree->is_idle(); };
  return std::all_of(retired_.begin(), retired_.end(), is_idle) &&
         std::all_of(slots_.begin(), slots_.end(),
                     [&](const auto& entry) { return is_idle(entry.second); });
}

}  // namespace kvferry::app
