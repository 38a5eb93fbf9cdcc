// Worker: one thread of the data plane: its loop, listeners, sessions, pools and links.
//
// Threads: the constructor, start(), post-like calls (apply, drain) and join() belong to control;
// everything else runs on the
//          worker's own thread.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "app/plan.h"
#include "app/script_worker.h"
#include "app/stats_registry.h"
#include "app/store_clock.h"
#include "base/log.h"
#include "base/memory_budget.h"
#include "base/result.h"
#include "call/call.h"
#include "front/client_registry.h"
#include "front/service.h"
#include "net/loop.h"
#include "pool/pool.h"
#include "route/store_target.h"
#include "route/write_generations.h"
#include "watch/hub.h"

namespace kvferry::store {
class Store;
}

namespace kvferry::app {

/// What workers need of the rest of the process. Implemented by control; called on workers.
class WorkerHost {
 public:
  virtual void on_backend_down(const std::string& pool, const std::string& label) = 0;
  virtual void on_backend_failed(const std::string& pool, const std::string& label) = 0;
  /// Appends the reply to `stats <words>`; false when unknown.
  virtual bool compose_stats(std::string_view words, std::string& out) = 0;
  /// Appends the reply to an administration command; false when it is not known here.
  virtual bool administer(const memcache::Request& request, std::string& out) = 0;
  /// front::LocalCommands has what they are.
  virtual void compose_redis_info(std::span<const std::string_view> names, std::string& out) = 0;
  virtual std::vector<std::pair<std::string, std::string>> redis_settings() = 0;
  /// The worker has drained and its loop has ended.
  virtual void on_worker_ended(std::size_t index) = 0;

 protected:
  ~WorkerHost() = default;
};

class Worker final : private front::LocalCommands, private pool::PoolEvents {
 public:
  /// Shared things; all outlive the worker.
  struct Setup {
    std::size_t index = 0;
    net::LoopOptions loop;
    base::MemoryBudget* budget = nullptr;
    base::Log* log = nullptr;
    StatsRegistry* registry = nullptr;
    WorkerHost* host = nullptr;
    store::Store* store = nullptr;
    route::WriteGenerations* writes = nullptr;
    route::NearStores* near_stores = nullptr;
    front::ClientLimit* process_limit = nullptr;
    front::ClientRegistry* clients = nullptr;
    watch::Hub* watch = nullptr;
    const StoreClock* clock = nullptr;
    ScriptShared* scripts = nullptr;  // Null: no scripts decide the routes.
    route::StoreTargetOptions store_options{};
  };

  explicit Worker(Setup setup);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Starts the thread and waits until its loop is open, or says why it is not.
  base::Result<void> start();
  /// Takes `plan` over. `sockets` has one listening socket per listener of the plan, -1 for those
  /// that are kept; they now belong to the worker. `on_applied` is called on the worker when that
  /// is done.
  void apply(std::shared_ptr<const Plan> plan, std::vector<int> sockets,
             std::function<void()> on_applied);
  /// Runs `work` on the worker, which has scripts; hooks may have changed after it.
  void run_with_scripts(std::function<void(ScriptWorker&)> work);
  /// The clock of the store was moved: look at it now.
  void renew_clock();
  /// Ends all sessions once they are answered, at the latest after `deadline`; then the thread
  /// ends.
  void drain(base::Millis deadline);
  void join();

  /// Valid after start().
  std::string_view engine_name() const { return engine_name_; }
  const std::string& fallback_reason() const { return fallback_reason_; }

 private:
  struct ServiceSlot {
    net::Address address;
    std::string pool;    // Empty for the embedded store, and for routes.
    std::string routes;  // The entry of `routes`; empty: none.
    std::string tag;     // Which hooks of scripts are for it.
    std::unique_ptr<front::Service> service;
    std::unique_ptr<net::Listener> listener;  // Null while draining.
  };

  // front::LocalCommands
  std::string_view version() const override;
  bool stats(std::string_view words, std::string& out) override;
  void on_binary_client(int fd) override;
  void set_verbosity(unsigned level) override;
  bool administer(const memcache::Request& request, std::string& out) override;
  void redis_info(std::span<const std::string_view> names, std::string& out) override;
  std::vector<std::pair<std::string, std::string>> redis_settings() override;
  std::uint16_t redis_key_slot(std::string_view key) override;

  // pool::PoolEvents
  void on_backend_down(const pool::PoolOptions& pool, const pool::ServerOptions& server) override;
  void on_backend_failure(const pool::PoolOptions& pool, const pool::ServerOptions& server,
                          const pool::Failure& failure) override;

  void run(const std::function<void(base::Result<void>)>& on_started);
  void take_over(const Plan& plan, const std::vector<int>& sockets);
  void take_over_pools(const Plan& plan);
  void take_over_listener(const ListenerPlan& listener, int socket);
  void sort_lingering();
  void retire_rest();
  call::Target& target_of(const ServiceSlot& slot);
  void set_target(ServiceSlot& slot, const front::ServiceOptions& options);
  front::ServiceOptions service_options(const ListenerPlan& listener);
  template <typename Backends>
  void announce_backends(const pool::PoolOptions& options, const Backends& backends) const;
  bool has_pool(const std::string& name) const;
  base::Micros pace();
  void keep_house();
  void tick_clock();
  void read_clock();
  void begin_drain(base::Millis deadline);
  void check_drained();
  void shut_pools();

  Setup setup_;
  std::thread thread_;
  std::string engine_name_;
  std::string fallback_reason_;

  // The worker's own; made and destroyed on its thread.
  struct Room;
  std::unique_ptr<Room> room_;
  net::Loop* loop_ = nullptr;

  std::shared_ptr<net::Mailbox> mailbox_;  // For control; outlives the loop.
};

}  // namespace kvferry::app
