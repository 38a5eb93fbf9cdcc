// What `mcp` has in the configuration state beside backends and pools: tunables, counters, cron.
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>

#include "lua/config_numbers.h"
#include "lua/config_state.h"

namespace kvferry::lua {

namespace {

ConfigState& state_of(lua_State* lua) {
  return Vm::owner_of<ConfigState>(lua);
}

// Tunables.

int set_connect_timeout(lua_State* lua) {
  state_of(lua).settings().backend.connect_timeout = micros_of(luaL_checknumber(lua, 1));
  return 0;
}
int set_read_timeout(lua_State* lua) {
  state_of(lua).settings().backend.read_timeout = micros_of(luaL_checknumber(lua, 1));
  return 0;
}
int set_retry_waittime(lua_State* lua) {
  state_of(lua).settings().backend.retry_waittime = whole_seconds_of(luaL_checknumber(lua, 1));
  return 0;
}
int set_failure_limit(lua_State* lua) {
  state_of(lua).settings().backend.failure_limit =
      check_count(lua, 1, "backend_failure_limit must be >= 0");
  return 0;
}
int set_depth_limit(lua_State* lua) {
  state_of(lua).settings().backend.depth_limit =
      check_count(lua, 1, "backend_depth_limit must be >= 0");
  return 0;
}
int set_flap_time(lua_State* lua) {
  state_of(lua).settings().backend.flap_time = micros_of(luaL_checknumber(lua, 1));
  return 0;
}
int set_flap_ramp(lua_State* lua) {
  state_of(lua).settings().backend.flap_backoff_ramp = std::max(luaL_checknumber(lua, 1), kRampMin);
  return 0;
}
int set_flap_max(lua_State* lua) {
  state_of(lua).settings().backend.flap_backoff_max =
      truncated_seconds_of(luaL_checknumber(lua, 1));
  return 0;
}
int set_keepalive(lua_State* lua) {
  state_of(lua).settings().backend.tcp_keepalive = check_bool(lua, 1);
  return 0;
}
int set_iothread(lua_State* lua) {
  state_of(lua).settings().uses_iothread = check_bool(lua, 1);
  return 0;
}
int set_tls(lua_State* lua) {
  state_of(lua).settings().uses_tls = check_bool(lua, 1);
  return 0;
}
int set_gc_ratio(lua_State* lua) {
  state_of(lua).settings().gc_ratio = std::max(luaL_checknumber(lua, 1), kRampMin);
  return 0;
}
/// Kibibytes at 1, as bytes.
std::size_t check_kib(lua_State* lua, const char* error) {
  const lua_Integer kib = luaL_checkinteger(lua, 1);
  if (kib < 1 || kib > std::numeric_limits<std::int32_t>::max()) {
    raise(lua, error);
  }
  return static_cast<std::size_t>(kib) * 1024;
}
int set_vm_memory_limit(lua_State* lua) {
  state_of(lua).settings().vm_limits.vm_bytes_max =
      check_kib(lua, "vm_memory_limit must be kilobytes, 1 or more");
  return 0;
}
int set_run_memory_limit(lua_State* lua) {
  state_of(lua).settings().vm_limits.run_bytes_max =
      check_kib(lua, "run_memory_limit must be kilobytes, 1 or more");
  return 0;
}
int set_run_instruction_limit(lua_State* lua) {
  const std::uint32_t count = check_count(lua, 1, "run_instruction_limit must be >= 0");
  state_of(lua).settings().vm_limits.run_instructions_max =
      std::min(count, static_cast<std::uint32_t>(std::numeric_limits<int>::max()));
  return 0;
}
int set_active_limit(lua_State* lua) {
  state_of(lua).settings().active_request_limit =
      check_count(lua, 1, "active_req_limit must be >= 0");
  return 0;
}
int set_buffer_limit(lua_State* lua) {
  state_of(lua).settings().buffer_memory_limit_bytes =
      std::uint64_t{check_count(lua, 1, "buffer_memory_limit must be >= 0")} * 1024;
  return 0;
}

// Counters.

int set_stat_limit(lua_State* lua) {
  const lua_Integer limit = luaL_checkinteger(lua, 1);
  if (limit > static_cast<lua_Integer>(kUserCountersDefault)) {
    static_cast<void>(std::fprintf(
        stderr,
        "PROXY WARNING: setting ustats limit above default may cause performance problems\n"));
  }
  state_of(lua).settings().user_counter_limit =
      limit <= 0 ? kUserCountersDefault : static_cast<std::size_t>(limit);
  return 0;
}

int add_stat(lua_State* lua) {
  const lua_Integer index = luaL_checkinteger(lua, 1);
  const std::string_view name = check_text(lua, 2);
  ConfigState::Settings& settings = state_of(lua).settings();
  if (index < 1) {
    return raise(lua, "stat index must be 1 or higher");
  }
  if (static_cast<std::size_t>(index) > settings.user_counter_limit) {
    return raise_format(lua, "stat index must be %d or less",
                        static_cast<int>(settings.user_counter_limit));
  }
  if (name.size() > kUserCounterNameBytesMax) {
    return raise_format(lua, "stat name too long: %s", lua_tostring(lua, 2));
  }
  if (name.find_first_of(" \t\n\r\v\f") != std::string_view::npos) {
    return raise(lua, "stat cannot contain spaces or newlines");
  }
  settings.user_counter_names[static_cast<std::size_t>(index)].assign(name);
  return 0;
}

/// Puts one statistic into the table at the top: `items:3:number` under [3].number where
/// `has_groups`.
void put_stat(lua_State* lua, std::string_view name, std::string_view value, bool has_groups) {
  if (has_groups) {
    if (name.starts_with("items:")) {
      name.remove_prefix(6);
    }
    const std::size_t colon = name.find(':');
    const std::string_view digits = name.substr(0, colon);
    if (colon != std::string_view::npos && !digits.empty() &&
        digits.find_first_not_of("0123456789") == std::string_view::npos) {
      push_text(lua, digits);
      const lua_Integer group = lua_tointeger(lua, -1);
      lua_pop(lua, 1);
      if (lua_rawgeti(lua, -1, group) != LUA_TTABLE) {
        lua_pop(lua, 1);
        lua_newtable(lua);
        lua_pushvalue(lua, -1);
        lua_rawseti(lua, -3, group);
      }
      push_text(lua, name.substr(colon + 1));
      push_text(lua, value);
      lua_rawset(lua, -3);
      lua_pop(lua, 1);
      return;
    }
  }
  push_text(lua, name);
  push_text(lua, value);
  lua_rawset(lua, -3);
}

int server_stats(lua_State* lua) {
  const std::string_view words = lua_isnoneornil(lua, 1) ? std::string_view{} : check_text(lua, 1);
  lua_settop(lua, 1);
  // Its text lies in a userdata, so that nothing is lost when Lua raises below.
  void* memory = lua_newuserdatauv(lua, sizeof(std::string), 0);
  auto* text = std::construct_at(static_cast<std::string*>(memory));
  luaL_setmetatable(lua, "mcp.text");
  if (!state_of(lua).host().compose_stats(words, *text)) {
    return raise(lua, "unknown subcommand passed to server_stats");
  }
  const bool has_groups = words == "items" || words == "slabs" || words == "conns";
  lua_newtable(lua);
  std::string_view rest = *text;
  constexpr std::string_view kStat = "STAT ";
  while (rest.starts_with(kStat)) {
    const std::size_t end = rest.find("\r\n");
    const std::string_view row = rest.substr(kStat.size(), end - kStat.size());
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 2);
    const std::size_t blank = row.find(' ');
    put_stat(lua, row.substr(0, blank),
             blank == std::string_view::npos ? std::string_view{} : row.substr(blank + 1),
             has_groups);
  }
  return 1;
}

int collect_text(lua_State* lua) {
  std::destroy_at(static_cast<std::string*>(lua_touserdata(lua, 1)));
  return 0;
}

// Cron, limiters, logs.

int register_cron(lua_State* lua) {
  const std::string_view name = check_text(lua, 1);
  luaL_checktype(lua, 2, LUA_TTABLE);
  if (lua_getfield(lua, 2, "every") == LUA_TNIL) {
    return raise(lua, "proxy cron entry missing 'every' field");
  }
  const lua_Integer every = luaL_checkinteger(lua, -1);
  if (every < 1) {
    return raise(lua, "proxy cron entry 'every' must be > 0");
  }
  const bool reruns = lua_getfield(lua, 2, "rerun") == LUA_TNIL || lua_toboolean(lua, -1) != 0;
  if (lua_getfield(lua, 2, "func") != LUA_TFUNCTION) {
    return raise(lua, "proxy cron entry missing 'func' field");
  }
  state_of(lua).add_cron(lua, name, base::Seconds(every), reruns);
  return 0;
}

int schedule_reload(lua_State* lua) {
  state_of(lua).wish_reload();
  return 0;
}

int make_shared_limiter(lua_State* lua) {
  const route::TokenBucketOptions options = read_bucket_options(lua, 1);
  void* memory = lua_newuserdatauv(lua, sizeof(ConfigValue::Limiter), 0);
  auto* limiter = std::construct_at(static_cast<ConfigValue::Limiter*>(memory));
  luaL_setmetatable(lua, kConfigLimiterType);
  *limiter = std::make_shared<route::SharedTokenBucket>(options, std::chrono::steady_clock::now());
  return 1;
}

int collect_limiter(lua_State* lua) {
  std::destroy_at(static_cast<ConfigValue::Limiter*>(lua_touserdata(lua, 1)));
  return 0;
}

int log_message(lua_State* lua) {
  ConfigHost& host = state_of(lua).host();
  if (host.wants_messages()) {
    host.on_message(check_text(lua, 1));
  }
  return 0;
}

constexpr luaL_Reg kNone[] = {{nullptr, nullptr}};
constexpr luaL_Reg kLimiterMeta[] = {{"__gc", &collect_limiter}, {nullptr, nullptr}};
constexpr luaL_Reg kTextMeta[] = {{"__gc", &collect_text}, {nullptr, nullptr}};

constexpr luaL_Reg kFunctions[] = {{"active_req_limit", &set_active_limit},
                                   {"add_stat", &add_stat},
                                   {"backend_connect_timeout", &set_connect_timeout},
                                   {"backend_depth_limit", &set_depth_limit},
                                   {"backend_failure_limit", &set_failure_limit},
                                   {"backend_flap_backoff_max", &set_flap_max},
                                   {"backend_flap_backoff_ramp", &set_flap_ramp},
                                   {"backend_flap_time", &set_flap_time},
                                   {"backend_read_timeout", &set_read_timeout},
                                   {"backend_retry_timeout", &set_retry_waittime},
                                   {"backend_retry_waittime", &set_retry_waittime},
                                   {"backend_use_iothread", &set_iothread},
                                   {"backend_use_tls", &set_tls},
                                   {"buffer_memory_limit", &set_buffer_limit},
                                   {"log", &log_message},
                                   {"luagc_ratio", &set_gc_ratio},
                                   {"ratelim_global_tbf", &make_shared_limiter},
                                   {"register_cron", &register_cron},
                                   {"run_instruction_limit", &set_run_instruction_limit},
                                   {"run_memory_limit", &set_run_memory_limit},
                                   {"schedule_config_reload", &schedule_reload},
                                   {"server_stats", &server_stats},
                                   {"stat_limit", &set_stat_limit},
                                   {"tcp_keepalive", &set_keepalive},
                                   {"vm_memory_limit", &set_vm_memory_limit},
                                   {nullptr, nullptr}};

}  // namespace

void define_config_functions(lua_State* lua) {
  define_backends(lua);
  define_type(lua, kConfigLimiterType, kNone, kLimiterMeta);
  define_type(lua, "mcp.text", kNone, kTextMeta);
  luaL_setfuncs(lua, kFunctions, 0);
  // Both kinds of states have it; only workers can use it.
  lua_newuserdatauv(lua, 0, 0);
  lua_setfield(lua, -2, "internal_handler");
  define_placement_objects(lua);
  define_tls(lua);
}

}  // namespace kvferry::lua
