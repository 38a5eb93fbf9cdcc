// How functions of the configuration read numbers.
//
// Threads: control. Each raises on what is none.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/clock.h"
#include "lua/stack.h"

namespace kvferry::lua {

/// Longer times are as good as this.
inline constexpr double kSecondsMax = 86400.0 * 365 * 10;
/// Least growth of a pause, and of memory between two runs of the collector.
inline constexpr double kRampMin = 1.1;

inline base::Micros micros_of(lua_Number seconds) {
  return base::Micros(
      static_cast<std::int64_t>(std::min(std::max(seconds, 0.0), kSecondsMax) * 1e6));
}

/// Whole seconds, at least one; half a second counts as one.
inline base::Seconds whole_seconds_of(lua_Number seconds) {
  const double bounded = std::min(std::max(seconds, 0.0), kSecondsMax);
  return base::Seconds(
      std::max<std::int64_t>(1, static_cast<std::int64_t>(std::floor(bounded + 0.5))));
}

inline base::Seconds truncated_seconds_of(lua_Number seconds) {
  return base::Seconds(static_cast<std::int64_t>(std::min(std::max(seconds, 0.0), kSecondsMax)));
}

inline std::uint32_t check_count(lua_State* lua, int index, const char* error) {
  const lua_Integer count = luaL_checkinteger(lua, index);
  if (count < 0) {
    raise(lua, error);
  }
  return static_cast<std::uint32_t>(
      std::min<lua_Integer>(count, std::numeric_limits<std::uint32_t>::max()));
}

inline bool check_bool(lua_State* lua, int index) {
  luaL_checktype(lua, index, LUA_TBOOLEAN);
  return lua_toboolean(lua, index) != 0;
}

}  // namespace kvferry::lua
