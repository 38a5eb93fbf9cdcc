// ConfigValue: what mcp_config_pools returns, on its way from the configuration state to the
// workers' states.
//
// Source: docs/lua.md, "From the configuration to the workers". Threads: immutable once made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <lua.hpp>

#include "base/result.h"
#include "pool/mcp_options.h"
#include "route/token_bucket.h"

namespace kvferry::lua {

/// Nesting of tables that is copied.
inline constexpr int kConfigDepthMax = 200;

inline constexpr const char* kConfigPoolType = "mcp.pool.config";
inline constexpr const char* kConfigLimiterType = "mcp.ratelim_global_tbf.config";

struct ConfigEntry;

struct ConfigValue {
  using Pool = std::shared_ptr<const pool::McpPoolOptions>;
  using Limiter = std::shared_ptr<route::SharedTokenBucket>;
  using Table = std::vector<ConfigEntry>;

  std::variant<std::monostate, bool, std::int64_t, double, std::string, Pool, Limiter, Table> value;
};

/// One entry of a table.
struct ConfigEntry {
  ConfigValue key;
  ConfigValue value;
};

/// Copies the value at the top of the stack. An error names the path of the entry that cannot be
/// copied.
base::Result<ConfigValue> read_config_value(lua_State* lua);

/// Makes the worker's objects out of pools and limiters.
class ConfigObjects {
 public:
  /// Each leaves one value on the stack.
  virtual void push_pool(const ConfigValue::Pool& pool) = 0;
  virtual void push_limiter(const ConfigValue::Limiter& limiter) = 0;

 protected:
  ~ConfigObjects() = default;
};

/// Pushes a copy of `value`.
void push_config_value(lua_State* lua, const ConfigValue& value, ConfigObjects& objects);

}  // namespace kvferry::lua
