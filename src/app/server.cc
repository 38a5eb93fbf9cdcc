#include "app/server.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

#include "app/memcached_mode.h"
#include "app/version.h"
#include "config/loader.h"
#include "config/secret.h"

namespace kvferry::app {
namespace {

std::size_t processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
  }
  return 1;
}

/// Takes as many descriptors as the system lets us have and tells how many that are.
std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return 1024;
  }
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
  static_cast<void>(getrlimit(RLIMIT_NOFILE, &limit));
  return static_cast<std::size_t>(limit.rlim_cur);
}

std::size_t worker_count(const config::Model& model) {
  return model.process.workers == 0 ? processors() : model.process.workers;
}

net::Io engine_of(config::IoEngine io) {
  switch (io) {
    case config::IoEngine::Auto:
      return net::Io::Auto;
    case config::IoEngine::Uring:
      return net::Io::Uring;
    case config::IoEngine::Epoll:
      return net::Io::Epoll;
  }
  return net::Io::Auto;
}

}  // namespace

Server::Server(ServerOptions options)
    : options_(std::move(options)),
      wishes_(options_.memcached.value_or(MemcachedOptions{})),
      listens_(std::make_shared<ListenSet>()) {}

Server::~Server() {
  workers_.clear();
  retired_admins_.clear();
  admin_.reset();
  signal_watch_.reset();
  config_watch_.reset();
  if (signal_fd_ >= 0) {
    close(signal_fd_);
  }
}

base::Result<void> Server::start() {
  auto loaded = load();
  if (!loaded) {
    return std::move(loaded).error();
  }
  if (auto opened = open_basics(*loaded); !opened) {
    return opened;
  }
  if (auto watching = watch_signals(); !watching) {
    return watching;
  }
  if (auto filled = read_snapshot(loaded->process.store); !filled) {
    return filled;
  }
  open_scripts(*loaded);
  if (auto started = start_workers(*loaded); !started) {
    return started;
  }
  if (scripts_ != nullptr) {
    if (auto done = scripts_->load_first(workers_); !done) {
      return done;
    }
  }
  if (auto applied = apply(std::move(loaded).value()); !applied) {
    return applied;
  }
  if (!options_.pid_file.empty()) {
    std::ofstream(options_.pid_file) << getpid() << "\n";
  }
  tick_timer_ = std::make_unique<net::Timer>(net::Timer::Callback::to<&Server::tick>(this));
  tick();
  return {};
}

base::Result<config::Model> Server::load() {
  if (options_.memcached) {
    return memcached_model(*options_.memcached);
  }
  if (options_.config_paths.empty()) {
    return default_model();
  }
  config::Loaded loaded = config::load(options_.config_paths);
  const std::string text = loaded.text();
  if (!loaded.model) {
    return base::Error(base::ErrorCode::InvalidInput, "the configuration cannot be used:\n" + text);
  }
  if (!text.empty()) {
    static_cast<void>(std::fputs(text.c_str(), stderr));
  }
  override_with_options(*loaded.model);
  return *std::move(loaded.model);
}

config::Model Server::default_model() const {
  config::Model model;
  config::PoolConfig pool;
  pool.name = "store";
  pool.options.name = "store";
  pool.protocol = config::PoolProtocol::Store;
  pool.listeners.push_back(config::ListenerOptions{.endpoint = options_.listen, .where = {}});
  model.pools.push_back(std::move(pool));
  override_with_options(model);
  return model;
}

void Server::override_with_options(config::Model& model) const {
  config::ProcessOptions& process = model.process;
  process.workers = options_.workers.value_or(process.workers);
  process.io = options_.io.value_or(process.io);
  process.log.file = options_.log_file.value_or(process.log.file);
  process.log.level = options_.log_level.value_or(process.log.level);
  process.store.memory_bytes = options_.store_memory_bytes.value_or(process.store.memory_bytes);
}

base::Result<void> Server::open_basics(const config::Model& model) {
  const config::ProcessOptions& process = model.process;
  auto log = base::Log::open(process.log);
  if (!log) {
    return std::move(log).error();
  }
  log_ = std::move(log).value();
  tls_watch_ = std::make_unique<TlsWatch>(*log_);
  budget_ = std::make_unique<base::MemoryBudget>(process.memory_limit_bytes);
  const std::size_t descriptors = raise_descriptor_limit();
  const std::size_t reserve = std::min(kReservedDescriptors, descriptors / 4);
  std::size_t clients_max = descriptors - reserve;
  if (options_.memcached) {
    clients_max = std::min<std::size_t>(clients_max, options_.memcached->clients_max);
  }
  process_limit_ = std::make_unique<front::ClientLimit>(clients_max);
  if (auto opened = open_store(process); !opened) {
    return opened;
  }
  // Control handles little: the plain engine keeps its descriptors out of the ring's accounts.
  auto loop = net::Loop::open(net::LoopOptions{.io = net::Io::Epoll}, *budget_);
  if (!loop) {
    return std::move(loop).error();
  }
  loop_ = std::move(loop).value();
  started_ = loop_->now();
  auto resolver = net::Resolver::open(*loop_, net::ResolverOptions{});
  if (!resolver) {
    return std::move(resolver).error();
  }
  resolver_ = std::move(resolver).value();
  return {};
}

base::Result<void> Server::open_store(const config::ProcessOptions& process) {
  if (!wishes_.auth_file.empty()) {
    auto credentials = read_credentials(wishes_.auth_file);
    if (!credentials) {
      return std::move(credentials).error();
    }
    credentials_ = std::move(credentials).value();
  }
  prefixes_ =
      std::make_unique<route::PrefixStats>(wishes_.prefix_delimiter, wishes_.counts_prefixes);
  store_ = std::make_unique<store::Store>(
      store::StoreConfig{.limit_bytes = process.store.memory_bytes,
                         .item_bytes_max = process.store.item_bytes_max,
                         .is_evicting = wishes_.is_evicting,
                         .has_cas = wishes_.has_cas,
                         .observer = &eviction_report_});
  near_stores_ = std::make_unique<route::NearStores>(store_->config().item_bytes_max);
  administration_ = std::make_unique<Administration>(
      Administration::Setup{.store = store_.get(),
                            .clock = &clock_,
                            .allows_shutdown = wishes_.allows_shutdown,
                            .has_test_hooks = options_.has_test_hooks,
                            .end = [this] { loop_->post([this] { drain(); }); },
                            .on_clock_moved =
                                [this] {
                                  for (auto& worker : workers_) {
                                    worker->renew_clock();
                                  }
                                },
                            .refresh_certificates = [this] { return refresh_certificates(); }});
  if (options_.has_test_hooks) {
    log_->write(base::LogLevel::Warning, "app",
                "KVFERRY_TEST_HOOKS=1: clients can move the clock; never serve users like this");
  }
  return {};
}

void Server::open_scripts(const config::Model& model) {
  if (options_.lua_files.empty()) {
    return;
  }
  scripts_ = std::make_unique<ScriptControl>(ScriptControl::Setup{
      .files = options_.lua_files,
      .proxy_argument = options_.proxy_arg ? &*options_.proxy_arg : nullptr,
      .workers = worker_count(model),
      .has_test_hooks = options_.has_test_hooks,
      .profiles_memory = wishes_.traces_lua_memory,
      .failing_allocation = options_.failing_allocation,
      .loop = *loop_,
      .resolver = *resolver_,
      .watch = watch_,
      .log = *log_,
      .compose_stats = [this](std::string_view words,
                              std::string& out) { return compose_stats(words, out); },
      .tls_monitor = tls_watch_.get()});
}

base::Result<void> Server::start_workers(const config::Model& model) {
  const std::size_t count = worker_count(model);
  for (std::size_t i = 0; i < count; ++i) {
    workers_.push_back(std::make_unique<Worker>(
        Worker::Setup{.index = i,
                      .loop = net::LoopOptions{.io = engine_of(model.process.io)},
                      .budget = budget_.get(),
                      .log = log_.get(),
                      .registry = &registry_,
                      .host = this,
                      .store = store_.get(),
                      .writes = &writes_,
                      .near_stores = near_stores_.get(),
                      .process_limit = process_limit_.get(),
                      .clients = &clients_,
                      .watch = &watch_,
                      .clock = &clock_,
                      .scripts = scripts_ == nullptr ? nullptr : &scripts_->shared(),
                      .store_options = store_target_options()}));
    if (auto started = workers_.back()->start(); !started) {
      workers_.pop_back();
      return started;
    }
    ++workers_left_;
  }
  if (!options_.idle_flags.empty()) {
    log_->write(base::LogLevel::Warning, "app",
                "flags of other programs have no effect; statistics are asked for by `stats` or at "
                "the admin server (`kvferry: admin:` in the configuration)",
                {{"flags", options_.idle_flags}});
  }
  const Worker& first = *workers_.front();
  log_->write(base::LogLevel::Notice, "app", "started",
              {{"version", kVersion},
               {"workers", std::to_string(count)},
               {"io", first.engine_name()},
               {"io_reason", first.fallback_reason()}});
  return {};
}

route::StoreTargetOptions Server::store_target_options() {
  return route::StoreTargetOptions{.is_flush_enabled = wishes_.allows_flush,
                                   .is_dump_enabled = wishes_.allows_dump,
                                   .watch = &watch_,
                                   .prefixes = prefixes_.get(),
                                   .near_stores = near_stores_.get()};
}

base::Result<void> Server::check_unchangeable(const config::Model& model) const {
  if (config_version_ == 0) {
    return {};
  }
  const config::ProcessOptions& now = model_.process;
  const config::ProcessOptions& next = model.process;
  if (now.workers != next.workers || now.io != next.io) {
    return base::Error(
        base::ErrorCode::Unsupported,
        "'workers' and 'io' cannot change while kvferry runs; restart it to change them");
  }
  return {};
}

base::Result<std::map<std::string, std::unique_ptr<PoolKeeper>>> Server::make_keepers(
    const config::Model& model) {
  std::map<std::string, std::unique_ptr<PoolKeeper>> keepers;
  const PoolKeeper::Context context{.loop = *loop_,
                                    .resolver = *resolver_,
                                    .log = *log_,
                                    .publish = [this] { publish(); },
                                    .tls_monitor = tls_watch_.get()};
  for (const config::PoolConfig& pool : model.pools) {
    if (pool.protocol == config::PoolProtocol::Store) {
      continue;
    }
    auto password = config::read_secret(pool.redis_auth);
    if (!password) {
      return base::Error(password.error().code(),
                         "pool '" + pool.name + "': redis_auth: " + password.error().text());
    }
    pool::PoolOptions options = pool.options;
    options.redis.password = std::move(password).value();
    const auto before = keepers_.find(pool.name);
    auto keeper = PoolKeeper::make(context, options,
                                   before == keepers_.end() ? nullptr : before->second.get());
    if (!keeper) {
      return base::Error(keeper.error().code(),
                         "pool '" + pool.name + "': " + keeper.error().text());
    }
    keepers[pool.name] = std::move(keeper).value();
  }
  return keepers;
}

base::Result<void> Server::apply(config::Model model) {
  if (auto allowed = check_unchangeable(model); !allowed) {
    return allowed;
  }
  auto keepers = make_keepers(model);
  if (!keepers) {
    return std::move(keepers).error();
  }
  auto listens = ListenSet::open(
      model, workers_.size(), *listens_,
      TlsSources{.monitor = tls_watch_.get(), .ready = std::exchange(options_.tls, nullptr)});
  if (!listens) {
    return std::move(listens).error();
  }
  if (model.process.admin != model_.process.admin || config_version_ == 0) {
    if (auto opened = open_admin(model); !opened) {
      return opened;
    }
  }
  // Nothing can be refused from here on.
  certificates_read_at_.store(
      std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()),
      std::memory_order_relaxed);
  keepers_ = std::move(keepers).value();
  listens_ = std::make_shared<ListenSet>(std::move(listens).value());
  listens_->adopt();
  routes_ =
      make_route_plans(model.process.routes, routes_, workers_.size(), loop_->now(), near_spaces_);
  registry_.set_routes(routes_);
  budget_->set_limit(model.process.memory_limit_bytes);
  store_->set_memory_limit(model.process.store.memory_bytes);
  log_->set_level(model.process.log.level);
  model_ = std::move(model);
  ++config_version_;
  follow_files();
  publish();
  for (auto& [name, keeper] : keepers_) {
    keeper->start();
  }
  return {};
}

/// `watch: true`: reads the files again when they change.
void Server::follow_files() {
  const bool is_wanted = model_.process.watch && !options_.config_paths.empty();
  if (!is_wanted) {
    // It may be what asked for this reload: it goes at the next tick.
    config_watch_retired_ = std::move(config_watch_);
    return;
  }
  if (config_watch_ != nullptr) {
    return;
  }
  auto watch = ConfigWatch::open(*loop_, options_.config_paths,
                                 base::Delegate<void()>::to<&Server::reload>(this));
  if (watch) {
    config_watch_ = std::move(watch).value();
  } else {
    log_->write(base::LogLevel::Error, "app", "cannot watch the configuration, reload it by hand",
                {{"error", watch.error().text()}});
  }
}

void Server::publish() {
  auto plan = std::make_shared<Plan>();
  for (const auto& [name, keeper] : keepers_) {
    plan->pools.push_back(keeper->snapshot());
  }
  plan->routes = routes_;
  plan->listeners = listens_->plans();
  if (options_.memcached) {
    adjust_listeners(*options_.memcached, credentials_, plan->listeners);
  }
  // Ready is said once all workers serve the new plan.
  auto left = std::make_shared<std::atomic<std::size_t>>(workers_.size());
  const std::uint64_t version = config_version_;
  const auto on_all_applied = [this, version] {
    if (std::exchange(announced_version_, version) != version) {
      announce();
    }
  };
  const auto on_applied = [this, left, on_all_applied] {
    if (left->fetch_sub(1) == 1) {
      loop_->post(on_all_applied);
    }
  };
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    workers_[i]->apply(plan, listens_->take_sockets(i), on_applied);
  }
}

void Server::announce() {
  for (const ListenerPlan& listener : listens_->plans()) {
    const bool is_routed = !listener.routes.empty();
    const std::string& pool = listener.pool.empty() ? std::string("store") : listener.pool;
    log_->write(base::LogLevel::Notice, "front", "listening",
                {{"address", listener.address.to_string()},
                 {is_routed ? "routes" : "pool", is_routed ? listener.routes : pool}});
  }
  log_->write(base::LogLevel::Notice, "app", "configuration applied",
              {{"version", std::to_string(config_version_)}});
  log_->flush();
}

void Server::retire_admin() {
  if (admin_ != nullptr) {
    admin_->stop_listening();
    retired_admins_.push_back(std::move(admin_));
  }
}

base::Result<void> Server::open_admin(const config::Model& model) {
  if (!model.process.admin) {
    retire_admin();
    return {};
  }
  const config::AdminOptions& wanted = *model.process.admin;
  auto address = wanted.endpoint.is_unix()
                     ? net::Address::from_path(wanted.endpoint.path)
                     : net::Address::from_ip(wanted.endpoint.host, wanted.endpoint.port);
  if (!address) {
    return std::move(address).error();
  }
  auto token = config::read_secret(wanted.token);
  if (!token) {
    return std::move(token).error();
  }
  // An address that stays must be let go of before it can be bound again.
  const bool is_same_place =
      model_.process.admin && model_.process.admin->endpoint == wanted.endpoint;
  if (is_same_place) {
    retire_admin();
  }
  auto opened =
      admin::AdminServer::open(*loop_, admin::AdminOptions{.listen = *address, .token = *token});
  if (!opened) {
    return std::move(opened).error();
  }
  retire_admin();
  admin_ = std::move(opened).value();
  admin::add_state_routes(*admin_, [this] { return collect(); });
  admin_->add_route(
      "POST", "/reload",
      [this](const http::Request&) {
        reload();
        http::Response response;
        response.status = last_reload_error_.empty() ? 200 : 409;
        response.body = last_reload_error_.empty() ? "reloaded\n" : last_reload_error_ + "\n";
        return response;
      },
      "read the configuration again");
  log_->write(base::LogLevel::Notice, "admin", "listening",
              {{"address", admin_->address().to_string()}});
  return {};
}

}  // namespace kvferry::app
