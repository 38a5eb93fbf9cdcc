// ConfigState: the Lua state of the configuration: runs the files, makes backends and pools, and
// the cron functions.
//
// It lives as long as the process; its globals survive reloads. What a load makes is handed out as
// immutable values (LoadedScripts), and nothing is changed by a load that fails.
//
// Threads: control.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "lua/config_value.h"
#include "lua/globals.h"
#include "lua/vm.h"
#include "lua/worker_state.h"
#include "net/tls_context.h"
#include "pool/mcp_options.h"

namespace kvferry::lua {

inline constexpr std::size_t kUserCountersDefault = 1024;
inline constexpr std::size_t kUserCounterNameBytesMax = 122;
inline constexpr const char* kConfigBackendType = "mcp.backend";

/// What a script may ask of the process, and what is told of it.
class ConfigHost {
 public:
  virtual bool wants_messages() const = 0;
  virtual void on_message(std::string_view text) = 0;
  virtual void on_cron_error(std::string_view text) = 0;
  /// Appends what `stats <words>` answers; false when the words are unknown.
  virtual bool compose_stats(std::string_view words, std::string& out) = 0;

 protected:
  ~ConfigHost() = default;
};

/// What a load has made.
struct LoadedScripts {
  std::vector<CompiledFile> files;
  ConfigValue value;
  std::uint32_t active_request_limit = 0;  // Of the process; 0: none.
  std::uint64_t buffer_memory_limit_bytes = 0;
  double gc_ratio = 2.0;
  VmLimits vm_limits;             // Of workers.
  std::size_t user_counters = 0;  // Highest index plus one; 0: none.
  std::map<std::size_t, std::string> user_counter_names;
};

class ConfigState {
 public:
  struct Setup {
    std::vector<std::string> files;
    StartArgument start_argument;
    ConfigHost* host = nullptr;
    VmLimits limits;
    std::string profile_name{};  // Not empty: what is allocated is counted under this name.
    net::TlsMonitor* tls_monitor = nullptr;  // Outlives the backends.
  };
  explicit ConfigState(Setup setup);
  ConfigState(const ConfigState&) = delete;
  ConfigState& operator=(const ConfigState&) = delete;

  /// Reads and runs the files. An error is what is to be printed; then all is as before.
  base::Result<LoadedScripts> load(base::SteadyTime now);
  /// A load that control has given up after all (a worker refused it).
  void revert();
  /// And one that is in force.
  void settle();

  /// Of Vm::take_profile_line().
  std::string take_profile_line() { return vm_.take_profile_line(); }

  struct CronRuns {
    std::uint64_t runs = 0;
    std::uint64_t fails = 0;
  };
  /// Runs cron functions whose time has come.
  CronRuns run_cron(base::SteadyTime now);
  Vm& vm() { return vm_; }
  /// Whether mcp.schedule_config_reload() was called since the last time.
  bool take_reload_wish() { return std::exchange(wants_reload_, false); }

  // For bindings.

  /// What functions of the configuration set; kept over loads, and put back when one fails.
  struct Settings {
    pool::McpBackendOptions backend;
    bool uses_iothread = false;
    bool uses_tls = false;
    net::TlsContextPtr tls;  // Null: mcp.init_tls() was not called.
    double gc_ratio = 2.0;
    VmLimits vm_limits;
    std::uint32_t active_request_limit = 0;
    std::uint64_t buffer_memory_limit_bytes = 0;
    std::size_t user_counter_limit = kUserCountersDefault;
    std::map<std::size_t, std::string> user_counter_names;
  };
  Settings& settings() { return settings_; }
  ConfigHost& host() const { return *setup_.host; }
  net::TlsMonitor* tls_monitor() const { return setup_.tls_monitor; }
  struct CronEntry {
    base::Seconds every{0};
    base::SteadyTime next{};
    bool reruns = true;
    int function_ref = LUA_NOREF;
    bool is_registered = false;  // By the load that is going on.
  };
  /// Registers the function at the top of the stack, and pops it.
  void add_cron(lua_State* lua, std::string_view name, base::Seconds every, bool reruns);
  void wish_reload() { wants_reload_ = !is_loading_; }

 private:
  base::Result<LoadedScripts> run(base::SteadyTime now);
  base::Result<CompiledFile> run_file(const std::string& name);
  base::Result<void> call_protected(int results, std::string_view what);
  void drop_cron(std::map<std::string, CronEntry, std::less<>>& entries);

  Setup setup_;
  Vm vm_;
  SavedGlobals globals_;
  Settings settings_;
  Settings settings_before_;
  std::map<std::string, CronEntry, std::less<>> cron_;
  std::map<std::string, CronEntry, std::less<>> next_cron_;
  base::SteadyTime now_{};
  bool is_loading_ = false;
  bool wants_reload_ = false;
};

/// Adds hashes and distributions, which both kinds of states have, to the table at the top of the
/// stack.
void define_placement_objects(lua_State* lua);
/// Adds mcp.backend and mcp.pool, with their types.
void define_backends(lua_State* lua);
/// Adds mcp.init_tls.
void define_tls(lua_State* lua);
/// Adds what `mcp` has in the configuration state to the table at the top of the stack.
void define_config_functions(lua_State* lua);

}  // namespace kvferry::lua
