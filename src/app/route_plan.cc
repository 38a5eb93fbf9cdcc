#include "app/route_plan.h"

#include <algorithm>
#include <utility>

namespace kvferry::app {

std::uint64_t RouteCounter::sum() const {
  std::uint64_t sum = 0;
  for (const base::Counter& counter : by_worker_) {
    sum += counter.get();
  }
  return sum;
}

RoutePlans make_route_plans(const std::vector<config::RouteConfig>& entries,
                            const RoutePlans& before, std::size_t workers, base::SteadyTime now) {
  std::map<std::string, std::shared_ptr<RouteCounter>, std::less<>> known;
  for (const auto& plan : before) {
    known.insert(plan->counters.begin(), plan->counters.end());
  }
  RoutePlans plans;
  for (const config::RouteConfig& entry : entries) {
    const auto kept = std::find_if(before.begin(), before.end(),
                                   [&](const auto& plan) { return plan->config == entry; });
    if (kept != before.end()) {
      plans.push_back(*kept);
      continue;
    }
    auto plan = std::make_shared<RoutePlan>();
    plan->config = entry;
    plan->buckets = route::make_shared_buckets(entry.spec, now);
    route::for_each_route(entry.spec, [&](const route::RouteSpec& spec) {
      if (!spec.counter.empty()) {
        std::shared_ptr<RouteCounter>& counter = known[spec.counter];
        if (counter == nullptr) {
          counter = std::make_shared<RouteCounter>(workers);
        }
        plan->counters.emplace(spec.counter, counter);
      }
    });
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace kvferry::app
