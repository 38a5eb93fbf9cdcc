// A pool while its keys are being read, before defaults that depend on other keys are settled.
//
// Lifetime: nodes belong to the tree of the file.
// Threads:  plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/model.h"
#include "config/yaml_tree.h"

namespace kvferry::config {

struct ListenerDraft {
  Endpoint endpoint;
  std::optional<std::uint32_t> backlog;
  std::optional<std::uint32_t> max_clients;
  bool is_admin = false;
  std::optional<ListenerProtocol> protocol;
  std::optional<net::TlsOptions> tls;
  const Node* node = nullptr;  // What names the address.
};

struct PoolDraft {
  PoolConfig config;
  const Node* name_node = nullptr;
  const Node* node = nullptr;     // The mapping of the pool.
  std::size_t errors_before = 0;  // Errors reported when the pool began.
  std::vector<ListenerDraft> listeners;
  std::vector<const Node*> server_nodes;  // One per entry of config.options.servers.
  std::uint32_t backlog = 512;            // For listeners that have none of their own.
  std::uint32_t max_clients = 0;
  bool reuse_port = false;
  bool auto_eject_hosts = false;
  bool has_weights = false;             // At least one server has a weight.
  std::optional<pool::OnDown> on_down;  // None: from auto_eject_hosts.
  bool redis = false;
  std::optional<PoolProtocol> protocol;  // None: from `redis`.
};

}  // namespace kvferry::config
