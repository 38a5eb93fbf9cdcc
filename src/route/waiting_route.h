// WaitingRoute: a route that sends sub-requests and looks at what comes back. RouteRun: one request
// on its way through it.
//
//   Free --begin()--> Running --answer_...()--> Answered --last sub-request answered--> Free
//
// Handle i of a run's context is child i of the route.
//
// Lifetime:  runs belong to their route; a freed one serves a later request.
// Threads:   one worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "net/loop.h"
#include "route/context.h"
#include "route/native_route.h"

namespace kvferry::route {

/// Free runs that a route keeps for later requests; more are given up at the end of the turn.
inline constexpr std::size_t kFreeRunsMax = 256;

class WaitingRoute;

/// What a route keeps beside a run.
class RunNote {
 protected:
  ~RunNote() = default;
};

class RouteRun final : private ContextHost {
 public:
  explicit RouteRun(WaitingRoute& route);

  /// Begins a request.
  void begin(call::Call& call, const memcache::Request& request);
  /// Marks a child to be sent the request by the next wait.
  void enqueue(std::uint32_t child) { context_.enqueue(child, request_); }
  void enqueue_all();
  Context& context() { return context_; }
  RouteRequest& request() { return request_; }
  std::uint32_t child_count() const { return context_.handle_count(); }
  /// A definite answer, no miss of a read and no error, has come from `child`.
  bool is_hit(std::uint32_t child) const { return context_.class_of(child) == ResultClass::Good; }
  /// An answer that is no error has come.
  bool is_ok(std::uint32_t child) const {
    return is_hit(child) || context_.class_of(child) == ResultClass::Ok;
  }

  // The answer to the client; each ends the run, which is not to be touched any more.

  /// What came back from `child`; a failure when nothing has.
  void answer_with(std::uint32_t child);
  /// What `reply` says, which may be that of another run.
  void answer_like(const RouteReply& reply);
  /// An answer that the route has composed.
  void answer_text(std::string_view bytes, memcache::ReplyCode code);
  /// Context::best_of() all children.
  void answer_with_best();
  /// As if no item existed.
  void answer_null();
  void answer_failure();

  // Notes of the route.

  std::uint32_t tries = 0;
  std::uint64_t mark = 0;
  base::SteadyTime begun{};
  RunNote* note = nullptr;  // The route's own, which outlives its use here.
  /// The children in the order of this request, where that is not the route's own.
  std::vector<std::uint32_t> order;

 private:
  friend class WaitingRoute;

  // ContextHost
  Verdict on_arrival(std::uint32_t handle, ResultClass natural) override;
  void on_wait_over(bool has_timed_out) override;
  void on_settled() override;

  void keep(std::size_t bytes);
  void answer(std::string_view bytes, memcache::ReplyCode code, call::ReplyOrigin origin);
  void free();

  WaitingRoute& route_;
  RouteRequest request_;
  Context context_;
  call::Call* call_ = nullptr;  // Until it is answered.
  std::size_t kept_bytes_ = 0;  // Of the request's value and of the replies.
  std::uint64_t serial_ = 0;    // Which request this is.
};

class WaitingRoute : public NativeRoute {
 public:
  explicit WaitingRoute(const RouteSetup& setup);
  ~WaitingRoute() override;

  void send(call::Call& call, const memcache::Request& request) final;
  std::size_t free_runs_for_test() const { return free_.size(); }

 protected:
  /// Enqueues and waits, or answers.
  virtual void start(RouteRun& run) = 0;
  /// What `run` has waited for has come, or its time is over.
  virtual void on_wait_over(RouteRun& run) = 0;

 private:
  friend class RouteRun;

  void put_back(RouteRun& run);
  void trim();

  std::vector<std::unique_ptr<RouteRun>> runs_;  // All.
  std::vector<RouteRun*> free_;
  std::vector<call::Target*> targets_;
  std::vector<std::uint32_t> indexes_;  // Of all children.
  net::Task trim_task_;
};

}  // namespace kvferry::route
