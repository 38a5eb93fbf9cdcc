#include "pool/mcp_pool.h"

#include <charconv>
#include <string>
#include <utility>

#include "pool/placement.h"

namespace kvferry::pool {

namespace {

ServerOptions server_of(const McpBackendOptions& backend) {
  ServerOptions server;
  server.host = backend.host;
  server.label = backend.label;
  std::from_chars(backend.port.data(), backend.port.data() + backend.port.size(), server.port);
  return server;
}

}  // namespace

base::Result<std::shared_ptr<const Placement>> place_mcp_pool(const McpPoolOptions& options) {
  std::vector<ServerOptions> servers;
  servers.reserve(options.backends.size());
  for (const auto& backend : options.backends) {
    servers.push_back(server_of(*backend));
  }
  return Placement::make(options.placement, servers, std::vector<bool>(servers.size(), true));
}

McpPool::McpPool(std::shared_ptr<const McpPoolOptions> options, McpBackends& backends)
    : options_(std::move(options)), placement_(options_->placed) {
  if (placement_ == nullptr) {
    if (auto placed = place_mcp_pool(*options_)) {
      placement_ = std::move(placed).value();
    }
  }
  for (const auto& backend : options_->backends) {
    backends_.push_back(backends.acquire(options_->prefix, backend, options_->is_process_wide));
  }
}

McpPool::~McpPool() = default;

McpServer* McpPool::select(std::string_view key) {
  const std::uint32_t index =
      placement_ == nullptr ? kNoServer : placement_->select(key, random_state_);
  return index == kNoServer ? nullptr : backends_[index].get();
}

void McpPool::send(call::Call& call, const memcache::Request& request) {
  McpServer* const server = select(request.key);
  if (server == nullptr || !request.has_complete_value) {
    answer_mcp_failure(call);
    return;
  }
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the value lies behind the line
  const std::string_view bytes(request.line.data(), request.size_bytes);
  server->forward(call, bytes);
}

}  // namespace kvferry::pool
