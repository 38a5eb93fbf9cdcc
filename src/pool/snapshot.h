// PoolSnapshot: everything that control decides about a pool, immutable, handed to every worker.
//
// A new one is published when the configuration, an address or the health of a backend changes;
// what is in use lives on until its last holder lets go.
#pragma once

#include <memory>
#include <vector>

#include "net/address.h"
#include "net/tls_context.h"
#include "pool/health.h"
#include "pool/options.h"
#include "pool/placement.h"

namespace kvferry::pool {

struct PoolSnapshot {
  PoolOptions options;
  std::shared_ptr<const Placement> placement;
  std::vector<net::Address> addresses;  // One per server; unset while a name has no address.
  std::vector<std::shared_ptr<BackendHealth>> health;  // One per server.
  net::TlsContextPtr tls;                              // Null: connections in clear.
};

}  // namespace kvferry::pool
