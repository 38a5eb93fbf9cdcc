// Backends and pools as scripts describe them: mcp.backend and mcp.pool of memcached's built-in
// proxy.
//
// Made on the control side, immutable once published, shared by all workers.
// Source:    docs/lua.md, "Backends" and "Pools".
// Units:     as the types say.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "call/answerer.h"
#include "net/tls_context.h"
#include "pool/options.h"
#include "pool/placement.h"

namespace kvferry::pool {

inline constexpr std::uint32_t kMcpConnectionsMax = 8;

struct McpBackendOptions {
  std::string label;  // Identity across reloads and in statistics.
  std::string host;   // Name or address.
  std::string port;
  base::Micros connect_timeout{5'000'000};
  base::Micros read_timeout{3'000'000};
  base::Seconds retry_waittime{3};
  std::uint32_t failure_limit = 3;  // Failures in a row that are tolerated; one more marks bad.
  std::uint32_t depth_limit = 0;    // Queue length above which new requests fail; 0: none.
  base::Micros flap_time{0};        // A connection must outlive this to count as stable; 0: off.
  double flap_backoff_ramp = 1.5;
  base::Seconds flap_backoff_max{3600};
  bool tcp_keepalive = false;
  bool is_tls = false;
  net::TlsContextPtr tls;         // Of a backend with is_tls, once a pool names it.
  bool is_down = false;           // Never connected to; every request fails.
  std::uint32_t connections = 1;  // Per owner.
  call::ReplyLogging logging;

  friend bool operator==(const McpBackendOptions&, const McpBackendOptions&) = default;
};

struct McpPoolOptions {
  std::vector<std::shared_ptr<const McpBackendOptions>> backends;  // In array order; may be empty.
  PlacementOptions placement;
  /// Made from the two by place_mcp_pool(), once for all workers; null: each makes its own.
  std::shared_ptr<const Placement> placed;
  /// Of the key under which backends are shared: other prefix, other connections.
  std::string prefix;
  /// Whether gets of several keys ask a backend once for all of its keys; unset: as the route is.
  std::optional<bool> has_wide_gets;
  bool is_process_wide = false;  // One set of connections for the whole process ("iothread").
};

}  // namespace kvferry::pool
