// Hookable: what mcp.attach takes: a function generator or a router.
#pragma once

#include <cstdint>

#include "call/call.h"
#include "pool/multiget.h"
#include "protocol/memcache/request.h"

namespace kvferry::pool {
class McpPool;
}

namespace kvferry::lua {

/// Where a get of one key goes when nothing is done with it but passing it on.
struct Passage {
  pool::McpPool* pool = nullptr;  // Null: it has to be run.
  pool::GetForm form = pool::GetForm::Row;
  bool is_for_all_keys = false;  // The same for each key, for as long as nothing else runs.
};

class Hookable {
 public:
  virtual ~Hookable() = default;
  /// Runs a request with one key, or none; answers it with an error when no function can be
  /// started.
  virtual void run(call::Call& call, const memcache::Request& request) = 0;
  /// Where the get of request.key, one of several keys, goes.
  virtual Passage passage(const memcache::Request& /*request*/) { return {}; }
  /// Attached to a command, or named by something that is.
  virtual void acquire() = 0;
  /// The opposite. After the last one it is closed for good, and lets go of what it holds once its
  /// requests have ended.
  virtual void release() = 0;
};

/// What a client gets when no function can be started for its request.
inline constexpr std::string_view kStartFailureLine = "SERVER_ERROR lua start failure\r\n";

}  // namespace kvferry::lua
