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
  /// Of its near caches, in the order in which route::for_each_route() comes to them.
  std::vector<route::NearSpace> near_spaces;
};
using RoutePlans = std::vector<std::shared_ptr<const RoutePlan>>;

/// Numbers the spaces of near caches. Two that stand before equal children, with the same memory,
/// share their copies and find them again after a reload; no number is ever given to others.
class NearSpaces {
 public:
  /// Begins a configuration; spaces that it does not ask for are forgotten by the next one.
  void begin();
  /// Of `cache`, a near cache.
  route::NearSpace of(const route::RouteSpec& cache);

 private:
  struct Known {
    route::RouteSpec child;
    std::uint64_t memory_bytes = 0;
    std::uint32_t number = 0;
    bool is_asked_for = false;
  };
  std::vector<Known> known_;
  std::uint32_t last_number_ = 0;
};

/// Plans for `entries`. An entry that is as it was `before` keeps its plan, so that its buckets go
/// on; counters go on by name in any case.
RoutePlans make_route_plans(const std::vector<config::RouteConfig>& entries,
                            const RoutePlans& before, std::size_t workers, base::SteadyTime now,
                            NearSpaces& spaces);

}  // namespace kvferry::app
