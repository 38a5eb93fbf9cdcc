// mcp.backend and mcp.pool, and what they take for options.
#include <limits>
#include <memory>

#include "lua/config_numbers.h"
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
constexpr const char* kHashType = "mcp.hash";

using BackendPointer = std::shared_ptr<McpBackendOptions>;
using PoolPointer = ConfigValue::Pool;

ConfigState& state_of(lua_State* lua) {
  return Vm::owner_of<ConfigState>(lua);
}

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
      raise_format(lua, "unknown hash filter specified: %s", lua_tostring(lua, -1));
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
  if (lua_getfield(lua, 2, "wide_gets") != LUA_TNIL) {
    options.has_wide_gets = check_bool(lua, lua_gettop(lua));
  }
  lua_pop(lua, 3);
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
    if ((*backend)->is_tls) {
      (*backend)->tls = state_of(lua).settings().tls;
      if ((*backend)->tls == nullptr) {
        raise(lua, "TLS requested but not initialized: call mcp.init_tls()");
      }
    }
    options->backends.push_back(*backend);
    lua_pop(lua, 1);
  }
  read_pool_options(lua, *options);
  return 1;
}

constexpr luaL_Reg kNone[] = {{nullptr, nullptr}};
constexpr luaL_Reg kBackendMeta[] = {{"__gc", &collect_backend}, {nullptr, nullptr}};
constexpr luaL_Reg kPoolMeta[] = {{"__gc", &collect_pool}, {nullptr, nullptr}};
constexpr luaL_Reg kFunctions[] = {
    {"backend", &make_backend}, {"pool", &make_pool}, {nullptr, nullptr}};

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

void define_backends(lua_State* lua) {
  define_type(lua, kConfigBackendType, kNone, kBackendMeta);
  define_type(lua, kConfigPoolType, kNone, kPoolMeta);
  luaL_setfuncs(lua, kFunctions, 0);
}

}  // namespace kvferry::lua
