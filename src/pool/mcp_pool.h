// McpPool: the backends of a script behind one hash, as a target for calls.
//
// Requests go to the backend of their key as they are, whatever they ask; a bad backend is not
// skipped. Several keys in one request are not split: others do that (McpGets, route::SplitGet).
//
// Source:    docs/lua.md, "Pools".
// Threads:   one worker; place_mcp_pool() anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "call/call.h"
#include "pool/mcp_backends.h"
#include "pool/mcp_options.h"

namespace kvferry::pool {

/// Computes the placement, once for all workers: the value of McpPoolOptions::placed. An error when
/// the options cannot be served.
base::Result<std::shared_ptr<const Placement>> place_mcp_pool(const McpPoolOptions& options);

class McpPool final : public call::Target {
 public:
  /// Connections are opened, or shared, by this. Where options.placed is null the pool makes a
  /// placement of its own; one that cannot be made is like a pool without backends.
  McpPool(std::shared_ptr<const McpPoolOptions> options, McpBackends& backends);
  ~McpPool() override;

  /// A request whose value has not come whole is answered with the failure line: routes that a
  /// script decides collect requests first.
  void send(call::Call& call, const memcache::Request& request) override;

  /// The server of `key`; null when there is none.
  McpServer* select(std::string_view key);

  const McpPoolOptions& options() const { return *options_; }
  const Placement* placement() const { return placement_.get(); }
  const std::vector<std::shared_ptr<McpServer>>& backends() const { return backends_; }

 private:
  std::shared_ptr<const McpPoolOptions> options_;
  std::shared_ptr<const Placement> placement_;        // Null: there is none.
  std::vector<std::shared_ptr<McpServer>> backends_;  // In the order of the options.
  std::uint64_t random_state_ = 1;                    // Asked for by Placement, and not used.
};

}  // namespace kvferry::pool
