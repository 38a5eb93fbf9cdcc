// RoutePlan: control's side of an entry of `routes`: what the trees of all workers share.
//
// Threads: made by control; immutable for workers, but for counters and buckets.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/counter.h"
#include "config/model.h"
#include "route/route_tree.h"

namespace kvferry::app {

/// What routes count under one name: further tries of a failover, requests that a limit has
/// refused. Each worker writes its own; any thread reads the sum.
class RouteCounter {
 public:
  explicit RouteCounter(std::size_t workers) : by_worker_(workers) {}
  base::Counter& of(std::size_t worker) { return by_worker_[worker]; }
  std::uint64_t sum() const;

 private:
  std::vector<base::Counter> by_worker_;
};

struct RoutePlan {
  config::RouteConfig config;
  std::vector<route::SharedBucket> buckets;
  /// By the names that its routes count under.
  std::map<std::string, std::shared_ptr<RouteCounter>, std::less<>> counters;
};
using RoutePlans = std::vector<std::shared_ptr<const RoutePlan>>;

/// Plans for `entries`. An entry that is as it was `before` keeps its plan, so that its buckets go
/// on; counters go on by name in any case.
RoutePlans make_route_plans(const std::vector<config::RouteConfig>& entries,
                            const RoutePlans& before, std::size_t workers, base::SteadyTime now);

}  // namespace kvferry::app
