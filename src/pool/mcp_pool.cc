#include "pool/mcp_pool.h"

#include <charconv>
#include <string>
#include <utility>

#include "base/check.h"
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

base::Result<std::shared_ptr<const McpPoolOptions>> publish_mcp_pool(McpPoolOptions options) {
  std::vector<ServerOptions> servers;
  for (const auto& backend : options.backends) {
    servers.push_back(server_of(*backend));
  }
  auto placement =
      Placement::make(options.placement, servers, std::vector<bool>(servers.size(), true));
  if (!placement) {
    return placement.error();
  }
  options.placed = std::move(placement).value();
  return std::shared_ptr<const McpPoolOptions>(
      std::make_shared<McpPoolOptions>(std::move(options)));
}

McpPool::McpPool(std::shared_ptr<const McpPoolOptions> options, McpBackends& backends)
    : options_(std::move(options)) {
  KVF_CHECK(options_->placed != nullptr);
  for (const auto& backend : options_->backends) {
    backends_.push_back(backends.acquire(options_->prefix, backend));
  }
}

McpPool::~McpPool() = default;

void McpPool::send(call::Call& call, const memcache::Request& request) {
  const std::uint32_t index = options_->placed->select(request.key, random_state_);
  if (index == kNoServer || !request.has_complete_value) {
    answer_mcp_failure(call);
    return;
  }
  backends_[index]->forward(call, std::string_view(request.line.data(), request.size_bytes));
}

}  // namespace kvferry::pool
