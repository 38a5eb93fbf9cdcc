#include "app/route_plan.h"

#include <algorithm>
#include <utility>

namespace kvferry::app {
namespace {

using Counters = std::map<std::string, std::shared_ptr<RouteCounter>, std::less<>>;

/// Adds what routes count that `known` does not have yet.
Counters counters_of(const route::RouteSpec& spec, Counters& known, std::size_t workers) {
  Counters counters;
  route::for_each_route(spec, [&](const route::RouteSpec& each) {
    for (std::size_t i = 0; i < route::kRouteEvents; ++i) {
      const std::string name = route::counter_name(each, static_cast<route::RouteEvent>(i));
      if (name.empty()) {
        continue;
      }
      std::shared_ptr<RouteCounter>& counter = known[name];
      if (counter == nullptr) {
        counter = std::make_shared<RouteCounter>(workers);
      }
      counters.emplace(name, counter);
    }
  });
  return counters;
}

std::vector<route::NearSpace> near_spaces_of(const route::RouteSpec& spec, NearSpaces& spaces) {
  std::vector<route::NearSpace> found;
  route::for_each_route(spec, [&](const route::RouteSpec& each) {
    if (each.kind == route::RouteKind::NearCache) {
      found.push_back(spaces.of(each));
    }
  });
  return found;
}

}  // namespace

void NearSpaces::begin() {
  std::erase_if(known_, [](const Known& known) { return !known.is_asked_for; });
  for (Known& known : known_) {
    known.is_asked_for = false;
  }
}

route::NearSpace NearSpaces::of(const route::RouteSpec& cache) {
  const route::RouteSpec& child = cache.children.front();
  auto found = std::find_if(known_.begin(), known_.end(), [&](const Known& known) {
    return known.memory_bytes == cache.near_memory_bytes && known.child == child;
  });
  if (found == known_.end()) {
    found = known_.insert(
        known_.end(),
        Known{.child = child, .memory_bytes = cache.near_memory_bytes, .number = ++last_number_});
  }
  found->is_asked_for = true;
  return {.owner = route::SpaceOwner::Yaml, .number = found->number};
}

std::uint64_t RouteCounter::sum() const {
  std::uint64_t sum = 0;
  for (const base::Counter& counter : by_worker_) {
    sum += counter.get();
  }
  return sum;
}

RoutePlans make_route_plans(const std::vector<config::RouteConfig>& entries,
                            const RoutePlans& before, std::size_t workers, base::SteadyTime now,
                            NearSpaces& spaces) {
  Counters known;
  for (const auto& plan : before) {
    known.insert(plan->counters.begin(), plan->counters.end());
  }
  spaces.begin();
  RoutePlans plans;
  for (const config::RouteConfig& entry : entries) {
    const auto kept = std::find_if(before.begin(), before.end(),
                                   [&](const auto& plan) { return plan->config == entry; });
    std::vector<route::NearSpace> near_spaces = near_spaces_of(entry.spec, spaces);
    plans.push_back(kept != before.end()
                        ? *kept
                        : std::make_shared<RoutePlan>(
                              RoutePlan{.config = entry,
                                        .buckets = route::make_shared_buckets(entry.spec, now),
                                        .counters = counters_of(entry.spec, known, workers),
                                        .near_spaces = std::move(near_spaces)}));
  }
  return plans;
}

}  // namespace kvferry::app
