#include "config/rules.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "config/choices.h"
#include "pool/placement.h"
#include "pool/server_label.h"

namespace kvferry::config {
namespace {

/// Share of keys a server may be off its weight before W11 says so.
constexpr double kSpreadTolerance = 0.20;
/// Servers that W10 and W11 name before they only count the rest.
constexpr std::size_t kSharesShownMax = 8;

const Node& key_or_name(const PoolDraft& pool, std::string_view key) {
  const Node::Entry* entry = pool.node->find(key);
  return entry == nullptr ? *pool.name_node : *entry->key;
}

const Node& value_or_name(const PoolDraft& pool, std::string_view key) {
  const Node::Entry* entry = pool.node->find(key);
  return entry == nullptr ? *pool.name_node : *entry->value;
}

/// Keys that mean nothing where memcached is spoken.
constexpr std::string_view kRedisOnlyKeys[] = {"redis_auth",     "redis_user", "databases",
                                               "db_base",        "same_slot",  "broadcast_timeout",
                                               "max_merge_bytes"};

void check_protocol(PoolDraft& pool, Reader& reader) {
  if (pool.redis && pool.protocol.value_or(PoolProtocol::Redis) != PoolProtocol::Redis) {
    reader.fail(value_or_name(pool, "redis"), "E-range", "redis",
                "'redis: true' contradicts 'protocol'", "remove one of the two");
    return;
  }
  pool.config.protocol =
      pool.protocol.value_or(pool.redis ? PoolProtocol::Redis : PoolProtocol::Memcache);
  if (!pool.config.is_redis()) {
    for (const std::string_view key : kRedisOnlyKeys) {
      if (pool.node->find(key) != nullptr) {
        reader.fail(key_or_name(pool, key), "E-missing", key,
                    fmt::format("'{}' needs 'redis: true', which is missing", key));
      }
    }
    pool.config.options.redis = {};
    return;
  }
  pool.config.options.protocol = pool::Protocol::Redis;
  if (pool.node->find("redis_db") != nullptr && pool.node->find("db_base") != nullptr) {
    reader.fail(key_or_name(pool, "db_base"), "E-range", "db_base",
                "'db_base' says the same as 'redis_db'", "remove one of the two");
  }
}

void check_required(const PoolDraft& pool, Reader& reader) {
  if (pool.node->find("listen") == nullptr) {
    reader.expect_reference(pool.config.name, *pool.name_node);
  }
  const bool is_store = pool.config.protocol == PoolProtocol::Store;
  const Node::Entry* servers = pool.node->find("servers");
  if (is_store && servers != nullptr) {
    reader.fail(*servers->key, "E-unsupported", "servers",
                "'servers' has no use in a pool with protocol: store, which keeps items itself",
                "remove the key, or write protocol: memcache");
  }
  if (!is_store && servers == nullptr) {
    reader.fail(*pool.name_node, "E-missing", "servers", "'servers' is missing",
                "add a list such as servers: [\"10.0.0.1:11211:1\"]");
  }
}

void check_tls(const PoolDraft& pool, Reader& reader) {
  const pool::PoolOptions& options = pool.config.options;
  if (!options.tls) {
    return;
  }
  const Node& key = key_or_name(pool, "tls");
  if (pool.config.protocol == PoolProtocol::Store) {
    reader.fail(key, "E-unsupported", "tls",
                "'tls' of a pool is for its servers, and a pool with protocol: store has none",
                "TLS for clients stands in an entry of 'listen'");
    return;
  }
  const bool has_unix =
      std::any_of(options.servers.begin(), options.servers.end(),
                  [](const pool::ServerOptions& server) { return server.is_unix; });
  if (has_unix && options.tls->verify == net::TlsVerify::Full && options.tls->sni.empty()) {
    reader.fail(key, "E-missing", "sni",
                "'sni' is missing in 'tls': servers on Unix sockets have no name to verify",
                "write the name in their certificate, or verify: ca");
  }
}

void check_server_names(PoolDraft& pool, Reader& reader) {
  std::map<std::string, const Node*, std::less<>> seen;
  std::vector<pool::ServerOptions>& servers = pool.config.options.servers;
  for (std::size_t index = 0; index < servers.size(); ++index) {
    pool::fill_labels(servers[index]);
    const Node& node = *pool.server_nodes[index];
    const auto [first, is_new] = seen.emplace(servers[index].label, &node);
    if (!is_new) {
      reader.fail(node, "E-dup", "servers",
                  fmt::format("server name '{}' is used twice; first at {}. Names place keys, so "
                              "they must differ",
                              servers[index].label, reader.position(*first->second).to_string()));
    }
  }
}

void check_backoff(const PoolDraft& pool, Reader& reader) {
  if (pool.config.options.backoff_min > pool.config.options.backoff_max) {
    const bool has_min = pool.node->find("backoff_min") != nullptr;
    reader.fail(value_or_name(pool, has_min ? "backoff_min" : "backoff_max"), "E-range",
                "backoff_min",
                fmt::format("'backoff_min' ({} ms) must not be above 'backoff_max' ({} ms)",
                            pool.config.options.backoff_min.count(),
                            pool.config.options.backoff_max.count()));
  }
}

void check_jump(const PoolDraft& pool, Reader& reader) {
  if (pool.config.options.placement.distribution != pool::DistributionKind::Jump) {
    return;
  }
  const std::vector<pool::ServerOptions>& servers = pool.config.options.servers;
  for (std::size_t index = 0; index < servers.size(); ++index) {
    if (servers[index].weight != 1) {
      reader.fail(*pool.server_nodes[index], "E-range", "servers",
                  fmt::format("'distribution: jump' has no weights, so each must be 1, found {}",
                              servers[index].weight),
                  "distribution: rendezvous has weights");
      return;
    }
  }
}

std::string shares_text(const std::vector<pool::ServerOptions>& servers,
                        const std::vector<pool::Placement::Share>& shares) {
  std::string out;
  for (std::size_t index = 0; index < shares.size() && index < kSharesShownMax; ++index) {
    out +=
        fmt::format("{}{} {:.2f} % (weight asks for {:.2f} %)", out.empty() ? "" : ", ",
                    servers[index].label, shares[index].actual * 100, shares[index].expected * 100);
  }
  if (shares.size() > kSharesShownMax) {
    out += fmt::format(" and {} more", shares.size() - kSharesShownMax);
  }
  return out;
}

/// W10 and W11. Makes the ring as traffic will see it, so the numbers are the real ones.
void check_spread(const PoolDraft& pool, Reader& reader) {
  const pool::PoolOptions& options = pool.config.options;
  if (options.placement.distribution != pool::DistributionKind::Ketama || options.servers.empty()) {
    return;
  }
  const auto placement = pool::Placement::make(options.placement, options.servers,
                                               std::vector<bool>(options.servers.size(), true));
  const Node& where = key_or_name(pool, "servers");
  if (!placement) {
    reader.fail(where, "E-range", "servers", placement.error().text());
    return;
  }
  const std::vector<pool::Placement::Share> shares = (*placement)->shares();
  const bool is_starved = std::any_of(shares.begin(), shares.end(),
                                      [](const auto& share) { return share.points == 0; });
  const bool is_uneven = std::any_of(shares.begin(), shares.end(), [](const auto& share) {
    return std::abs(share.actual - share.expected) > kSpreadTolerance * share.expected;
  });
  if (options.servers.size() > 1 && is_starved) {
    reader.note(Severity::Warning, where, "W10", "servers",
                fmt::format("weights are so uneven that a server gets no keys: {}",
                            shares_text(options.servers, shares)),
                "make the weights more alike, or use distribution: rendezvous");
  } else if (options.servers.size() > 1 && is_uneven) {
    reader.note(Severity::Warning, where, "W11", "servers",
                fmt::format("the ketama ring spreads keys more than 20 % off the weights: {}",
                            shares_text(options.servers, shares)),
                "more servers, or distribution: rendezvous, spread better; both move keys");
  }
}

void note_missing_timeout(const PoolDraft& pool, Reader& reader) {
  if (pool.config.options.timeout || pool.config.protocol == PoolProtocol::Store) {
    return;
  }
  reader.note(Severity::Notice, key_or_name(pool, "timeout"), "N02", "timeout",
              fmt::format("pool '{}' has no timeout: a silent server blocks its clients for ever, "
                          "as with twemproxy",
                          pool.config.name));
}

}  // namespace

ListenerOptions settle_listener(ListenerDraft& draft, const ListenDefaults& defaults,
                                const Reader& reader) {
  ListenerOptions listener;
  listener.endpoint = std::move(draft.endpoint);
  listener.backlog = draft.backlog.value_or(defaults.backlog);
  listener.max_clients = draft.max_clients.value_or(defaults.max_clients);
  listener.is_admin = draft.is_admin;
  listener.protocol = draft.protocol;
  listener.tls = std::move(draft.tls);
  listener.reuse_port = defaults.reuse_port;
  listener.where = reader.position(*draft.node);
  return listener;
}

void check_protocols(const std::vector<ListenerDraft>& listeners, PoolProtocol served,
                     Reader& reader) {
  if (served == PoolProtocol::Store) {
    return;  // Serves all of them.
  }
  const ListenerProtocol only =
      served == PoolProtocol::Redis ? ListenerProtocol::Redis : ListenerProtocol::Memcache;
  for (const ListenerDraft& listener : listeners) {
    if (listener.protocol.value_or(only) != only) {
      const std::string_view word = kListenerProtocolWords[static_cast<std::size_t>(only)];
      reader.fail(
          *listener.node, "E-range", "protocol",
          fmt::format(
              "listener '{}' cannot have 'protocol: {}': what stands behind it speaks {} only",
              listener.endpoint.to_string(),
              kListenerProtocolWords[static_cast<std::size_t>(*listener.protocol)], word),
          fmt::format("remove the key, or write protocol: {}", word));
    }
  }
}

void check_addresses(const std::vector<ListenerDraft>& listeners, const std::string& owner,
                     Reader& reader, TakenNames& taken) {
  for (const ListenerDraft& listener : listeners) {
    const std::string address = listener.endpoint.to_string();
    if (!listener.endpoint.is_unix() && listener.endpoint.port == 0) {
      continue;  // Each gets a port of its own.
    }
    const auto [other, is_new] = taken.addresses.emplace(
        address, TakenNames::Address{owner, reader.position(*listener.node)});
    if (!is_new) {
      reader.fail(*listener.node, "E-dup", "listen",
                  fmt::format("address {} is already used by {} ({})", address, other->second.owner,
                              other->second.where.to_string()));
    }
  }
}

void finish_pool(PoolDraft& pool, Reader& reader, TakenNames& taken) {
  const auto [first, is_new] = taken.pools.emplace(pool.config.name, pool.config.where);
  if (!is_new) {
    reader.fail(*pool.name_node, "E-dup", "",
                fmt::format("pool '{}' is defined twice; first at {}", pool.config.name,
                            first->second.to_string()));
    return;
  }
  pool::PoolOptions& options = pool.config.options;
  options.on_down =
      pool.on_down.value_or(pool.auto_eject_hosts ? pool::OnDown::Rehash : pool::OnDown::Keep);
  options.placement.weights_given = pool.has_weights || options.servers.empty();
  check_protocol(pool, reader);
  check_required(pool, reader);
  check_tls(pool, reader);
  check_server_names(pool, reader);
  check_addresses(pool.listeners, fmt::format("pool '{}'", pool.config.name), reader, taken);
  check_protocols(pool.listeners, pool.config.protocol, reader);
  check_backoff(pool, reader);
  check_jump(pool, reader);
  // Advice about a pool that is broken would only hide what is broken.
  if (reader.error_count() == pool.errors_before) {
    check_spread(pool, reader);
    note_missing_timeout(pool, reader);
  }
  for (ListenerDraft& listener : pool.listeners) {
    pool.config.listeners.push_back(settle_listener(
        listener,
        {.backlog = pool.backlog, .max_clients = pool.max_clients, .reuse_port = pool.reuse_port},
        reader));
  }
}

}  // namespace kvferry::config
