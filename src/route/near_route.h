// NearRoute: keeps what its child has answered to reads for a short time, and answers the next
// reads of the key itself.
//
// Nothing that is served is older than the time to live, counted from when its read was sent. A
// write, delete or touch that goes through the route drops the copy before it is sent and again
// when it is answered; what a racing read brings is not kept (NearCopies).
//
// Served from copies: get, gets (when the copy has the backend's CAS unique), and mg with no flags
// but v, f, s, c, k, O, q. Other flags of mg are for the backend to answer.
// Source: docs/routelib.md, "route_nearcache". Threads: one worker.
#pragma once

#include <string>
#include <utility>

#include "route/near_copies.h"
#include "route/waiting_route.h"

namespace kvferry::route {

class NearRoute final : public WaitingRoute {
 public:
  /// `store` is where it keeps copies. `clock` outlives the route.
  NearRoute(const RouteSetup& setup, NearStore store, const StoreTarget& clock,
            const NearOptions& options)
      : WaitingRoute(setup), copies_(std::move(store), clock, options) {}

 private:
  void start(RouteRun& run) override;
  void on_wait_over(RouteRun& run) override;

  void start_read(RouteRun& run, const memcache::MetaFlags& flags);
  void forward(RouteRun& run);
  void take_reply(RouteRun& run);
  bool compose(const memcache::Request& request, const memcache::MetaFlags& flags,
               const NearItem& item);
  void compose_classic(const memcache::Request& request, const NearItem& item);
  void compose_meta(const memcache::Request& request, const memcache::MetaFlags& flags,
                    const NearItem& item);

  NearCopies copies_;
  std::string reply_;  // Used within start() only.
};

}  // namespace kvferry::route
