// WorkerRoutes: the native routes that one worker has made of a plan's `routes`.
//
// A tree is made anew when its entry or one of its pools has changed; the one before lives until
// its last request is answered. Threads: one worker.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/route_plan.h"
#include "call/call.h"
#include "net/loop.h"

namespace kvferry::app {

class WorkerRoutes {
 public:
  using FindPool = std::function<call::Target&(std::string_view name)>;

  /// All outlive it.
  struct Setup {
    net::Loop& loop;
    call::CallPool& calls;
    base::MemoryBudget& budget;
    route::WriteGenerations& writes;
    route::NearStores& near_stores;
    std::size_t worker = 0;
  };

  explicit WorkerRoutes(const Setup& setup) : setup_(setup) {}

  /// `find_pool` knows every pool that the plans name; the pools of before still exist. `clock`
  /// outlives this.
  void apply(const RoutePlans& plans, const FindPool& find_pool, const route::StoreTarget& clock);
  bool contains(const std::string& name) const { return slots_.contains(name); }
  /// What listeners of the entry `name` send to.
  call::Target& target(const std::string& name) const;

  /// Lets replaced trees go that are done. No session may have one of them as its target.
  void sweep();
  /// No request is under way in any tree.
  bool is_idle() const;
  bool has_retired() const { return !retired_.empty(); }

 private:
  struct Slot {
    std::shared_ptr<const RoutePlan> plan;
    std::vector<call::Target*> pools;  // In the order of the spec.
    std::unique_ptr<route::RouteTree> tree;
  };

  Slot make(const std::shared_ptr<const RoutePlan>& plan, const FindPool& find_pool,
            std::vector<call::Target*> pools, const route::StoreTarget& clock);

  Setup setup_;
  std::map<std::string, Slot> slots_;
  std::vector<Slot> retired_;  // Plans too: they have the counters.
};

}  // namespace kvferry::app
