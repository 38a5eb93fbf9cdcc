// What `mcp` has in the configuration state: backends, pools, tunables, counters, cron.
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>

#include "lua/config_state.h"
#include "pool/key_hash.h"

namespace kvferry::lua {

using pool::McpBackendOptions;
using pool::McpPoolOptions;

namespace {

constexpr std::size_t kLabelBytesMax = 511;
constexpr std::size_t kHostBytesMax = 254;
constexpr std::size_t kPortBytesMax = 5;
constexpr std::size_t kPrefixBytesMax = 511;
constexpr lua_Integer kFilterBytesMin = 2;
constexpr lua_Integer kFilterBytesMax = 5;
constexpr double kRampMin = 1.1;
constexpr double kSecondsMax = 86400.0 * 365 * 10;
constexpr const char* kHashType = "mcp.hash";

using BackendPointer = std::shared_ptr<McpBackendOptions>;
using PoolPointer = ConfigValue::Pool;

ConfigState& state_of(lua_State* lua) {
  return Vm::owner_of<ConfigState>(lua);
}

// Numbers as the tunables take them.

base::Micros micros_of(lua_Number seconds) {
  return base::Micros(
      static_cast<std::int64_t>(std::min(std::max(seconds, 0.0), kSecondsMax) * 1e6));
}

/// Whole seconds, at least one; half a second counts as one.
base::Seconds whole_seconds_of(lua_Number seconds) {
  const double bounded = std::min(std::max(seconds, 0.0), kSecondsMax);
  return base::Seconds(
      std::max<std::int64_t>(1, static_cast<std::int64_t>(std::floor(bounded + 0.5))));
}

base::Seconds truncated_seconds_of(lua_Number seconds) {
  return base::Seconds(static_cast<std::int64_t>(std::min(std::max(seconds, 0.0), kSecondsMax)));
}

std::uint32_t check_count(lua_State* lua, int index, const char* error) {
  const lua_Integer count = luaL_checkinteger(lua, index);
  if (count < 0) {
    raise(lua, error);
  }
  return static_cast<std::uint32_t>(
      std::min<lua_Integer>(count, std::numeric_limits<std::uint32_t>::max()));
}

bool check_bool(lua_State* lua, int index) {
  luaL_checktype(lua, index, LUA_TBOOLEAN);
  return lua_toboolean(lua, index) != 0;
}

// Backends.

BackendPointer& push_backend(lua_State* lua) {
  void* memory = lua_newuserdatauv(lua, sizeof(BackendPointer), 0);
  auto* pointer = std::construct_at(static_cast<BackendPointer*>(memory));
  luaL_setmetatable(lua, kConfigBackendType);
  return *pointer;
}

int collect_backend(lua_State* lua) {
  std::destroy_at(static_cast<BackendPointer*>(lua_touserdata(lua, 1)));
  return 0;
}

/// Copies the text at the top of the stack, and pops it.
void take_text(lua_State* lua, std::string& out, std::size_t bytes_max, const char* missing,
               const char* too_long) {
  if (lua_isstring(lua, -1) == 0) {
    raise(lua, missing);
  }
  const std::string_view text = text_at(lua, -1);
  if (text.size() > bytes_max) {
    raise(lua, too_long);
  }
  out.assign(text);
  lua_pop(lua, 1);
}

/// Calls `take` with field `name` of the table at 1 on top of the stack, when it is there.
template <typename Take>
void with_field(lua_State* lua, const char* name, Take take) {
  if (lua_getfield(lua, 1, name) != LUA_TNIL) {
    take(lua_gettop(lua));
  }
  lua_pop(lua, 1);
}

void read_logging(lua_State* lua, int index, call::ReplyLogging& logging) {
  if (lua_istable(lua, index) == 0) {
    raise(lua, "backend log option must be a table");
  }
  logging.is_on = true;
  if (lua_getfield(lua, index, "deadline") != LUA_TNIL) {
    logging.deadline = base::Millis(check_count(lua, -1, "backend log deadline must be >= 0"));
  }
  if (lua_getfield(lua, index, "rate") != LUA_TNIL) {
    logging.rate = check_count(lua, -1, "backend log sample rate must be >= 0");
  }
  if (lua_getfield(lua, index, "errors") != LUA_TNIL) {
    logging.logs_errors = check_bool(lua, lua_gettop(lua));
  }
  if (lua_getfield(lua, index, "tag") != LUA_TNIL) {
    logging.tag.assign(check_text(lua, -1));
  }
  lua_pop(lua, 4);
}

void read_times(lua_State* lua, McpBackendOptions& backend) {
  with_field(lua, "connecttimeout",
             [&](int at) { backend.connect_timeout = micros_of(luaL_checknumber(lua, at)); });
  with_field(lua, "readtimeout",
             [&](int at) { backend.read_timeout = micros_of(luaL_checknumber(lua, at)); });
  with_field(lua, "retrywaittime",
             [&](int at) { backend.retry_waittime = whole_seconds_of(luaL_checknumber(lua, at)); });
  with_field(lua, "retrytimeout",
             [&](int at) { backend.retry_waittime = whole_seconds_of(luaL_checknumber(lua, at)); });
  with_field(lua, "flaptime",
             [&](int at) { backend.flap_time = micros_of(luaL_checknumber(lua, at)); });
  with_field(lua, "flapbackofframp", [&](int at) {
    backend.flap_backoff_ramp = std::max(luaL_checknumber(lua, at), kRampMin);
  });
  with_field(lua, "flapbackoffmax", [&](int at) {
    backend.flap_backoff_max = truncated_seconds_of(luaL_checknumber(lua, at));
  });
}

void read_limits(lua_State* lua, McpBackendOptions& backend) {
  with_field(lua, "failurelimit", [&](int at) {
    backend.failure_limit = check_count(lua, at, "failurelimit must be >= 0");
  });
  with_field(lua, "depthlimit", [&](int at) {
    backend.depth_limit = check_count(lua, at, "depthlimit must be >= 0");
  });
  with_field(lua, "connections", [&](int at) {
    const lua_Integer count = luaL_checkinteger(lua, at);
    if (count <= 0) {
      raise(lua, "backend connections argument must be >= 0");
    }
    if (count > pool::kMcpConnectionsMax) {
      raise(lua, "backend connections argument must be <= 8");
    }
    backend.connections = static_cast<std::uint32_t>(count);
  });
}

void read_backend(lua_State* lua, McpBackendOptions& backend) {
  lua_getfield(lua, 1, "label");
  take_text(lua, backend.label, kLabelBytesMax, "backend must have a label argument",
            "backend label too long");
  lua_getfield(lua, 1, "host");
  take_text(lua, backend.host, kHostBytesMax, "backend must have a host argument",
            "backend name too long");
  lua_getfield(lua, 1, "port");
  take_text(lua, backend.port, kPortBytesMax, "backend must have a port argument",
            "backend port too long");
  read_times(lua, backend);
  read_limits(lua, backend);
  with_field(lua, "tcpkeepalive", [&](int at) { backend.tcp_keepalive = check_bool(lua, at); });
  with_field(lua, "tls", [&](int at) { backend.is_tls = check_bool(lua, at); });
  with_field(lua, "down", [&](int at) { backend.is_down = check_bool(lua, at); });
  with_field(lua, "log", [&](int at) { read_logging(lua, at, backend.logging); });
}

int make_backend(lua_State* lua) {
  BackendPointer& backend = push_backend(lua);
  backend = std::make_shared<McpBackendOptions>(state_of(lua).settings().backend);
  backend->is_tls = state_of(lua).settings().uses_tls;
  if (lua_istable(lua, 1) != 0) {
    lua_insert(lua, 2);
    lua_settop(lua, 2);
    read_backend(lua, *backend);
    return 1;
  }
  lua_insert(lua, 1);
  lua_settop(lua, 4);
  lua_pushvalue(lua, 2);
  take_text(lua, backend->label, kLabelBytesMax, "backend must have a label argument",
            "backend label too long");
  lua_pushvalue(lua, 3);
  take_text(lua, backend->host, kHostBytesMax, "backend must have a host argument",
            "backend name too long");
  lua_pushvalue(lua, 4);
  take_text(lua, backend->port, kPortBytesMax, "backend must have a port argument",
            "backend port too long");
  lua_settop(lua, 1);
  return 1;
}

// Pools.

int collect_pool(lua_State* lua) {
  std::destroy_at(static_cast<PoolPointer*>(lua_touserdata(lua, 1)));
  return 0;
}

int new_jump(lua_State* lua) {
  return raise(lua, "a distribution is an option of mcp.pool, no function to call");
}
int new_ring(lua_State* lua) {
  return raise(lua, "a distribution is an option of mcp.pool, no function to call ");
}

void read_distribution(lua_State* lua, pool::PlacementOptions& placement) {
  placement.distribution = pool::DistributionKind::Jump;
  if (lua_getfield(lua, 2, "dist") != LUA_TNIL) {
    if (lua_istable(lua, -1) == 0 || lua_getfield(lua, -1, "new") == LUA_TNIL) {
      raise(lua, "key distribution object missing 'new' function");
    }
    const lua_CFunction function = lua_tocfunction(lua, -1);
    if (function == &new_ring) {
      placement.distribution = pool::DistributionKind::RingMemcached;
    } else if (function != &new_jump) {
      raise(lua, "key distribution object is none of mcp.dist_jump_hash and mcp.dist_ring_hash");
    }
    lua_pop(lua, 1);
  }
  lua_pop(lua, 1);
}

void read_ring(lua_State* lua, pool::PlacementOptions& placement) {
  if (lua_getfield(lua, 2, "omode") != LUA_TNIL) {
    const std::string_view mode = check_text(lua, -1);
    if (mode == "default") {
      placement.ring_naming = pool::RingNaming::Default;
    } else if (mode == "ketama") {
      placement.ring_naming = pool::RingNaming::Ketama;
    } else if (mode == "twemproxy") {
      placement.ring_naming = pool::RingNaming::Twemproxy;
    } else if (mode == "evcache") {
      placement.ring_naming = pool::RingNaming::Evcache;
    } else {
      raise(lua, "ring_hash: bad omode argument");
    }
  }
  if (lua_getfield(lua, 2, "obuckets") != LUA_TNIL) {
    const lua_Integer points = luaL_checkinteger(lua, -1);
    if (points < 1 || points > std::numeric_limits<std::int32_t>::max()) {
      raise(lua, "ring_hash: option argument must be a positive integer");
    }
    placement.ring_points = static_cast<std::uint32_t>(points);
  }
  lua_pop(lua, 2);
}

void read_hash(lua_State* lua, pool::PlacementOptions& placement) {
  placement.hash = pool::HashKind::Xxh3;
  if (lua_getfield(lua, 2, "hash") != LUA_TNIL) {
    placement.hash = *static_cast<pool::HashKind*>(luaL_checkudata(lua, -1, kHashType));
  }
  if (lua_getfield(lua, 2, "seed") != LUA_TNIL) {
    placement.hash_seed = pool::hash_xxh3(check_text(lua, -1), 0);
  }
  lua_pop(lua, 2);
}

void read_filter(lua_State* lua, pool::PlacementOptions& placement) {
  placement.filter = pool::KeyFilter::HashTag;  // Without a tag: the whole key.
  if (lua_getfield(lua, 2, "filter") != LUA_TNIL) {
    const std::string_view name = check_text(lua, -1);
    if (name == "stop") {
      placement.filter = pool::KeyFilter::MemcachedStop;
    } else if (name == "tags") {
      placement.filter = pool::KeyFilter::MemcachedTags;
    } else {
      raise_format(lua, "unknown hash filter specified: %s", name.data());
    }
    if (lua_getfield(lua, 2, "filter_conf") != LUA_TSTRING) {
      raise(lua, "hash filter requires 'filter_conf' string");
    }
    const std::string_view conf = text_at(lua, -1);
    if (conf.size() < kFilterBytesMin || conf.size() > kFilterBytesMax) {
      raise(lua, "hash filter conf must be between 2 and 5 characters");
    }
    placement.hash_tag.assign(placement.filter == pool::KeyFilter::MemcachedTags ? conf.substr(0, 2)
                                                                                 : conf);
    lua_pop(lua, 1);
  }
  lua_pop(lua, 1);
}

void read_pool_options(lua_State* lua, McpPoolOptions& options) {
  if (lua_getfield(lua, 2, "iothread") != LUA_TNIL) {
    options.is_process_wide = check_bool(lua, lua_gettop(lua));
  }
  if (lua_getfield(lua, 2, "beprefix") != LUA_TNIL) {
    options.prefix.assign(check_text(lua, -1).substr(0, kPrefixBytesMax));
  }
  lua_pop(lua, 2);
  read_distribution(lua, options.placement);
  read_hash(lua, options.placement);
  read_filter(lua, options.placement);
  if (options.placement.distribution == pool::DistributionKind::RingMemcached) {
    read_ring(lua, options.placement);
  }
}

int make_pool(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 2);
  if (lua_isnil(lua, 2)) {
    lua_newtable(lua);
    lua_replace(lua, 2);
  }
  luaL_checktype(lua, 2, LUA_TTABLE);
  void* memory = lua_newuserdatauv(lua, sizeof(PoolPointer), 0);
  auto* pointer = std::construct_at(static_cast<PoolPointer*>(memory));
  luaL_setmetatable(lua, kConfigPoolType);
  auto* options = new McpPoolOptions;  // NOLINT(cppcoreguidelines-owning-memory): the userdata owns
                                       // it from the next line on.
  pointer->reset(options);
  options->is_process_wide = state_of(lua).settings().uses_iothread;
  const auto count = static_cast<lua_Integer>(lua_rawlen(lua, 1));
  for (lua_Integer i = 1; i <= count; ++i) {
    lua_rawgeti(lua, 1, i);
    const auto* backend = static_cast<BackendPointer*>(luaL_testudata(lua, -1, kConfigBackendType));
    if (backend == nullptr) {
      raise(lua, "mcp.backend expected");
    }
    if ((*backend)->is_tls && !state_of(lua).settings().has_tls) {
      raise(lua, "TLS requested but not initialized: call mcp.init_tls()");
    }
    options->backends.push_back(*backend);
    lua_pop(lua, 1);
  }
  read_pool_options(lua, *options);
  return 1;
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
  if (check_bool(lua, 1)) {
    return raise(lua, "cannot set mcp.backend_use_tls: TLS support not compiled");
  }
  return 0;
}
int init_tls(lua_State* lua) {
  return raise(lua, "cannot run mcp.init_tls: TLS support not compiled");
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
    return raise_format(lua, "stat name too long: %s", name.data());
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
constexpr luaL_Reg kBackendMeta[] = {{"__gc", &collect_backend}, {nullptr, nullptr}};
constexpr luaL_Reg kPoolMeta[] = {{"__gc", &collect_pool}, {nullptr, nullptr}};
constexpr luaL_Reg kLimiterMeta[] = {{"__gc", &collect_limiter}, {nullptr, nullptr}};
constexpr luaL_Reg kTextMeta[] = {{"__gc", &collect_text}, {nullptr, nullptr}};

constexpr luaL_Reg kFunctions[] = {{"active_req_limit", &set_active_limit},
                                   {"add_stat", &add_stat},
                                   {"backend", &make_backend},
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
                                   {"init_tls", &init_tls},
                                   {"log", &log_message},
                                   {"luagc_ratio", &set_gc_ratio},
                                   {"pool", &make_pool},
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

void push_hash(lua_State* lua, pool::HashKind kind) {
  *static_cast<pool::HashKind*>(lua_newuserdatauv(lua, sizeof(pool::HashKind), 0)) = kind;
  luaL_setmetatable(lua, kHashType);
}

}  // namespace

void define_placement_objects(lua_State* lua) {
  define_type(lua, kHashType, kNone, kNone);
  push_hash(lua, pool::HashKind::Xxh3);
  lua_setfield(lua, -2, "hash_xxhash");
  lua_newtable(lua);
  lua_pushcfunction(lua, &new_jump);
  lua_setfield(lua, -2, "new");
  lua_setfield(lua, -2, "dist_jump_hash");
  lua_newtable(lua);
  lua_pushcfunction(lua, &new_ring);
  lua_setfield(lua, -2, "new");
  push_hash(lua, pool::HashKind::Md5);
  lua_setfield(lua, -2, "hash");
  lua_setfield(lua, -2, "dist_ring_hash");
}

void define_config_functions(lua_State* lua) {
  define_type(lua, kConfigBackendType, kNone, kBackendMeta);
  define_type(lua, kConfigPoolType, kNone, kPoolMeta);
  define_type(lua, kConfigLimiterType, kNone, kLimiterMeta);
  define_type(lua, "mcp.text", kNone, kTextMeta);
  luaL_setfuncs(lua, kFunctions, 0);
  // Both kinds of states have it; only workers can use it.
  lua_newuserdatauv(lua, 0, 0);
  lua_setfield(lua, -2, "internal_handler");
  define_placement_objects(lua);
}

}  // namespace kvferry::lua
