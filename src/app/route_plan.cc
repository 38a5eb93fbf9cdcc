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
    if (each.counter.empty()) {
      return;
    }
    std::shared_ptr<RouteCounter>& counter = known[each.counter];
    if (counter == nullptr) {
      counter = std::make_shared<RouteCounter>(workers);
    }
    counters.emplace(each.counter, counter);
  });
  return counters;
}

}  // namespace

std::uint64_t RouteCounter::sum() const {
  std::uint64_t sum = 0;
  for (const base::Counter& counter : by_worker_) {
    sum += counter.get();
  }
  return sum;
}

RoutePlans make_route_plans(const std::vector<config::RouteConfig>& entries,
                            const RoutePlans& before, std::size_t workers, base::SteadyTime now) {
  Counters known;
  for (const auto& plan : before) {
    known.insert(plan->counters.begin(), plan->counters.end());
  }
  RoutePlans plans;
  for (const config::RouteConfig& entry : entries) {
    const auto kept = std::find_if(before.begin(), before.end(),
                                   [&](const auto& plan) { return plan->config == entry; });
    plans.push_back(kept != before.end()
                        ? *kept
                        : std::make_shared<RoutePlan>(
                              RoutePlan{.config = entry,
                                        .buckets = route::make_shared_buckets(entry.spec, now),
                                        .counters = counters_of(entry.spec, known, workers)}));
  }
  return plans;
}

}  // namespace kvferry::app
