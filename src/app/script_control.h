// ScriptControl: control's side of scripts: the configuration state, loads over all workers, cron.
//
//   Idle --load--> Preparing (every worker runs the files) --all well--> committed, Idle
//                        \------------------------------- one not ----> aborted, Idle
//
// Threads: control.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/script_worker.h"
#include "base/log.h"
#include "base/result.h"
#include "lua/config_state.h"
#include "net/loop.h"
#include "net/resolver.h"
#include "watch/hub.h"

namespace kvferry::app {

class Worker;

class ScriptControl final : private lua::ConfigHost {
 public:
  struct Setup {
    std::vector<std::string> files;
    const std::string* proxy_argument = nullptr;  // Null: none was given.
    std::size_t workers = 0;
    bool has_test_hooks = false;
    bool profiles_memory = false;          // What Lua allocates is printed once a second.
    std::uint64_t failing_allocation = 0;  // ServerOptions::failing_allocation.
    net::Loop& loop;
    net::Resolver& resolver;
    watch::Hub& watch;
    base::Log& log;
    std::function<bool(std::string_view words, std::string& out)> compose_stats;
    net::TlsMonitor* tls_monitor = nullptr;
  };
  explicit ScriptControl(Setup setup);
  ScriptControl(const ScriptControl&) = delete;
  ScriptControl& operator=(const ScriptControl&) = delete;

  ScriptShared& shared() { return shared_; }
  /// The first load; waits for the workers. An error ends the process.
  base::Result<void> load_first(const std::vector<std::unique_ptr<Worker>>& workers);
  /// A later load; ends some turns later. During one it is remembered, and follows.
  void reload(const std::vector<std::unique_ptr<Worker>>& workers);
  /// Cron; call about ten times a second.
  void tick(const std::vector<std::unique_ptr<Worker>>& workers);

  struct Counts {
    std::uint64_t reloads = 0;  // Loads, the first included.
    std::uint64_t reload_fails = 0;
    std::uint64_t cron_runs = 0;
    std::uint64_t cron_fails = 0;
  };
  // Read by workers too, when somebody asks for statistics.
  Counts counts() const;
  const ScriptShared& shared() const { return shared_; }
  /// Names of user counters in the order of their indexes, with their sums.
  std::vector<std::pair<std::string, std::uint64_t>> user_counters() const;
  std::uint64_t active_request_limit() const;
  std::uint64_t buffer_memory_limit() const;

 private:
  struct Load;

  // lua::ConfigHost
  bool wants_messages() const override;
  void on_message(std::string_view text) override;
  void on_cron_error(std::string_view text) override;
  bool compose_stats(std::string_view words, std::string& out) override;

  base::Result<std::shared_ptr<Load>> begin(std::size_t workers);
  void finish(const std::shared_ptr<Load>& load,
              const std::vector<std::unique_ptr<Worker>>& workers);
  void report_failure(const std::string& text);
  void write_event(std::string_view fields);

  Setup setup_;
  ScriptShared shared_;
  lua::ConfigState config_;
  bool is_loading_ = false;
  bool is_reload_wanted_ = false;
  base::SteadyTime next_cron_{};

  mutable std::mutex figures_mutex_;  // Of what follows: read by workers for statistics.
  Counts counts_;
  lua::LoadedScripts in_force_;  // Without files and value.
  std::vector<std::shared_ptr<const lua::UserCounters>> user_counters_;
};

}  // namespace kvferry::app
