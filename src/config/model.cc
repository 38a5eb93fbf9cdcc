#include "config/model.h"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

#include "config/choices.h"

namespace kvferry::config {
namespace {

pool::PoolOptions without_positions(pool::PoolOptions options) {
  for (pool::ServerOptions& server : options.servers) {
    server.line = 0;
  }
  return options;
}

}  // namespace

std::optional<IoEngine> parse_io_engine(std::string_view word) noexcept {
  const auto* const found = std::find(kIoWords.begin(), kIoWords.end(), word);
  if (found == kIoWords.end()) {
    return std::nullopt;
  }
  return static_cast<IoEngine>(found - kIoWords.begin());
}

std::string Endpoint::to_string() const {
  if (is_unix()) {
    return path;
  }
  const bool is_v6 = host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

bool operator==(const ListenerOptions& left, const ListenerOptions& right) {
  const auto members = [](const ListenerOptions& one) {
    return std::tie(one.endpoint, one.backlog, one.max_clients, one.is_admin, one.protocol,
                    one.reuse_port, one.tag, one.tls);
  };
  return members(left) == members(right);
}

bool operator==(const PoolConfig& left, const PoolConfig& right) {
  return std::tie(left.name, left.protocol, left.listeners, left.client_idle_timeout,
                  left.redis_auth) == std::tie(right.name, right.protocol, right.listeners,
                                               right.client_idle_timeout, right.redis_auth) &&
         without_positions(left.options) == without_positions(right.options);
}

bool operator==(const RouteConfig& left, const RouteConfig& right) {
  return std::tie(left.name, left.listeners, left.client_idle_timeout, left.spec) ==
         std::tie(right.name, right.listeners, right.client_idle_timeout, right.spec);
}

bool operator==(const ProcessOptions& left, const ProcessOptions& right) {
  const auto members = [](const ProcessOptions& one) {
    return std::tie(one.workers, one.io, one.memory_limit_bytes, one.item_bytes_max, one.log.file,
                    one.log.level, one.log.format, one.admin, one.store, one.drain_timeout,
                    one.watch, one.reload_on_hup, one.routes);
  };
  return members(left) == members(right);
}

const PoolConfig* Model::find_pool(std::string_view name) const noexcept {
  for (const PoolConfig& pool : pools) {
    if (pool.name == name) {
      return &pool;
    }
  }
  return nullptr;
}

}  // namespace kvferry::config
