#include "config/pool_reader.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "config/address_text.h"

namespace kvferry::config {
namespace {

constexpr std::array<std::string_view, 16> kDynomiteMarks = {
    "dyn_listen",        "dyn_seeds",
    "dyn_seed_provider", "dyn_port",
    "dyn_connections",   "dyn_read_timeout",
    "dyn_write_timeout", "tokens",
    "datacenter",        "rack",
    "data_store",        "gos_interval",
    "enable_gossip",     "secure_server_option",
    "read_consistency",  "write_consistency"};

AddressRules rules_of(Dialect dialect) {
  const bool is_ours = dialect == Dialect::Kvferry;
  return {.port_zero_allowed = is_ours, .weight_may_be_missing = is_ours};
}

void fail_address(const Node& node, std::string_view key, const AddressError& error,
                  Reader& reader) {
  reader.fail(node, error.code, key,
              error.names_key ? fmt::format("'{}' {}", key, error.message) : error.message);
}

bool read_endpoint(const Node& node, std::string_view key, Reader& reader, Endpoint& out) {
  const AddressError error = parse_endpoint(node.text, rules_of(reader.dialect()), out);
  if (error.is_set()) {
    fail_address(node, key, error, reader);
  }
  return !error.is_set();
}

/// One entry of a list: an address, or a mapping with one.
void read_listener(const Node& node, Reader& reader, std::vector<ListenerDraft>& listeners) {
  ListenerDraft listener;
  listener.node = &node;
  if (node.is_scalar()) {
    if (read_endpoint(node, "listen", reader, listener.endpoint)) {
      listeners.push_back(std::move(listener));
    }
    return;
  }
  if (!node.is_mapping()) {
    reader.fail(node, "E-type", "listen",
                fmt::format("an entry of 'listen' must be an address or a mapping, found {}",
                            node.kind_text()));
    return;
  }
  const Node::Entry* address = node.find("address");
  if (address == nullptr) {
    reader.fail(node, "E-missing", "address", "'address' is missing in an entry of 'listen'");
    return;
  }
  listener.node = address->value;
  reader.read_mapping(node, listener_keys(),
                      {.noun = "an entry of 'listen'",
                       .path = {},
                       .reserved = reserved_listener_keys(),
                       .is_process = false},
                      listener);
  listeners.push_back(std::move(listener));
}

void set_dialect_defaults(Dialect dialect, pool::PoolOptions& options) {
  if (dialect == Dialect::Kvferry) {
    options.timeout = base::Millis(1000);
    return;
  }
  // twemproxy's values where they differ from ours (docs/configuration.md has both columns).
  options.timeout.reset();
  options.tcpkeepalive = false;
  options.failure_limit = 2;
  options.error_style = pool::ErrorStyle::Twemproxy;
  options.redis.databases = 1;
}

std::string_view pool_noun(Dialect dialect) {
  return dialect == Dialect::Kvferry ? "a pool" : "a nutcracker pool";
}

}  // namespace

DialectChoice choose_dialect(const Node& node) {
  if (const Node::Entry* entry = node.find("dialect")) {
    if (entry->value->text == "dynomite") {
      return {Dialect::Dynomite, entry->key};
    }
    const bool is_ours = entry->value->text == "kvferry";
    return {is_ours ? Dialect::Kvferry : Dialect::Nutcracker, entry->key};
  }
  for (const Node::Entry& entry : node.entries) {
    if (std::find(kDynomiteMarks.begin(), kDynomiteMarks.end(), entry.key->text) !=
        kDynomiteMarks.end()) {
      return {Dialect::Dynomite, entry.key};
    }
  }
  if (const Node::Entry* entry = node.find("protocol")) {
    return {Dialect::Kvferry, entry->key};
  }
  return {};
}

std::optional<PoolDraft> read_pool(const Node& name_node, const Node& node, Reader& reader) {
  const DialectChoice choice = choose_dialect(node);
  reader.enter_pool(name_node.text, choice.dialect, node.find("dialect") != nullptr);
  if (name_node.text.empty()) {
    reader.fail(name_node, "E-empty", "", "a pool has an empty name");
    return std::nullopt;
  }
  if (!node.is_mapping()) {
    reader.fail(node.is_absent() ? name_node : node, node.is_absent() ? "E-empty" : "E-type", "",
                fmt::format("pool '{}' must be a mapping of keys, found {}", name_node.text,
                            node.is_absent() ? "nothing" : node.kind_text()),
                "keys such as 'listen' and 'servers' stand indented below the name of the pool");
    return std::nullopt;
  }
  if (choice.dialect == Dialect::Dynomite) {
    reader.fail(*choice.key, "E-unsupported", choice.key->text,
                fmt::format("'{}' makes this a Dynomite pool; those are not available yet in this "
                            "version",
                            choice.key->text));
    return std::nullopt;
  }
  PoolDraft pool;
  pool.name_node = &name_node;
  pool.node = &node;
  pool.errors_before = reader.error_count();
  pool.config.name = name_node.text;
  pool.config.where = reader.position(name_node);
  pool.config.dialect = choice.dialect;
  pool.config.options.name = name_node.text;
  set_dialect_defaults(choice.dialect, pool.config.options);
  reader.read_mapping(node, pool_keys(),
                      {.noun = pool_noun(choice.dialect),
                       .path = {},
                       .reserved = reserved_pool_keys(),
                       .is_process = false},
                      pool);
  return pool;
}

void read_listen(const Value& value, Reader& reader, std::vector<ListenerDraft>& listeners) {
  const Node& node = *value.node;
  if (!node.is_sequence()) {
    read_listener(node, reader, listeners);
    return;
  }
  if (node.items.empty() || node.items.size() > kListenersMax) {
    reader.fail(node, "E-range", "listen",
                fmt::format("'listen' must have 1 to {} entries, found {}", kListenersMax,
                            node.items.size()));
    return;
  }
  for (const Node* item : node.items) {
    read_listener(*item, reader, listeners);
  }
}

void read_servers(const Value& value, Reader& reader, PoolDraft& pool) {
  const Node& list = *value.node;
  if (list.items.empty() || list.items.size() > kServersMax) {
    reader.fail(list, "E-range", "servers",
                fmt::format("'servers' must have 1 to {} entries, found {}", kServersMax,
                            list.items.size()));
    return;
  }
  for (const Node* item : list.items) {
    if (reader.is_full()) {
      return;
    }
    if (!item->is_scalar()) {
      reader.fail(*item, "E-type", "servers",
                  fmt::format("an entry of 'servers' must be text, found {}", item->kind_text()));
      continue;
    }
    pool::ServerOptions server;
    bool has_weight = false;
    const AddressError error =
        parse_server(item->text, rules_of(reader.dialect()), server, has_weight);
    if (error.is_set()) {
      fail_address(*item, "servers", error, reader);
      continue;
    }
    server.line = item->start.line;
    pool.has_weights = pool.has_weights || has_weight;
    pool.config.options.servers.push_back(std::move(server));
    pool.server_nodes.push_back(item);
  }
}

void note_client_connections(const Value& value, Reader& reader) {
  if (value.number != 0 && reader.dialect() != Dialect::Kvferry) {
    reader.note_once(Severity::Notice, *value.key_node, "N01", "client_connections",
                     "client_connections is honoured here; twemproxy and Dynomite ignore it");
  }
}

}  // namespace kvferry::config
