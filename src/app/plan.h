// Plan: what control tells workers to be. Immutable; a worker takes it over whole, between two
// turns.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/route_plan.h"
#include "front/service.h"
#include "net/address.h"
#include "pool/snapshot.h"

namespace kvferry::app {

struct ListenerPlan {
  net::Address address;  // The bound one; identifies the listener over reloads.
  std::string pool;      // Name of its pool; empty for the embedded store.
  std::string routes;    // Not empty: the entry of `routes` that it belongs to, and no pool.
  std::string tag;       // Which hooks of scripts are for it; empty: those without a tag.
  front::ServiceOptions service;
  net::ListenOptions listen;
  std::shared_ptr<front::ClientLimit> clients;  // Of this listener, over all workers.
};

struct Plan {
  std::vector<std::shared_ptr<const pool::PoolSnapshot>> pools;
  RoutePlans routes;
  std::vector<ListenerPlan> listeners;
};

}  // namespace kvferry::app
