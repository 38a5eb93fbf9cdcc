// Routes that send each request to all of their children.
//
// Source: docs/routelib.md. Threads: one worker.
#pragma once

#include <cstdint>
#include <optional>

#include "route/waiting_route.h"

namespace kvferry::route {

/// Answers with the first answer that is no error (or, with `wants_hit`, the first hit), else with
/// the best of all.
class AllFastestRoute final : public WaitingRoute {
 public:
  AllFastestRoute(const RouteSetup& setup, bool wants_hit, std::optional<base::Micros> wait)
      : WaitingRoute(setup), wants_hit_(wants_hit), wait_(wait) {}

 private:
  void start(RouteRun& run) override;
  void on_wait_over(RouteRun& run) override;

  bool wants_hit_;
  std::optional<base::Micros> wait_;
};

/// Waits for all; answers with the first error in the order of the children, else with the last
/// child's answer.
class AllSyncRoute final : public WaitingRoute {
 public:
  using WaitingRoute::WaitingRoute;

 private:
  void start(RouteRun& run) override;
  void on_wait_over(RouteRun& run) override;
};

/// Waits for none, and answers as if no item existed.
class AllAsyncRoute final : public WaitingRoute {
 public:
  using WaitingRoute::WaitingRoute;

 private:
  void start(RouteRun& run) override;
  void on_wait_over(RouteRun& run) override;
};

/// Waits for its first child and answers with what that says. With that child only it is a direct
/// route that looks at the answers.
class SplitRoute final : public WaitingRoute {
 public:
  using WaitingRoute::WaitingRoute;

 private:
  void start(RouteRun& run) override;
  void on_wait_over(RouteRun& run) override;
};

}  // namespace kvferry::route
