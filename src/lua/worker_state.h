// WorkerState: the Lua state of one worker: runs the files, holds the hooks, lends the slots what
// they need.
//
//   prepare(load) -> well: commit(), else abort()
//
// A load attaches its hooks aside. Only when all workers have prepared well does control let them
// commit; otherwise everything stays as it was, globals included.
//
// Threads: its worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "call/call.h"
#include "lua/config_value.h"
#include "lua/constants.h"
#include "lua/generator.h"
#include "lua/globals.h"
#include "lua/hooks.h"
#include "lua/plain_function.h"
#include "lua/script_stats.h"
#include "lua/tickets.h"
#include "lua/vm.h"
#include "net/loop.h"
#include "route/route_reply.h"

namespace kvferry::route {
class NearStores;
class StoreTarget;
class WriteGenerations;
}  // namespace kvferry::route

namespace kvferry::lua {

class ScriptSlot;

inline constexpr const char* kContextType = "mcp.rctx";
inline constexpr const char* kPoolType = "mcp.pool";

/// One file of the configuration, compiled.
struct CompiledFile {
  std::string name;
  std::string code;
  bool is_library = false;  // The built-in one, which is given our native functions.
};

/// What control hands to workers for one load.
struct ScriptLoad {
  std::vector<CompiledFile> files;
  ConfigValue value;     // What mcp_config_pools returned.
  RequestLimits limits;  // This worker's share.
  SlotShrink shrink;
  VmLimits vm_limits;
  double gc_ratio = 2.0;
  /// Highest index of user counters plus one; 0: those that there are stay.
  std::size_t user_counters = 0;
  /// Indexes whose name is another one now: they begin at 0.
  std::vector<std::size_t> renamed_counters;
};

/// `proxy_arg`: absent, a text, or keys with values.
struct StartArgument {
  enum class Kind : std::uint8_t { None, Text, Table };
  Kind kind = Kind::None;
  std::string text;
  struct Entry {
    std::string key;
    std::string value;
    bool has_value = false;
  };
  std::vector<Entry> entries;

  static StartArgument parse(const std::string* given);
  void push(lua_State* lua) const;
};

/// Hears what scripts do that others must know.
class ScriptEvents {
 public:
  /// An error in a script; `text` is one line for the log stream, `traceback` for the log.
  virtual void on_script_error(std::string_view text, std::string_view traceback) = 0;
  /// mcp.log.
  virtual bool wants_messages() const = 0;
  virtual void on_message(std::string_view text) = 0;
  /// mcp.log_req and the like, and backends that log by themselves. `line` is what follows the
  /// time.
  virtual bool wants_requests() const = 0;
  virtual void on_request(std::string_view line) = 0;

 protected:
  ~ScriptEvents() = default;
};

/// Makes the worker's side of pools.
class PoolMaker {
 public:
  virtual std::unique_ptr<call::Target> make_pool(const ConfigValue::Pool& pool) = 0;

 protected:
  ~PoolMaker() = default;
};

/// The local cache as scripts see it.
class LocalTarget final : public call::Target {
 public:
  explicit LocalTarget(call::Target& store) : store_(store) {}
  void send(call::Call& call, const memcache::Request& request) override;

 private:
  call::Target& store_;
};

class WorkerState final : private ConfigObjects {
 public:
  struct Setup {
    net::Loop& loop;
    call::CallPool& calls;
    call::Target& local;
    PoolMaker& pools;
    ScriptEvents& events;
    ScriptStats& stats;
    NameCounts& names;
    StartArgument start_argument;
    VmLimits limits;
    std::string profile_name{};  // Not empty: what is allocated is counted under this name.
    std::uint64_t failing_allocation = 0;  // Each n-th of requests fails, for tests; 0: none.
    // For native routes that need them; all outlive the state.
    const route::StoreTarget* clock = nullptr;
    route::NearStores* near_stores = nullptr;
    route::WriteGenerations* writes = nullptr;
  };
  explicit WorkerState(const Setup& setup);
  ~WorkerState();
  WorkerState(const WorkerState&) = delete;
  WorkerState& operator=(const WorkerState&) = delete;

  /// Runs the files and their mcp_config_routes. An error is what is to be printed.
  base::Result<void> prepare(const ScriptLoad& load);
  void commit();
  void abort();
  Hooks& hooks() { return hooks_; }
  /// Publishes sizes for statistics; call about once a second.
  void keep_house();
  /// Of Vm::take_profile_line().
  std::string take_profile_line() { return vm_.take_profile_line(); }

  // For the rest of the room.

  Vm& vm() { return vm_; }
  lua_State* main() { return vm_.main(); }
  /// The coroutine that runs now, else the main one.
  lua_State* current() { return current_ != nullptr ? current_ : vm_.main(); }
  net::Loop& loop() { return setup_.loop; }
  call::CallPool& calls() { return setup_.calls; }
  /// The local cache as a target of scripts.
  call::Target& local() { return local_; }
  /// For near caches; null: there are none.
  const route::StoreTarget* clock() const { return setup_.clock; }
  route::NearStores* near_stores() const { return setup_.near_stores; }
  route::WriteGenerations* writes() const { return setup_.writes; }
  ScriptStats& stats() { return setup_.stats; }
  NameCounts& names() { return setup_.names; }
  ScriptEvents& events() { return setup_.events; }
  const SlotShrink& shrink() const { return shrink_; }
  const PlainShapes& shapes() const { return *shapes_; }
  /// Whether requests to `target` may be logged by its backends, for which routes must see them.
  bool is_logged(const call::Target* target) const { return logged_.contains(target); }
  /// Where mcp.stat counts; read by control.
  std::shared_ptr<const UserCounters> user_counters() const { return user_counters_; }
  /// Those that come into force with the load that is prepared.
  std::shared_ptr<const UserCounters> next_user_counters() const { return next_counters_; }
  const UserCounters* user_counters_now() const { return user_counters_.get(); }
  void count_for_user(std::size_t index, std::int64_t change) {
    user_counters_->add(index, change);
  }
  /// The client of the request that runs now; 0 outside of requests.
  int running_fd() const;

  /// Marks the coroutine of `slot` as what runs, while it lives.
  class Running {
   public:
    Running(WorkerState& state, lua_State* lua, ScriptSlot& slot)
        : state_(state), lua_before_(state.current_), slot_before_(state.current_slot_) {
      state.current_ = lua;
      state.current_slot_ = &slot;
    }
    ~Running() {
      state_.current_ = lua_before_;
      state_.current_slot_ = slot_before_;
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    WorkerState& state_;
    lua_State* lua_before_;
    ScriptSlot* slot_before_;
  };
  /// The slot whose request runs now; null outside of requests.
  ScriptSlot* running_slot() const { return current_slot_; }
  TicketBook& tickets() { return tickets_; }
  const TicketBook& tickets() const { return tickets_; }

  /// The pool, the local cache or the native route at `index` as a target; null when it is none.
  call::Target* target_at(lua_State* lua, int index);
  static bool is_router(lua_State* lua, int index);
  /// Stages a hook whose target is at the top of the stack, and keeps it alive.
  void stage(lua_State* lua, StagedHook hook);

  /// Remembers the userdata at the top of the stack under `object`, without keeping it alive.
  void register_object(lua_State* lua, const void* object) const;
  /// Pushes it; nil when it has been collected.
  void push_object(lua_State* lua, const void* object) const;
  /// Keeps it alive, and not any more.
  void pin(const void* object);
  void unpin(const void* object);

  /// Takes the error value from the top of `lua`'s stack and reports it.
  void report_error(lua_State* lua);
  /// The same for a coroutine that has failed, with a traceback; leaves its stack as it is.
  void report_script_error(lua_State* lua);
  /// The reasons of mcp.log_reqsample.
  bool wants_sample(const route::RouteReply* reply, base::Millis deadline, std::uint32_t rate,
                    bool logs_errors);
  /// A reply has come to a handle: backends may want it logged.
  void on_reply(const route::RouteReply& reply, const route::RouteRequest* request, int client_fd);
  /// Destroys `slot` once nothing of it is on the stack.
  void bury(std::unique_ptr<ScriptSlot> slot);

 private:
  void push_pool(const ConfigValue::Pool& pool) override;
  void push_limiter(const ConfigValue::Limiter& limiter) override;

  void define_api();
  base::Result<void> run_files(const ScriptLoad& load);
  base::Result<void> run_routes(const ScriptLoad& load);
  base::Result<void> call_protected(int arguments, std::string_view what);
  bool is_sampled(std::uint32_t rate);
  void drop_staged();
  void empty_graveyard();

  Setup setup_;
  LocalTarget local_;
  TicketBook tickets_;  // Slots give theirs back while the state is closed.
  Vm vm_;
  SavedGlobals globals_;
  Hooks hooks_;
  std::unique_ptr<const PlainShapes> shapes_;
  std::unordered_set<const call::Target*> logged_;
  SlotShrink shrink_;
  SlotShrink next_shrink_;
  RequestLimits next_limits_;
  VmLimits next_vm_limits_;
  double next_gc_ratio_ = 2.0;
  std::shared_ptr<UserCounters> user_counters_;
  std::shared_ptr<UserCounters> next_counters_;
  std::vector<std::size_t> renamed_counters_;
  std::vector<StagedHook> staged_;
  std::vector<int> staged_refs_;
  int objects_ref_ = LUA_NOREF;
  lua_State* current_ = nullptr;
  ScriptSlot* current_slot_ = nullptr;
  std::vector<std::unique_ptr<ScriptSlot>> graveyard_;
  net::Task burial_;
  std::uint64_t random_state_ = 0x9e3779b97f4a7c15U;
};

/// Adds attach, stat, logs, clocks, limiters, internal and the like to the table at the top of the
/// stack.
void define_worker_functions(lua_State* lua, WorkerState& state);
/// Commands that scripts may have the local cache run.
inline bool can_run_locally(memcache::Command command) {
  return memcache::has_key(command) && command != memcache::Command::Me;
}
/// mcp.internal.
int run_local(lua_State* lua);
/// The limiter of mcp.ratelim_global_tbf at `index`; null when it is none.
const ConfigValue::Limiter* shared_limiter_at(lua_State* lua, int index);
/// The fields of mcp.ratelim_tbf and mcp.ratelim_global_tbf; raises on bad ones.
route::TokenBucketOptions read_bucket_options(lua_State* lua, int index);

}  // namespace kvferry::lua
