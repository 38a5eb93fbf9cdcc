// What a server tells of itself.
#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/metrics.h"
#include "app/redis_info.h"
#include "app/script_stats_text.h"
#include "app/server.h"
#include "app/stats_text.h"
#include "app/version.h"

namespace kvferry::app {

namespace {

/// What the copies of all near caches take; nothing where there is no near cache.
std::vector<admin::NamedCount> near_values(route::NearStores& stores) {
  const route::NearStores::Figures figures = stores.figures();
  if (figures.stores == 0) {
    return {};
  }
  return {{"bytes", figures.bytes},
          {"limit_bytes", figures.limit_bytes},
          {"items", figures.items},
          {"evictions", figures.evictions}};
}

}  // namespace

bool Server::compose_stats(std::string_view words, std::string& out) {
  if (scripts_ != nullptr && compose_script_stats(*scripts_, words, out)) {
    return true;
  }
  constexpr std::string_view kRoutesList = "routes";  // Ours: memcached has none of this name.
  if (words == kRoutesList && !options_.memcached) {
    for (const auto& [name, count] : registry_.route_counts()) {
      out.append("STAT ").append(name).append(" ").append(std::to_string(count)).append("\r\n");
    }
    for (const admin::NamedCount& value : near_values(*near_stores_)) {
      out.append("STAT nearcache_").append(value.name).append(" ");
      out.append(std::to_string(value.value)).append("\r\n");
    }
    out.append("END\r\n");
    return true;
  }
  const std::size_t begin = out.size();
  const bool is_known = app::compose_stats(StatsSources{.registry = registry_,
                                                        .store = *store_,
                                                        .budget = *budget_,
                                                        .threads = workers_.size(),
                                                        .clients = *process_limit_,
                                                        .options = wishes_,
                                                        .prefixes = *prefixes_,
                                                        .watch = watch_,
                                                        .now = clock_.now()},
                                           words, out);
  constexpr std::string_view kEnd = "END\r\n";
  if (scripts_ != nullptr && words.empty() && std::string_view(out).substr(begin).ends_with(kEnd)) {
    std::uint64_t errors = 0;
    for (const StatsRegistry::ServiceEntry& service : registry_.services()) {
      errors += service.stats->parse_errors.get();
    }
    out.insert(out.size() - kEnd.size(), compose_script_rows(*scripts_, errors));
  }
  if (wishes_.has_tls && words.empty() && std::string_view(out).substr(begin).ends_with(kEnd)) {
    out.insert(out.size() - kEnd.size(), compose_tls_rows());
  }
  return is_known;
}

std::string Server::compose_tls_rows() const {
  std::uint64_t failures = 0;
  for (const std::uint64_t count : tls_watch_->figures(net::TlsRole::Server).failures) {
    failures += count;
  }
  const std::int64_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const std::int64_t age = now - certificates_read_at_.load(std::memory_order_relaxed);
  return "STAT ssl_handshake_errors " + std::to_string(failures) +
         "\r\nSTAT time_since_server_cert_refresh " +
         std::to_string(std::max<std::int64_t>(age, 0)) + "\r\n";
}

bool Server::administer(const memcache::Request& request, std::string& out) {
  return administration_->run(request, out);
}

RedisInfoSources Server::redis_info_sources() {
  const auto services = registry_.services();
  const auto is_store = [](const StatsRegistry::ServiceEntry& entry) { return entry.pool.empty(); };
  return {.registry = registry_,
          .store = *store_,
          .budget = *budget_,
          .clients = *process_limit_,
          .workers = workers_.size(),
          .io_engine = workers_.front()->engine_name(),
          .serves_store = std::ranges::any_of(services, is_store)};
}

void Server::compose_redis_info(std::span<const std::string_view> names, std::string& out) {
  app::compose_redis_info(redis_info_sources(), names, out);
}

std::vector<std::pair<std::string, std::string>> Server::redis_settings() {
  return app::redis_settings(redis_info_sources());
}

/// Nothing where nobody speaks TLS.
void Server::collect_tls(admin::MetricsModel& model) const {
  std::set<net::TlsContextPtr> contexts;
  for (const ListenerPlan& listener : listens_->plans()) {
    contexts.insert(listener.service.tls);
  }
  for (const auto& [name, keeper] : keepers_) {
    contexts.insert(keeper->snapshot()->tls);
  }
  contexts.erase(nullptr);
  for (const net::TlsContextPtr& context : contexts) {
    if (!context->options().cert.empty()) {
      model.certificates.push_back(
          {context->label(),
           static_cast<std::uint64_t>(std::chrono::system_clock::to_time_t(context->not_after()))});
    }
  }
  for (const net::TlsRole role : {net::TlsRole::Server, net::TlsRole::Client}) {
    const TlsWatch::Figures figures = tls_watch_->figures(role);
    admin::TlsMetrics tls{.peer = role == net::TlsRole::Server ? "client" : "backend",
                          .handshakes = figures.handshakes,
                          .resumed = figures.resumed};
    for (std::size_t i = 0; i < net::kTlsFailureKinds; ++i) {
      tls.failures.push_back(
          {std::string(net::tls_failure_name(static_cast<net::TlsFailureKind>(i))),
           figures.failures[i]});
    }
    if (!contexts.empty()) {
      model.tls.push_back(std::move(tls));
    }
  }
}

admin::MetricsModel Server::collect() {
  admin::MetricsModel model = collect_metrics(registry_, *store_);
  model.process.version = kVersion;
  model.process.io_engine = workers_.front()->engine_name();
  model.process.uptime = std::chrono::duration_cast<base::Seconds>(loop_->now() - started_);
  model.process.workers = static_cast<std::uint32_t>(workers_.size());
  model.process.is_draining = is_draining_;
  model.process.usage = base::read_process_usage();
  model.process.memory_used_bytes = budget_->used_bytes();
  model.process.memory_limit_bytes = budget_->limit_bytes();
  model.process.config_version = config_version_;
  model.process.reloads_ok = reloads_ok_;
  model.process.reloads_failed = reloads_failed_;
  model.process.last_reload_error = last_reload_error_;
  model.process.log_lines_lost = log_->lost_lines();
  for (auto& [name, count] : registry_.route_counts()) {
    model.routes.push_back({name, count});
  }
  model.near_caches = near_values(*near_stores_);
  collect_tls(model);
  for (admin::BackendMetrics& backend : model.backends) {
    if (const auto keeper = keepers_.find(backend.pool); keeper != keepers_.end()) {
      backend.ejections = keeper->second->ejections(backend.label);
    }
  }
  return model;
}

}  // namespace kvferry::app
