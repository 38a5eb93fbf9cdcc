// Routes that turn to other children when one gives no good answer.
//
// Source: docs/routelib.md, "route_failover" and "route_zfailover". Threads: one worker.
#pragma once

#include <cstdint>
#include <optional>

#include "route/waiting_route.h"

namespace kvferry::route {

struct FailoverOptions {
  /// Misses of reads are no reason to stop, only hits are.
  bool goes_on_after_miss = false;
  /// Most children that one request is sent to; 0: all.
  std::uint32_t tries_max = 0;
  /// A new order for each request, of the children from `fixed_children` on.
  bool shuffles = false;
  std::uint32_t fixed_children = 0;
  /// How long one child is waited for.
  std::optional<base::Micros> wait{};
  std::uint64_t seed = 1;
};

/// Tries its children one after the other, until one gives a good answer. Without any: the last
/// miss, else the last answer. Counts each try after a request's first.
class FailoverRoute final : public WaitingRoute {
 public:
  FailoverRoute(const RouteSetup& setup, const FailoverOptions& options);

 private:
  void start(RouteRun& run) override;
  void on_wait_over(RouteRun& run) override;

  void go_on(RouteRun& run);
  bool is_good(const RouteRun& run, std::uint32_t child) const;
  /// A good answer among the tries so far; those that came late included.
  std::optional<std::uint32_t> find_good(const RouteRun& run) const;
  void answer_without_good(RouteRun& run);
  void shuffle(RouteRun& run);

  FailoverOptions options_;
  std::uint32_t tries_max_;
  std::uint64_t random_state_;
};

/// Asks its first child, the one nearby; unless that gives a good answer, all others at once, and
/// answers with the first hit, else with the best. Counts requests that were sent to the others.
class ZoneFailoverRoute final : public WaitingRoute {
 public:
  ZoneFailoverRoute(const RouteSetup& setup, bool goes_on_after_miss)
      : WaitingRoute(setup), goes_on_after_miss_(goes_on_after_miss) {}

 private:
  void start(RouteRun& run) override;
  void on_wait_over(RouteRun& run) override;

  bool goes_on_after_miss_;
};

}  // namespace kvferry::route
