// StatsRegistry: where workers announce their counters, and whoever wants sums finds them.
//
// Counters are held weakly: what a worker has let go of (a removed backend, a closed listener)
// leaves by itself. Threads: any; a lock guards the list, never the counters. Used when something
// is made and when somebody looks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "app/route_plan.h"
#include "front/service_stats.h"
#include "pool/health.h"
#include "pool/options.h"
#include "pool/stats.h"
#include "route/store_command_stats.h"

namespace kvferry::app {

class StatsRegistry {
 public:
  struct ServiceEntry {
    std::string pool;  // Empty for the embedded store.
    std::string address;
    std::shared_ptr<const front::ServiceStats> stats;
  };
  struct BackendEntry {
    std::string pool;
    std::string label;
    std::string address;
    bool is_ejecting = false;  // The pool takes backends that are down out of its placement.
    std::shared_ptr<const pool::BackendHealth> health;
    std::shared_ptr<const pool::BackendStats> stats;
  };

  void add(const ServiceEntry& entry);
  /// Adding the same counters again only renews what is said about them.
  void add(const BackendEntry& entry);
  /// Counters of one worker's way to the embedded store; it removes them before they go.
  void add(const route::StoreCommandStats& stats);
  void remove(const route::StoreCommandStats& stats);
  /// Since the start or the last reset.
  route::StoreCommandTotals store_totals();
  void reset_store_totals();

  /// What native routes of YAML count, by name; of the configuration that was set last.
  void set_routes(const RoutePlans& routes);
  std::map<std::string, std::uint64_t> route_counts();

  /// Everything that is alive now, in the order it was added.
  std::vector<ServiceEntry> services();
  std::vector<BackendEntry> backends();

 private:
  struct WeakService {
    std::string pool;
    std::string address;
    std::weak_ptr<const front::ServiceStats> stats;
  };
  struct WeakBackend {
    std::string pool;
    std::string label;
    std::string address;
    bool is_ejecting = false;
    std::weak_ptr<const pool::BackendHealth> health;
    std::weak_ptr<const pool::BackendStats> stats;
  };

  std::mutex mutex_;
  std::vector<WeakService> services_;
  std::vector<WeakBackend> backends_;
  RoutePlans routes_;
  route::StoreCommandTotals sum_stores() const;

  std::vector<const route::StoreCommandStats*> stores_;
  route::StoreCommandTotals
      stores_before_{};  // What a reset takes off: only workers write their counters.
};

}  // namespace kvferry::app
