#include "app/pool_keeper.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "pool/placement.h"

namespace kvferry::app {
namespace {

constexpr base::Millis kProbeTimeout{1000};
/// A name is looked up again when its time to live ends, within these bounds.
constexpr base::Seconds kLookupMin{1};
constexpr base::Seconds kLookupMax{60};

bool is_same_server(const pool::ServerOptions& left, const pool::ServerOptions& right) {
  return left.host == right.host && left.port == right.port && left.name == right.name &&
         left.is_unix == right.is_unix;
}

}  // namespace

base::Result<std::unique_ptr<PoolKeeper>> PoolKeeper::make(const Context& context,
                                                           const pool::PoolOptions& options,
                                                           const PoolKeeper* before) {
  std::unique_ptr<PoolKeeper> keeper(new PoolKeeper(context, options));
  if (auto opened = keeper->open_tls(); !opened) {
    return std::move(opened).error();
  }
  if (auto filled = keeper->fill_servers(before); !filled) {
    return std::move(filled).error();
  }
  if (auto made = keeper->make_snapshot(); !made) {
    return std::move(made).error();
  }
  return keeper;
}

/// Reads the files anew for each configuration, so that a reload is what brings new certificates.
base::Result<void> PoolKeeper::open_tls() {
  if (!options_.tls) {
    return {};
  }
  auto opened = net::TlsContext::open(*options_.tls, "pool " + options_.name, context_.tls_monitor);
  if (auto* const problem = std::get_if<net::TlsProblem>(&opened)) {
    return base::Error(base::ErrorCode::InvalidInput, "tls: " + problem->text);
  }
  tls_ = std::get<net::TlsContextPtr>(std::move(opened));
  return {};
}

void PoolKeeper::take_over(Server& server, const pool::ServerOptions& options,
                           const PoolKeeper& before) {
  for (const auto& old : before.servers_) {
    if (is_same_server(before.options_.servers[old->index], options)) {
      server.address = old->address;
      server.health = old->health;
      server.is_ejected = old->is_ejected;
      server.ejections = old->ejections;
    }
  }
}

base::Result<void> PoolKeeper::fill_servers(const PoolKeeper* before) {
  for (const pool::ServerOptions& options : options_.servers) {
    auto server = std::make_unique<Server>(*this);
    server->index = servers_.size();
    if (before != nullptr) {
      take_over(*server, options, *before);
    }
    if (server->health == nullptr) {
      server->health = std::make_shared<pool::BackendHealth>(options_.failure_limit);
    }
    auto address = options.is_unix ? net::Address::from_path(options.host)
                                   : net::Address::from_ip(options.host, options.port);
    if (address) {
      server->address = *address;
    } else if (options.is_unix) {
      return std::move(address).error();
    } else {
      server->is_name = true;
    }
    servers_.push_back(std::move(server));
  }
  return {};
}

base::Result<void> PoolKeeper::make_snapshot() {
  auto snapshot = std::make_shared<pool::PoolSnapshot>();
  snapshot->options = options_;
  snapshot->tls = tls_;
  std::vector<bool> is_live;
  for (const auto& server : servers_) {
    snapshot->addresses.push_back(server->address);
    snapshot->health.push_back(server->health);
    is_live.push_back(!server->is_ejected || options_.on_down != pool::OnDown::Rehash);
  }
  auto placement = pool::Placement::make(options_.placement, options_.servers, is_live);
  if (!placement) {
    return std::move(placement).error();
  }
  snapshot->placement = std::move(placement).value();
  snapshot_ = std::move(snapshot);
  return {};
}

void PoolKeeper::publish() {
  if (auto made = make_snapshot(); !made) {
    context_.log.write(base::LogLevel::Error, "pool",
                       "cannot place keys anew, keeping the placement",
                       {{"pool", options_.name}, {"error", made.error().text()}});
    return;
  }
  context_.publish();
}

void PoolKeeper::start() {
  for (auto& server : servers_) {
    server->health->set_failure_limit(options_.failure_limit);
    if (server->is_name) {
      look_up(*server);
    }
    if (server->is_ejected) {
      context_.loop.timers().arm(server->timer, context_.loop.now() + options_.retry_timeout);
    }
  }
}

void PoolKeeper::look_up(Server& server) {
  if (std::exchange(server.is_looking_up, true)) {
    return;
  }
  server.lookup_timer.cancel();
  server.next_lookup = context_.loop.now() + kLookupMin;
  const pool::ServerOptions& options = options_.servers[server.index];
  context_.resolver.resolve(
      options.host, options.port,
      [this, &server, alive = std::weak_ptr<bool>(alive_)](base::Result<net::Resolution> outcome) {
        if (!alive.expired()) {
          on_resolved(server, std::move(outcome));
        }
      });
}

void PoolKeeper::on_resolved(Server& server, base::Result<net::Resolution> outcome) {
  server.is_looking_up = false;
  base::Seconds again = kLookupMin;
  if (!outcome) {
    context_.log.write(base::LogLevel::Warning, "pool", "cannot resolve the name of a backend",
                       {{"pool", options_.name},
                        {"backend", options_.servers[server.index].label},
                        {"error", outcome.error().text()}});
    again = base::Seconds(5);
  } else {
    again =
        std::clamp(outcome->ttl.count() == 0 ? kLookupMax : outcome->ttl, kLookupMin, kLookupMax);
    const auto& addresses = outcome->addresses;
    // The address in use is kept for as long as the name still has it.
    const bool is_kept = server.address.is_set() && std::find(addresses.begin(), addresses.end(),
                                                              server.address) != addresses.end();
    if (!is_kept) {
      server.address = addresses.front();
      publish();
    }
  }
  context_.loop.timers().arm(server.lookup_timer, context_.loop.now() + again);
}

std::uint64_t PoolKeeper::ejections(const std::string& label) const {
  std::uint64_t count = 0;
  for (const auto& server : servers_) {
    if (options_.servers[server->index].label == label) {
      count += server->ejections;
    }
  }
  return count;
}

PoolKeeper::Server* PoolKeeper::find(const std::string& label) {
  const auto found = std::find_if(servers_.begin(), servers_.end(), [&](const auto& server) {
    return options_.servers[server->index].label == label;
  });
  return found == servers_.end() ? nullptr : found->get();
}

void PoolKeeper::on_failed(const std::string& label) {
  Server* server = find(label);
  if (server != nullptr && server->is_name && context_.loop.now() >= server->next_lookup) {
    look_up(*server);
  }
}

void PoolKeeper::on_down(const std::string& label) {
  Server* server = find(label);
  if (server == nullptr || server->is_ejected || options_.on_down != pool::OnDown::Rehash) {
    return;
  }
  eject(*server);
}

void PoolKeeper::eject(Server& server) {
  server.is_ejected = true;
  ++server.ejections;
  context_.log.write(base::LogLevel::Warning, "pool", "backend ejected",
                     {{"pool", options_.name},
                      {"backend", options_.servers[server.index].label},
                      {"probe_in_ms", std::to_string(options_.retry_timeout.count())}});
  context_.loop.timers().arm(server.timer, context_.loop.now() + options_.retry_timeout);
  publish();
}

void PoolKeeper::probe(Server& server) {
  if (!server.address.is_set()) {
    context_.loop.timers().arm(server.timer, context_.loop.now() + options_.retry_timeout);
    return;
  }
  server.prober = std::make_unique<pool::Probe>(
      context_.loop, kProbeTimeout, [this, &server](bool is_well) { on_probed(server, is_well); },
      pool::probe_question(options_));
  server.prober->start(server.address, tls_, options_.servers[server.index].host);
}

void PoolKeeper::on_probed(Server& server, bool is_well) {
  if (!is_well) {
    context_.loop.timers().arm(server.timer, context_.loop.now() + options_.retry_timeout);
    return;
  }
  server.is_ejected = false;
  server.health->on_probed();
  context_.log.write(base::LogLevel::Notice, "pool", "backend is back",
                     {{"pool", options_.name}, {"backend", options_.servers[server.index].label}});
  publish();
}

}  // namespace kvferry::app
