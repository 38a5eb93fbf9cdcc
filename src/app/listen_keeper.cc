#include "app/listen_keeper.h"

#include <algorithm>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <variant>

#include "config/secret.h"

namespace kvferry::app {
namespace {

base::Result<net::Address> address_of(const config::Endpoint& endpoint) {
  if (endpoint.is_unix()) {
    return net::Address::from_path(endpoint.path);
  }
  if (endpoint.host == "localhost") {
    return net::Address::from_ip("127.0.0.1", endpoint.port);
  }
  return net::Address::from_ip(endpoint.host, endpoint.port);
}

net::Address bound_address(int socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &size);
  return {reinterpret_cast<const sockaddr*>(&storage), size};
}

/// A request of Redis to the embedded store is kept whole: so many of the largest values ...
constexpr std::uint64_t kStoreRequestItems = 16;
/// ... and so much beside them.
constexpr std::uint64_t kStoreRequestBytesMin = std::uint64_t{1} << 20;

/// Which protocols `listener` serves, and how large requests of clients of Redis may be.
void set_protocol(const config::Model& model, const config::PoolConfig& pool,
                  const config::ListenerOptions& listener, front::ServiceOptions& options) {
  using config::ListenerProtocol;
  const bool is_store = pool.protocol == config::PoolProtocol::Store;
  const auto usual = is_store          ? ListenerProtocol::Auto
                     : pool.is_redis() ? ListenerProtocol::Redis
                                       : ListenerProtocol::Memcache;
  const ListenerProtocol protocol = listener.protocol.value_or(usual);
  options.serves_text = options.serves_binary = protocol != ListenerProtocol::Redis;
  options.resp.is_served = protocol != ListenerProtocol::Memcache;
  options.resp.is_only = protocol == ListenerProtocol::Redis;
  options.resp.databases = pool.options.redis.databases;
  if (is_store) {
    options.resp.passes_unknown = false;
    options.resp.streams_values = false;
    options.resp.databases = 1;
    // Several values of the largest kind, and what stands around them.
    options.resp.gather_bytes_max =
        kStoreRequestItems * model.process.store.item_bytes_max + kStoreRequestBytesMin;
  }
}

front::ServiceOptions service_options(const config::Model& model, const config::PoolConfig& pool,
                                      const config::ListenerOptions& listener) {
  front::ServiceOptions options;
  const bool is_store = pool.protocol == config::PoolProtocol::Store;
  options.words = is_store ? memcache::ErrorWords::Store : memcache::ErrorWords::Proxy;
  options.allows_admin = is_store || listener.is_admin;
  options.allows_watch = options.allows_admin;
  options.parser.value_bytes_max =
      is_store ? model.process.store.item_bytes_max
               : std::min<std::uint64_t>(model.process.item_bytes_max, memcache::kValueBytesMax);
  options.parser.close_on_long_line = is_store;
  set_protocol(model, pool, listener, options);
  options.stall_timeout = pool.options.stall_timeout;
  options.body_timeout = pool.options.body_timeout;
  options.idle_timeout = std::chrono::duration_cast<base::Seconds>(pool.client_idle_timeout);
  return options;
}

front::ServiceOptions service_options(const config::Model& model,
                                      const config::RouteConfig& routes) {
  front::ServiceOptions options;
  options.words = memcache::ErrorWords::Proxy;
  options.parser.value_bytes_max =
      std::min<std::uint64_t>(model.process.item_bytes_max, memcache::kValueBytesMax);
  // A route may send a value several times, so it needs the whole of it.
  options.parser.stream_bytes_min = memcache::kValueBytesMax;
  options.parser.close_on_long_line = false;
  options.idle_timeout = std::chrono::duration_cast<base::Seconds>(routes.client_idle_timeout);
  return options;
}

/// Clients of a Redis pool need the password that its servers want, as with twemproxy.
base::Result<void> ask_for_password(const config::PoolConfig& pool,
                                    front::ServiceOptions& service) {
  if (!pool.redis_auth.is_set()) {
    return {};
  }
  auto password = config::read_secret(pool.redis_auth);
  if (!password) {
    return base::Error(password.error().code(),
                       "pool '" + pool.name + "': redis_auth: " + password.error().text());
  }
  service.resp.credentials =
      std::make_shared<const front::Credentials>(front::Credentials::of("default", *password));
  return {};
}

/// Sets the TLS of `service`, where `listener` speaks it.
base::Result<void> secure(const config::ListenerOptions& listener, const TlsSources& sources,
                          front::ServiceOptions& service) {
  if (!listener.tls) {
    return {};
  }
  const std::string label = "listener " + listener.endpoint.to_string();
  if (sources.ready != nullptr && sources.ready->options() == *listener.tls) {
    service.tls = sources.ready->for_place(label, sources.monitor);
    return {};
  }
  auto opened = net::TlsContext::open(*listener.tls, label, sources.monitor);
  if (auto* const problem = std::get_if<net::TlsProblem>(&opened)) {
    return base::Error(base::ErrorCode::InvalidInput, label + ": tls: " + problem->text);
  }
  service.tls = std::get<net::TlsContextPtr>(std::move(opened));
  return {};
}

}  // namespace

ListenSet::~ListenSet() {
  for (const Entry& entry : entries_) {
    for (const int socket : entry.sockets) {
      if (socket >= 0) {
        close(socket);
      }
    }
  }
}

base::Result<ListenSet> ListenSet::open(const config::Model& model, std::size_t workers,
                                        const ListenSet& before, const TlsSources& tls) {
  ListenSet made;
  for (const config::PoolConfig& pool : model.pools) {
    for (const config::ListenerOptions& listener : pool.listeners) {
      ListenerPlan plan;
      if (auto opened = made.take_or_open(listener, plan, workers, before); !opened) {
        return std::move(opened).error();
      }
      plan.pool = pool.protocol == config::PoolProtocol::Store ? std::string{} : pool.name;
      plan.routes.clear();
      plan.tag = listener.tag;
      plan.service = service_options(model, pool, listener);
      if (auto known = ask_for_password(pool, plan.service); !known) {
        return std::move(known).error();
      }
      if (auto secured = secure(listener, tls, plan.service); !secured) {
        return std::move(secured).error();
      }
      made.plans_.push_back(std::move(plan));
    }
  }
  for (const config::RouteConfig& routes : model.process.routes) {
    for (const config::ListenerOptions& listener : routes.listeners) {
      ListenerPlan plan;
      if (auto opened = made.take_or_open(listener, plan, workers, before); !opened) {
        return std::move(opened).error();
      }
      plan.pool.clear();
      plan.routes = routes.name;
      plan.service = service_options(model, routes);
      if (auto secured = secure(listener, tls, plan.service); !secured) {
        return std::move(secured).error();
      }
      made.plans_.push_back(std::move(plan));
    }
  }
  return made;
}

base::Result<void> ListenSet::take_or_open(const config::ListenerOptions& listener,
                                           ListenerPlan& plan, std::size_t workers,
                                           const ListenSet& before) {
  Entry entry{.endpoint = listener.endpoint,
              .max_clients = listener.max_clients,
              .sockets = std::vector<int>(workers, -1)};
  const auto known =
      std::find_if(before.entries_.begin(), before.entries_.end(),
                   [&](const Entry& other) { return other.endpoint == listener.endpoint; });
  base::Result<void> opened;
  if (known != before.entries_.end()) {
    plan = before.plans_[static_cast<std::size_t>(known - before.entries_.begin())];
  } else {
    opened = open_one(listener, plan, workers, entry);
  }
  entries_.push_back(std::move(entry));  // After an error too: closes what was opened of it.
  return opened;
}

base::Result<void> ListenSet::open_one(const config::ListenerOptions& options, ListenerPlan& plan,
                                       std::size_t workers, Entry& entry) {
  plan.clients = std::make_shared<front::ClientLimit>(options.max_clients);
  auto address = address_of(options.endpoint);
  if (!address) {
    return std::move(address).error();
  }
  plan.address = *address;
  plan.listen.backlog = static_cast<int>(options.backlog);
  if (options.endpoint.mode) {
    plan.listen.unix_mode = *options.endpoint.mode;
  }
  if (!options.reuse_port && !plan.address.is_unix() && plan.address.port() != 0) {
    // Workers share the port among themselves, which would also let a stranger in unnoticed: look
    // first.
    if (auto unused = net::check_unused(plan.address); !unused) {
      return unused;
    }
  }
  for (std::size_t i = 0; i < workers; ++i) {
    if (i > 0 && plan.address.is_unix()) {
      entry.sockets[i] = dup(entry.sockets[0]);
      continue;
    }
    auto socket = net::open_listening_socket(plan.address, plan.listen);
    if (!socket) {
      return std::move(socket).error();
    }
    entry.sockets[i] = *socket;
    if (!plan.address.is_unix()) {
      plan.address = bound_address(*socket);
    }
  }
  return {};
}

void ListenSet::adopt() {
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    plans_[i].clients->set_max(entries_[i].max_clients);
  }
}

std::vector<int> ListenSet::take_sockets(std::size_t index) {
  std::vector<int> taken;
  taken.reserve(entries_.size());
  for (Entry& entry : entries_) {
    taken.push_back(std::exchange(entry.sockets[index], -1));
  }
  return taken;
}

}  // namespace kvferry::app
