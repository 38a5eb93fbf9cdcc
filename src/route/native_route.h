// NativeRoute: a routing policy that runs without any script: one object serves any number of
// requests at once.
//
// A route is sent client requests as they came, or sub-requests of another route, which are blanked
// already. What a backend or the store gets is always blanked (RouteRequest::wire), so that it
// answers; whether the client sees the answer is decided by call.quiet, which the route sets.
//
// Source:    docs/routelib.md.
// Lifetime:  children and the host outlive the route; it may be destroyed when nothing of it is
//            under way, as RouteHost::hold() and let_go() tell.
// Threads:   one worker.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "call/call.h"
#include "net/loop.h"
#include "route/route_event.h"
#include "route/route_reply.h"
#include "route/route_request.h"

namespace kvferry::route {

/// Where a route sends requests.
struct RouteChild {
  call::Target* target = nullptr;
  /// It decides itself what the client sees, and so gets the client's request unchanged.
  bool is_route = false;
};

/// Whom a route tells what happens in it.
class RouteHost {
 public:
  /// A reply of somebody whose answers are to be logged (call::ReplyLogging) has come.
  virtual void on_logged_reply(const RouteReply& reply, const RouteRequest& request,
                               int client_fd) = 0;
  virtual void count(RouteEvent event) = 0;
  /// A request that is answered still has sub-requests in flight; and none any more.
  virtual void on_lingering() = 0;
  virtual void on_lingered() = 0;
  /// So many bytes more of values and replies are kept; and so many are not any more.
  virtual void on_kept(std::size_t bytes) = 0;
  virtual void on_dropped(std::size_t bytes) = 0;
  /// The route must live; and as far as this request goes, it need not any more.
  virtual void hold() = 0;
  virtual void let_go() = 0;

 protected:
  ~RouteHost() = default;
};

struct RouteSetup {
  net::Loop& loop;
  call::CallPool& calls;
  RouteHost& host;
  std::vector<RouteChild> children;
};

inline constexpr std::string_view kBackendFailureLine = "SERVER_ERROR backend failure\r\n";

class NativeRoute : public call::Target {
 public:
  explicit NativeRoute(RouteSetup setup) : setup_(std::move(setup)) {}
  NativeRoute(const NativeRoute&) = delete;
  NativeRoute& operator=(const NativeRoute&) = delete;

  /// The child that a request for `key` is handed to without anything else being done; null when
  /// there is more to do, or no child.
  virtual const RouteChild* select(memcache::Command /*command*/, std::string_view /*key*/) const {
    return nullptr;
  }

 protected:
  net::Loop& loop() const { return setup_.loop; }
  call::CallPool& calls() const { return setup_.calls; }
  RouteHost& host() const { return setup_.host; }
  const std::vector<RouteChild>& children() const { return setup_.children; }

  /// A request goes to a child that is no route: its value is kept until there is an answer.
  void keep_value(call::Call& call, const memcache::Request& request) const;
  /// Hands the call itself on to `child`, which answers it.
  void pass(call::Call& call, const memcache::Request& request, const RouteChild& child);
  /// Answers as if no item existed.
  static void answer_null(call::Call& call, const memcache::Request& request);
  /// Answers with a line of the route's own.
  static void answer_line(call::Call& call, const memcache::Request& request, std::string_view line,
                          memcache::ReplyCode code);

 private:
  RouteSetup setup_;
  RouteRequest blanked_;  // Used within pass() only.
};

}  // namespace kvferry::route
