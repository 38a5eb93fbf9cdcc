#include "app/worker.h"

#include <algorithm>
#include <future>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unordered_set>
#include <utility>

#include "app/version.h"
#include "app/worker_pools.h"
#include "app/worker_routes.h"
#include "base/check.h"
#include "pool/key_hash.h"
#include "pool/redis_pool.h"
#include "route/redis_store_target.h"

namespace kvferry::app {
namespace {

/// How often a worker trims its pools and looks for clients that were idle too long.
constexpr base::Millis kHouseKeeping{1000};
/// How often a draining worker looks whether it is done.
constexpr base::Millis kDrainCheck{10};
/// After the deadline of a drain everything is closed; hulls that wait for their calls get this
/// long to go.
constexpr base::Millis kLastTurns{1000};

/// With this many requests in flight or more, events that come one by one are taken together: the
/// time between the beginnings of two turns grows with what is in flight, so that the delay stays
/// small beside the time that so many requests take anyhow. A client with one request at a time
/// never sees it. Measured: 0.4 times the CPU of a turn for each event with pipelined gets.
constexpr std::size_t kPaceInflightMin = 8;
constexpr std::int64_t kPaceMicrosPerCall = 2;
constexpr std::int64_t kPaceKneeCalls = 100;    // From here on ...
constexpr std::int64_t kPaceCallsPerMicro = 4;  // ... it grows more slowly,
constexpr std::int64_t kPaceMicrosMax = 1000;   // up to this.

/// Of a reply that did not fit, the log shows this much.
constexpr std::size_t kEvidenceBytesMax = 80;

/// Client hosts whose use of the binary protocol is logged.
constexpr std::size_t kBinaryHostsMax = 1000;

}  // namespace

/// What lives on the worker's thread. Order of members is order of destruction, last first.
struct Worker::Room {
  Room(std::unique_ptr<net::Loop> opened, Worker& worker, base::MemoryBudget& budget)
      : loop(std::move(opened)),
        calls(budget),
        sessions(front::session_bytes(), budget),
        routes(WorkerRoutes::Setup{.loop = *loop,
                                   .calls = calls,
                                   .budget = budget,
                                   .writes = *worker.setup_.writes,
                                   .near_stores = *worker.setup_.near_stores,
                                   .worker = worker.setup_.index}),
        clock_timer(net::Timer::Callback::to<&Worker::tick_clock>(&worker)),
        house_timer(net::Timer::Callback::to<&Worker::keep_house>(&worker)),
        drain_timer(net::Timer::Callback::to<&Worker::check_drained>(&worker)) {}

  std::unique_ptr<net::Loop> loop;
  call::CallPool calls;
  base::SlabPool sessions;
  std::unique_ptr<route::StoreTarget> store_target;
  std::unique_ptr<route::RedisStoreTarget> redis_store_target;
  std::unique_ptr<ScriptWorker> scripts;
  WorkerPools<pool::Pool> pools;
  WorkerPools<pool::RedisPool> redis_pools;
  WorkerRoutes routes;
  std::vector<ServiceSlot> services;
  std::vector<ServiceSlot>
      lingering_services;  // Without a listener: their clients stay until they leave.
  std::vector<ServiceSlot> retired_services;                     // Draining.
  std::unordered_map<std::string, base::LogThrottle> throttles;  // By pool and backend.
  std::unordered_set<std::string> binary_hosts;                  // Told of in the log.
  net::Timer clock_timer;
  net::Timer house_timer;
  net::Timer drain_timer;
  base::SteadyTime drain_deadline{};
  bool is_draining = false;
  bool is_cut = false;  // The deadline has passed: everything was closed.
};

Worker::Worker(Setup setup) : setup_(setup) {}

Worker::~Worker() {
  join();
}

base::Result<void> Worker::start() {
  std::promise<base::Result<void>> started;
  auto outcome = started.get_future();
  thread_ = std::thread([this, &started] {
    run([&started](base::Result<void> result) { started.set_value(std::move(result)); });
  });
  return outcome.get();
}

void Worker::join() {
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Worker::run(const std::function<void(base::Result<void>)>& on_started) {
  const std::string name = "kvf-worker-" + std::to_string(setup_.index);
  pthread_setname_np(pthread_self(), name.c_str());
  auto opened = net::Loop::open(setup_.loop, *setup_.budget);
  if (!opened) {
    on_started(std::move(opened).error());
    return;
  }
  room_ = std::make_unique<Room>(std::move(opened).value(), *this, *setup_.budget);
  loop_ = room_->loop.get();
  mailbox_ = loop_->mailbox();
  engine_name_ = loop_->engine_name();
  fallback_reason_ = loop_->fallback_reason();
  if (setup_.store != nullptr) {
    room_->store_target =
        std::make_unique<route::StoreTarget>(*setup_.store, *setup_.budget, setup_.store_options);
    room_->redis_store_target = std::make_unique<route::RedisStoreTarget>(*setup_.store);
    setup_.registry->add(room_->store_target->stats());
    tick_clock();
  }
  if (setup_.scripts != nullptr) {
    room_->scripts =
        std::make_unique<ScriptWorker>(ScriptWorker::Setup{.index = setup_.index,
                                                           .loop = *loop_,
                                                           .calls = room_->calls,
                                                           .local = *room_->store_target,
                                                           .writes = *setup_.writes,
                                                           .near_stores = *setup_.near_stores,
                                                           .shared = *setup_.scripts,
                                                           .watch = *setup_.watch,
                                                           .log = *setup_.log});
  }
  loop_->timers().arm(room_->house_timer, loop_->now() + kHouseKeeping);
  // Short sleeps are meant as they are said; the default slack of 50 us would double them.
  static_cast<void>(prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0));
  loop_->set_pace(net::Loop::Pace::to<&Worker::pace>(this));
  on_started(base::Result<void>{});
  loop_->run();
  if (room_->store_target != nullptr) {
    setup_.registry->remove(room_->store_target->stats());
  }
  room_.reset();
  setup_.host->on_worker_ended(setup_.index);
}

void Worker::apply(std::shared_ptr<const Plan> plan, std::vector<int> sockets,
                   std::function<void()> on_applied) {
  mailbox_->post([this, plan = std::move(plan), sockets = std::move(sockets),
                  on_applied = std::move(on_applied)] {
    take_over(*plan, sockets);
    on_applied();
  });
}

void Worker::take_over(const Plan& plan, const std::vector<int>& sockets) {
  if (room_->is_draining) {
    return;
  }
  take_over_pools(plan);
  const auto find_pool = [this](std::string_view name) -> call::Target& {
    pool::Pool* const pool = room_->pools.find(std::string(name));
    // A pool that no worker has is the embedded store.
    return pool == nullptr ? static_cast<call::Target&>(*room_->store_target) : *pool;
  };
  room_->routes.apply(plan.routes, find_pool, *room_->store_target);
  std::vector<ServiceSlot> before = std::exchange(room_->services, {});
  for (std::size_t i = 0; i < plan.listeners.size(); ++i) {
    const ListenerPlan& listener = plan.listeners[i];
    const auto kept = std::find_if(before.begin(), before.end(), [&](const ServiceSlot& slot) {
      return slot.service && slot.address == listener.address;
    });
    if (kept == before.end()) {
      take_over_listener(listener, sockets[i]);
    } else {
      kept->pool = listener.pool;
      kept->routes = listener.routes;
      set_target(*kept, service_options(listener));
      room_->services.push_back(std::move(*kept));
    }
  }
  for (ServiceSlot& slot : before) {
    if (slot.service != nullptr) {
      slot.listener.reset();
      room_->lingering_services.push_back(std::move(slot));
    }
  }
  sort_lingering();
  retire_rest();
}

void Worker::take_over_pools(const Plan& plan) {
  const pool::PoolContext context{
      .loop = *loop_, .calls = room_->calls, .budget = *setup_.budget, .events = *this};
  room_->pools.apply(context, plan.pools, pool::Protocol::Memcached);
  room_->redis_pools.apply(context, plan.pools, pool::Protocol::Redis);
  room_->pools.for_each(
      [this](const pool::Pool& pool) { announce_backends(pool.options(), pool.backends()); });
  room_->redis_pools.for_each(
      [this](const pool::RedisPool& pool) { announce_backends(pool.options(), pool.backends()); });
}

void Worker::take_over_listener(const ListenerPlan& listener, int socket) {
  const front::ServiceContext context{.loop = *loop_,
                                      .calls = room_->calls,
                                      .sessions = room_->sessions,
                                      .budget = *setup_.budget,
                                      .commands = *this,
                                      .watch = setup_.watch,
                                      .clients = setup_.clients};
  ServiceSlot slot;
  slot.address = listener.address;
  slot.pool = listener.pool;
  slot.routes = listener.routes;
  slot.tag = listener.tag;
  slot.service = std::make_unique<front::Service>(
      context, service_options(listener), target_of(slot), *setup_.process_limit, listener.clients);
  set_target(slot, slot.service->options());
  if (listener.pool.empty() && listener.routes.empty()) {
    slot.service->set_forget(
        base::Delegate<void(std::string_view)>::to<&route::StoreTarget::on_value_too_large>(
            room_->store_target.get()));
  }
  auto listening = loop_->listen(listener.address, listener.listen, *slot.service, socket);
  if (!listening) {
    setup_.log->write(
        base::LogLevel::Error, "app", "cannot serve a listener",
        {{"address", listener.address.to_string()}, {"error", listening.error().text()}});
    return;
  }
  slot.listener = std::move(listening).value();
  setup_.registry->add(
      StatsRegistry::ServiceEntry{.pool = listener.pool.empty() ? listener.routes : listener.pool,
                                  .address = listener.address.to_string(),
                                  .stats = slot.service->shared_stats()});
  room_->services.push_back(std::move(slot));
}

call::Target& Worker::target_of(const ServiceSlot& slot) {
  if (room_->scripts != nullptr) {
    return room_->scripts->hooks().target(slot.tag);
  }
  if (!slot.routes.empty()) {
    return room_->routes.target(slot.routes);
  }
  if (slot.pool.empty()) {
    return *room_->store_target;
  }
  // Of a Redis pool no memcached client is served: whatever is named here is not asked.
  pool::Pool* const pool = room_->pools.find(slot.pool);
  return pool == nullptr ? static_cast<call::Target&>(*room_->store_target) : *pool;
}

bool Worker::has_pool(const std::string& name) const {
  return room_->pools.find(name) != nullptr || room_->redis_pools.find(name) != nullptr;
}

void Worker::set_target(ServiceSlot& slot, const front::ServiceOptions& options) {
  slot.service->configure(options, target_of(slot));
  if (pool::RedisPool* const pool = room_->redis_pools.find(slot.pool); pool != nullptr) {
    slot.service->set_redis_target(*pool);
  } else if (room_->redis_store_target != nullptr) {
    slot.service->set_redis_target(*room_->redis_store_target);
  }
}

front::ServiceOptions Worker::service_options(const ListenerPlan& listener) {
  front::ServiceOptions options = listener.service;
  if (room_->scripts != nullptr) {
    options.hooked = room_->scripts->hooks().keyless(listener.tag);
  }
  return options;
}

void Worker::run_with_scripts(std::function<void(ScriptWorker&)> work) {
  mailbox_->post([this, work = std::move(work)] {
    work(*room_->scripts);
    for (ServiceSlot& slot : room_->services) {
      front::ServiceOptions options = slot.service->options();
      options.hooked = room_->scripts->hooks().keyless(slot.tag);
      set_target(slot, options);
    }
  });
}

template <typename Backends>
void Worker::announce_backends(const pool::PoolOptions& options, const Backends& backends) const {
  for (const auto& backend : backends) {
    setup_.registry->add(StatsRegistry::BackendEntry{
        .pool = options.name,
        .label = backend->server().label,
        .address = backend->address().is_set() ? backend->address().to_string()
                                               : std::string("unresolved"),
        .is_ejecting = options.on_down == pool::OnDown::Rehash,
        .health = backend->shared_health(),
        .stats = backend->shared_stats()});
  }
}

/// Clients of a listener that is gone are served for as long as its pool is there; with the pool
/// they drain.
void Worker::sort_lingering() {
  for (ServiceSlot& slot : room_->lingering_services) {
    const bool has_target = slot.routes.empty() ? slot.pool.empty() || has_pool(slot.pool)
                                                : room_->routes.contains(slot.routes);
    if (has_target) {
      set_target(slot, slot.service->options());
    } else {
      slot.service->drain();
      room_->retired_services.push_back(std::move(slot));
    }
  }
  std::erase_if(room_->lingering_services,
                [](const ServiceSlot& slot) { return slot.service == nullptr; });
}

/// Lets go of what was removed once its last request is answered.
void Worker::retire_rest() {
  std::erase_if(room_->lingering_services,
                [](const ServiceSlot& slot) { return slot.service->is_drained(); });
  std::erase_if(room_->retired_services,
                [](const ServiceSlot& slot) { return slot.service->is_drained(); });
  // Retired routes may still be asked by sessions of retired services only, and a retired pool by
  // these and by retired routes.
  if (room_->retired_services.empty()) {
    room_->routes.sweep();
  }
  if (room_->retired_services.empty() && !room_->routes.has_retired()) {
    room_->pools.sweep();
    room_->redis_pools.sweep();
  }
}

void Worker::keep_house() {
  for (ServiceSlot& slot : room_->services) {
    slot.service->keep_house();
  }
  const auto sample = [](const auto& pool) {
    for (const auto& backend : pool.backends()) {
      backend->sample_queue();
    }
  };
  room_->pools.for_each(sample);
  room_->redis_pools.for_each(sample);
  retire_rest();
  if (room_->scripts != nullptr) {
    room_->scripts->keep_house();
  }
  room_->calls.trim();
  room_->sessions.trim();
  if (room_->store_target != nullptr) {
    room_->store_target->trim();
  }
  loop_->timers().arm(room_->house_timer, loop_->now() + kHouseKeeping);
}

void Worker::read_clock() {
  room_->store_target->set_now(setup_.clock->now());
}

/// The store's clock counts whole seconds: it is set at the beginning of each.
void Worker::tick_clock() {
  read_clock();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto into_second = std::chrono::duration_cast<base::Millis>(now) % base::Seconds(1);
  loop_->timers().arm(room_->clock_timer, loop_->now() + base::Seconds(1) - into_second);
}

void Worker::drain(base::Millis deadline) {
  mailbox_->post([this, deadline] { begin_drain(deadline); });
}

void Worker::begin_drain(base::Millis deadline) {
  if (!room_->is_draining) {
    room_->is_draining = true;
    for (std::vector<ServiceSlot>* slots : {&room_->services, &room_->lingering_services}) {
      for (ServiceSlot& slot : *slots) {
        slot.listener.reset();
        slot.service->drain();
        room_->retired_services.push_back(std::move(slot));
      }
      slots->clear();
    }
  }
  room_->drain_deadline = loop_->now() + deadline;
  check_drained();
}

/// Fails what is in flight at backends. A route may send a request whose child has failed to the
/// next one, so this goes on until no route has any.
void Worker::shut_pools() {
  do {
    room_->pools.shut();
    room_->redis_pools.shut();
  } while (!room_->routes.is_idle());
}

void Worker::check_drained() {
  const base::SteadyTime now = loop_->now();
  std::erase_if(room_->retired_services,
                [](const ServiceSlot& slot) { return slot.service->is_drained(); });
  if (room_->retired_services.empty()) {
    shut_pools();
    if (room_->scripts != nullptr) {
      room_->scripts->shut();
    }
    loop_->stop();
    return;
  }
  if (now >= room_->drain_deadline) {
    KVF_CHECK(!room_->is_cut || now < room_->drain_deadline + kLastTurns);
    if (!std::exchange(room_->is_cut, true)) {
      setup_.log->write(base::LogLevel::Warning, "app",
                        "drain deadline reached, closing the clients that are left", {});
    }
    for (ServiceSlot& slot : room_->retired_services) {
      slot.service->close_all();
    }
    shut_pools();
    if (room_->scripts != nullptr) {
      room_->scripts->shut();
    }
  }
  loop_->timers().arm(room_->drain_timer, now + kDrainCheck);
}

std::string_view Worker::version() const {
  return kProtocolVersion;
}

bool Worker::stats(std::string_view words, std::string& out) {
  return setup_.host->compose_stats(words, out);
}

bool Worker::administer(const memcache::Request& request, std::string& out) {
  return setup_.host->administer(request, out);
}

void Worker::redis_info(std::span<const std::string_view> names, std::string& out) {
  setup_.host->compose_redis_info(names, out);
}

std::vector<std::pair<std::string, std::string>> Worker::redis_settings() {
  return setup_.host->redis_settings();
}

std::uint16_t Worker::redis_key_slot(std::string_view key) {
  return static_cast<std::uint16_t>(
      pool::hash_key(pool::HashKind::Crc16Slot, pool::hashed_part(key, "{}")));
}

void Worker::renew_clock() {
  mailbox_->post([this] { read_clock(); });
}

void Worker::on_binary_client(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  std::string host = "unknown";
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) == 0) {
    host = net::Address(reinterpret_cast<const sockaddr*>(&storage), size).to_string();
    host.resize(std::min(host.size(), host.rfind(':')));
  }
  // Once for each client host; the list is bounded, since anybody can open connections.
  if (room_->binary_hosts.size() < kBinaryHostsMax && room_->binary_hosts.insert(host).second) {
    setup_.log->write(
        base::LogLevel::Warning, "front",
        "refused a client that speaks memcached's binary protocol; switch it to the text protocol",
        {{"client", host}});
  }
}

base::Micros Worker::pace() {
  const auto inflight = static_cast<std::int64_t>(room_->calls.live());
  if (inflight < static_cast<std::int64_t>(kPaceInflightMin)) {
    return base::Micros(0);
  }
  const std::int64_t steep = std::min(inflight, kPaceKneeCalls) * kPaceMicrosPerCall;
  const std::int64_t flat =
      std::max<std::int64_t>(inflight - kPaceKneeCalls, 0) / kPaceCallsPerMicro;
  return base::Micros(std::min(steep + flat, kPaceMicrosMax));
}

void Worker::set_verbosity(unsigned level) {
  // As memcached's -v: each step shows more.
  setup_.log->set_level(level == 0   ? base::LogLevel::Notice
                        : level == 1 ? base::LogLevel::Info
                                     : base::LogLevel::Debug);
}

void Worker::on_backend_down(const pool::PoolOptions& pool, const pool::ServerOptions& server) {
  setup_.host->on_backend_down(pool.name, server.label);
}

void Worker::on_backend_failure(const pool::PoolOptions& pool, const pool::ServerOptions& server,
                                const pool::Failure& failure) {
  setup_.host->on_backend_failed(pool.name, server.label);
  base::LogThrottle& throttle = room_->throttles[pool.name + "/" + server.label];
  if (!throttle.allows(loop_->now())) {
    return;
  }
  std::string line = pool::failure_line(pool, server.label, failure);
  line.resize(line.size() - 2);  // Without its line end.
  setup_.log->write(base::LogLevel::Warning, "pool", "backend failed",
                    {{"pool", pool.name},
                     {"backend", server.label},
                     {"kind", pool::failure_name(failure.kind)},
                     {"error", line},
                     {"evidence", failure.evidence.substr(0, kEvidenceBytesMax)},
                     {"suppressed", std::to_string(throttle.suppressed())}});
}

}  // namespace kvferry::app
