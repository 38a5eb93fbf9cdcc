// Server: the control thread: configuration, reloads, names and health of backends, admin HTTP,
// signals, the end.
//
// Threads: control, the functions of WorkerHost aside, which workers call and which only post or
// read counters.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <sys/signalfd.h>
#include <vector>

#include "admin/admin_server.h"
#include "app/administration.h"
#include "app/config_watch.h"
#include "app/listen_keeper.h"
#include "app/memcached_options.h"
#include "app/pool_keeper.h"
#include "app/redis_info.h"
#include "app/script_control.h"
#include "app/stats_registry.h"
#include "app/tls_watch.h"
#include "app/worker.h"
#include "base/log.h"
#include "base/memory_budget.h"
#include "base/result.h"
#include "config/model.h"
#include "net/loop.h"
#include "net/resolver.h"
#include "route/near_stores.h"
#include "route/prefix_stats.h"
#include "route/write_generations.h"
#include "store/store.h"
#include "watch/hub.h"

namespace kvferry::app {

/// What the command line says. Where it names a thing that a file names too, the command line wins.
struct ServerOptions {
  std::vector<std::string> config_paths;  // None: the embedded store on `listen`.
  config::Endpoint listen{.host = "127.0.0.1", .port = 11211, .path = {}, .mode = {}};
  std::optional<std::uint64_t> store_memory_bytes;
  std::optional<std::uint32_t> workers;
  std::optional<config::IoEngine> io;
  std::optional<std::string> log_file;
  std::optional<base::LogLevel> log_level;
  std::string pid_file;
  std::optional<MemcachedOptions> memcached;  // Serve as its command line says; no files.
  net::TlsContextPtr tls;  // Of the first configuration; read before root became another user.
  std::vector<std::string> lua_files;    // Of the Lua proxy; none: no proxy.
  std::optional<std::string> proxy_arg;  // What scripts find in mcp.start_arg.
  bool has_test_hooks = false;           // KVFERRY_TEST_HOOKS=1.
  /// With the test hooks, in builds with checks: each n-th allocation of scripts that serve
  /// requests fails. 0: none. KVFERRY_TEST_FAIL_ALLOCATION.
  std::uint64_t failing_allocation = 0;
  std::string idle_flags;  // Those of other programs that were given and do nothing: "-s -i".
};

/// Descriptors that clients may not take: backends, listeners and admin need them.
inline constexpr std::size_t kReservedDescriptors = 256;

class Server final : private WorkerHost {
 public:
  explicit Server(ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Serves until a signal ends it. Gives the exit status.
  int run();

 private:
  // WorkerHost
  void on_backend_down(const std::string& pool, const std::string& label) override;
  void on_backend_failed(const std::string& pool, const std::string& label) override;
  bool compose_stats(std::string_view words, std::string& out) override;
  bool administer(const memcache::Request& request, std::string& out) override;
  void compose_redis_info(std::span<const std::string_view> names, std::string& out) override;
  std::vector<std::pair<std::string, std::string>> redis_settings() override;
  void on_worker_ended(std::size_t index) override;

  base::Result<void> start();
  base::Result<void> open_basics(const config::Model& model);
  base::Result<void> open_store(const config::ProcessOptions& process);
  /// Fills the store from its snapshot, when there is one. Clients come later: none of them meets a
  /// store that is half full.
  base::Result<void> read_snapshot(const config::StoreOptions& options);
  /// At the end, when no worker uses the store any more. False: there should be one, and is none.
  bool write_snapshot();
  route::StoreTargetOptions store_target_options();
  void open_scripts(const config::Model& model);
  base::Result<void> start_workers(const config::Model& model);
  base::Result<config::Model> load();
  config::Model default_model() const;
  void override_with_options(config::Model& model) const;

  /// All or nothing: on an error what runs is unchanged.
  base::Result<void> apply(config::Model model);
  base::Result<void> check_unchangeable(const config::Model& model) const;
  base::Result<std::map<std::string, std::unique_ptr<PoolKeeper>>> make_keepers(
      const config::Model& model);
  void retire_admin();
  base::Result<void> open_admin(const config::Model& model);
  void follow_files();
  void publish();
  void announce();

  base::Result<void> watch_signals();
  void on_signal(unsigned events);
  void reload();
  std::string refresh_certificates();
  void drain();
  void tick();

  admin::MetricsModel collect();
  std::string compose_tls_rows() const;
  RedisInfoSources redis_info_sources();
  void collect_tls(admin::MetricsModel& model) const;

  ServerOptions options_;
  const MemcachedOptions wishes_;  // Of options_, or the defaults.
  std::unique_ptr<base::Log> log_;
  std::unique_ptr<TlsWatch> tls_watch_;
  std::unique_ptr<base::MemoryBudget> budget_;
  watch::Hub watch_{&base::WallTime::clock::now};
  route::EvictionReport eviction_report_{watch_};
  StoreClock clock_;
  std::unique_ptr<route::PrefixStats> prefixes_;
  std::unique_ptr<Administration> administration_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<route::NearStores> near_stores_;
  std::unique_ptr<front::ClientLimit> process_limit_;
  front::ClientRegistry clients_;
  std::shared_ptr<const front::Credentials> credentials_;  // Null: clients need none.
  StatsRegistry registry_;
  std::unique_ptr<net::Loop> loop_;
  std::unique_ptr<net::Resolver> resolver_;
  config::Model model_;
  std::map<std::string, std::unique_ptr<PoolKeeper>> keepers_;
  RoutePlans routes_;
  NearSpaces near_spaces_;
  route::WriteGenerations writes_;
  std::shared_ptr<ListenSet> listens_;
  std::unique_ptr<ScriptControl> scripts_;  // Null: no scripts decide the routes.
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<admin::AdminServer> admin_;
  // Replaced ones, until the next tick: one of their handlers may have asked for the reload.
  std::vector<std::unique_ptr<admin::AdminServer>> retired_admins_;
  std::unique_ptr<net::FdWatch> signal_watch_;
  std::unique_ptr<ConfigWatch> config_watch_;
  std::unique_ptr<ConfigWatch> config_watch_retired_;  // Goes at the next tick.
  std::unique_ptr<net::Timer> tick_timer_;
  int signal_fd_ = -1;
  base::SteadyTime started_{};
  std::uint64_t config_version_ = 0;
  std::uint64_t announced_version_ = 0;
  std::uint64_t reloads_ok_ = 0;
  std::uint64_t reloads_failed_ = 0;
  std::string last_reload_error_;
  std::atomic<std::int64_t> certificates_read_at_{0};  // In seconds since 1970.
  std::size_t workers_left_ = 0;
  base::Millis drain_deadline_{0};  // Of the last call of drain().
  bool is_draining_ = false;
};

}  // namespace kvferry::app
