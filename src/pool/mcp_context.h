// What a worker lends the backends of its scripts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "call/call.h"
#include "net/loop.h"
#include "pool/mcp_door.h"
#include "pool/mcp_failure.h"
#include "pool/mcp_options.h"
#include "pool/mcp_stats.h"

namespace kvferry::pool {

/// Hears what the log must know. Called on the worker; must not send calls from within.
class McpEvents {
 public:
  /// A connection that was not bad has failed, and `depth` calls with it. `unread` are the first
  /// bytes that could not be read, as they came.
  virtual void on_backend_error(const McpBackendOptions& backend, McpFailure failure,
                                std::size_t depth, std::string_view unread) = 0;
  /// It rests for `pause`, and its calls fail meanwhile.
  virtual void on_marked_bad(const McpBackendOptions& backend, bool is_flapping,
                             base::Seconds pause) = 0;

 protected:
  ~McpEvents() = default;
};

/// Looks names of backends up, somewhere else.
class McpNames {
 public:
  /// Asks for an address of `host`. The answer comes through McpBackends::on_resolved(), later, on
  /// the worker; also when the answer is that there is none.
  virtual void resolve(const std::string& host, std::uint16_t port) = 0;

 protected:
  ~McpNames() = default;
};

/// Counts what replies hold.
class McpMemory {
 public:
  /// Whether one more reply may be kept; asked when its first line has come.
  virtual bool has_reply_room() = 0;

 protected:
  ~McpMemory() = default;
};

/// All of it outlives the backends.
struct McpContext {
  net::Loop& loop;
  McpEvents& events;
  std::shared_ptr<McpStats> stats;
  McpNames* names = nullptr;    // Null: names have no address.
  McpMemory* memory = nullptr;  // Null: without limit.
  /// To the worker that has the connections of pools for the whole process; the same for all
  /// workers. Null: each worker has its own.
  std::shared_ptr<McpDoor> process_door;
  bool is_process_owner = false;    // This is that worker ...
  call::CallPool* calls = nullptr;  // ... and these are its calls.
};

}  // namespace kvferry::pool
