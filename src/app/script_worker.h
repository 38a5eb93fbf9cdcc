// ScriptWorker: what a worker has when scripts decide the routes: its Lua state, the backends of
// its pools, its counters.
//
// Threads: made and used on its worker; ScriptShared is for all.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "call/call.h"
#include "lua/script_stats.h"
#include "lua/worker_state.h"
#include "net/loop.h"
#include "pool/mcp_backends.h"
#include "pool/mcp_context.h"
#include "pool/mcp_door.h"
#include "pool/mcp_stats.h"
#include "route/store_target.h"
#include "route/write_generations.h"
#include "watch/hub.h"

namespace kvferry::app {

/// Counters of the scripts of one worker.
struct ScriptFigures {
  lua::ScriptStats stats;
  std::shared_ptr<pool::McpStats> backends = std::make_shared<pool::McpStats>();
};

/// What the script parts of all workers share. Any thread.
class ScriptShared {
 public:
  /// Asks for the address of a name; answered on the worker that asked. Called on any thread.
  using Resolve = std::function<void(const std::string& host, std::uint16_t port,
                                     std::function<void(const net::Address&)> on_resolved)>;

  lua::StartArgument start_argument;
  lua::SlotShrink shrink;
  lua::NameCounts names;
  Resolve resolve;
  /// To the worker that drives the connections of pools for the whole process: the first one.
  std::shared_ptr<pool::McpDoor> door = std::make_shared<pool::McpDoor>();
  std::vector<std::shared_ptr<ScriptFigures>> figures;  // By worker; made before the workers start.
  bool profiles_memory = false;          // What Lua allocates is printed once a second.
  std::uint64_t failing_allocation = 0;  // ServerOptions::failing_allocation.
};

/// Traceback of an error goes to the log once in this time for errors of one text.
inline constexpr base::Seconds kTracebackPause{60};
/// Texts of errors that are remembered for that.
inline constexpr std::size_t kTracebackTextsMax = 256;

/// Prints what a state of Lua has allocated (`-o proxy_memprofile`), as memcached does: on standard
/// error, whatever the log is.
void print_profile(const std::string& line);

class ScriptWorker final : private lua::PoolMaker,
                           private lua::ScriptEvents,
                           private pool::McpEvents,
                           private pool::McpNames,
                           private pool::McpMemory {
 public:
  struct Setup {
    std::size_t index;
    net::Loop& loop;
    call::CallPool& calls;
    route::StoreTarget& local;
    route::WriteGenerations& writes;
    route::NearStores& near_stores;
    ScriptShared& shared;
    watch::Hub& watch;
    base::Log& log;
  };
  explicit ScriptWorker(const Setup& setup);
  ~ScriptWorker();
  ScriptWorker(const ScriptWorker&) = delete;
  ScriptWorker& operator=(const ScriptWorker&) = delete;

  lua::WorkerState& state() { return *state_; }
  /// Once a second.
  void keep_house();
  lua::Hooks& hooks() { return state_->hooks(); }
  /// Before the end: fails what backends still owe.
  void shut();

 private:
  pool::McpContext backend_context();

  // lua::PoolMaker
  std::unique_ptr<call::Target> make_pool(const lua::ConfigValue::Pool& pool) override;

  // lua::ScriptEvents
  void on_script_error(std::string_view text, std::string_view traceback) override;
  bool wants_messages() const override;
  void on_message(std::string_view text) override;
  bool wants_requests() const override;
  void on_request(std::string_view line) override;

  // pool::McpEvents
  void on_backend_error(const pool::McpBackendOptions& backend, pool::McpFailure failure,
                        std::size_t depth, std::string_view unread) override;
  void on_marked_bad(const pool::McpBackendOptions& backend, bool is_flapping,
                     base::Seconds pause) override;

  // pool::McpMemory
  bool has_reply_room() override;

  // pool::McpNames
  void resolve(const std::string& host, std::uint16_t port) override;

  Setup setup_;
  ScriptFigures& figures_;
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);  // For answers about names.
  std::unique_ptr<pool::McpBackends> backends_;
  std::unique_ptr<lua::WorkerState> state_;
  std::map<std::string, base::SteadyTime, std::less<>> tracebacks_;  // Text to when it was logged.
};

/// Bytes as log streams show them: everything but letters, digits and -._~ as %XX.
std::string uri_encode(std::string_view bytes);

}  // namespace kvferry::app
