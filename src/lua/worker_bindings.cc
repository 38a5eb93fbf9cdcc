// What `mcp` has in workers beside generators, routers, requests and responses.
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>

#include "lua/boxes.h"
#include "lua/log_line.h"
#include "lua/native_hook.h"
#include "lua/router.h"
#include "lua/worker_state.h"

namespace kvferry::lua {

using memcache::Command;

namespace {

constexpr const char* kLimiterType = "mcp.ratelim_tbf";
constexpr const char* kSharedLimiterType = "mcp.ratelim_global_tbf";
constexpr lua_Number kLimiterMax = 4294967294.0;

WorkerState& state_of(lua_State* lua) {
  return Vm::owner_of<WorkerState>(lua);
}

/// A pool as scripts hold it, or the local cache, which is not theirs.
struct PoolBox {
  call::Target* target = nullptr;
  bool is_owned = false;
};

int collect_pool(lua_State* lua) {
  auto* box = static_cast<PoolBox*>(lua_touserdata(lua, 1));
  if (box->is_owned) {
    delete std::exchange(box->target, nullptr);  // NOLINT(cppcoreguidelines-owning-memory): the
                                                 // userdata is its owner.
  }
  return 0;
}

void push_target(lua_State* lua, call::Target* target, bool is_owned) {
  auto* box = static_cast<PoolBox*>(lua_newuserdatauv(lua, sizeof(PoolBox), 0));
  *box = PoolBox{.target = target, .is_owned = is_owned};
  luaL_setmetatable(lua, kPoolType);
}

// mcp.attach

/// A generator around the plain function at `index`; pushes it.
Generator& wrap_function(lua_State* lua, int index, WorkerState& state) {
  Generator& generator = push_generator(lua, state);
  generator.push_anchors(lua);
  lua_pushvalue(lua, index);
  lua_pushcclosure(
      lua,
      [](lua_State* inner) {
        lua_pushvalue(inner, lua_upvalueindex(1));
        return 1;
      },
      1);
  lua_setfield(lua, -2, "f");
  lua_pop(lua, 1);
  generator.set_ready("anonymous", 0);
  return generator;
}

std::string_view check_tag(lua_State* lua, int index) {
  if (lua_isnoneornil(lua, index)) {
    return {};
  }
  const std::string_view tag = check_text(lua, index);
  if (tag.empty() || tag.size() > kTagBytesMax) {
    raise(lua, "mcp.attach: tag must be 1 to 8 characters");
  }
  return tag;
}

/// Whether commands of `number`, which may be a group, include `command`.
bool covers(lua_Integer number, Command command) {
  if (command == Command::Unknown || command == Command::Mn) {
    return false;
  }
  const unsigned own = command_number(command);
  if (number == kCommandAny) {
    return own != 0;
  }
  if (number == kCommandAnyStorage) {
    return own != 0 && own < kCommandEndStorage;
  }
  return own != 0 && own == static_cast<unsigned>(number);
}

void stage_all(lua_State* lua, WorkerState& state, lua_Integer number, Hookable* target,
               std::string_view tag) {
  for (std::size_t i = 0; i < memcache::kCommandCount; ++i) {
    const auto command = static_cast<Command>(i);
    if (covers(number, command)) {
      lua_pushvalue(lua, -1);
      state.stage(lua, StagedHook{.tag = std::string(tag), .command = command, .target = target});
    }
  }
}

int attach(lua_State* lua) {
  const lua_Integer number = luaL_checkinteger(lua, 1);
  WorkerState& state = state_of(lua);
  lua_settop(lua, 3);
  const std::string_view tag = check_tag(lua, 3);
  Hookable* target = nullptr;
  if (lua_isfunction(lua, 2) != 0) {
    target = &wrap_function(lua, 2, state);
  } else if (Generator* generator = generator_at(lua, 2)) {
    if (generator->is_closed()) {
      return raise(lua, "mcp.attach: cannot use a previously replaced function");
    }
    if (!generator->is_ready()) {
      return raise(lua, "mcp.attach: must pass a function");
    }
    target = generator;
    lua_pushvalue(lua, 2);
  } else if (Router* router = router_at(lua, 2)) {
    target = router;
    lua_pushvalue(lua, 2);
  } else if (NativeHook* native = native_hook_at(lua, 2)) {
    target = native;
    lua_pushvalue(lua, 2);
  } else {
    return raise(lua, "mcp.attach: must pass a function");
  }
  stage_all(lua, state, number, target, tag);
  return 0;
}

// Counting and logging.

int stat(lua_State* lua) {
  const lua_Integer index = luaL_checkinteger(lua, 1);
  const lua_Integer change = luaL_checkinteger(lua, 2);
  const UserCounters* counters = state_of(lua).user_counters_now();
  if (counters == nullptr) {
    return raise(lua, "no stats counters initialized");
  }
  if (index < 1 || static_cast<std::size_t>(index) >= counters->size()) {
    return raise(lua, "stat index out of range");
  }
  state_of(lua).count_for_user(static_cast<std::size_t>(index), change);
  return 0;
}

int log_message(lua_State* lua) {
  WorkerState& state = state_of(lua);
  if (state.events().wants_messages()) {
    const std::string_view text = check_text(lua, 1);
    state.events().on_message(text.substr(0, kLogMessageBytesMax));
  }
  return 0;
}

/// The response at `index`: nil and texts count as none.
const route::RouteReply* check_logged_reply(lua_State* lua, int index) {
  if (lua_isnoneornil(lua, index) || lua_type(lua, index) == LUA_TSTRING) {
    return nullptr;
  }
  return &check_reply(lua, index);
}

void write_request(WorkerState& state, const route::RouteReply* reply,
                   const route::RouteRequest& request, std::string_view detail, lua_Integer fd) {
  state.events().on_request(compose_request_line(reply, &request, detail, static_cast<int>(fd)));
}

int log_request(lua_State* lua) {
  WorkerState& state = state_of(lua);
  if (!state.events().wants_requests()) {
    return 0;
  }
  const route::RouteRequest& request = check_request(lua, 1);
  const route::RouteReply* reply = check_logged_reply(lua, 2);
  const std::string_view detail = lua_isnoneornil(lua, 3) ? std::string_view{} : check_text(lua, 3);
  const lua_Integer fd = luaL_optinteger(lua, 4, state.running_fd());
  write_request(state, reply, request, detail, fd);
  return 0;
}

int log_sample(lua_State* lua) {
  WorkerState& state = state_of(lua);
  if (!state.events().wants_requests()) {
    return 0;
  }
  const lua_Integer deadline = luaL_checkinteger(lua, 1);
  const lua_Integer rate = luaL_checkinteger(lua, 2);
  luaL_checktype(lua, 3, LUA_TBOOLEAN);
  const bool logs_errors = lua_toboolean(lua, 3) != 0;
  const route::RouteRequest& request = check_request(lua, 4);
  const route::RouteReply* reply = check_logged_reply(lua, 5);
  const std::string_view detail = lua_isnoneornil(lua, 6) ? std::string_view{} : check_text(lua, 6);
  const lua_Integer fd = luaL_optinteger(lua, 7, state.running_fd());
  const auto bounded_rate = static_cast<std::uint32_t>(std::min<lua_Integer>(
      std::max<lua_Integer>(rate, 0), std::numeric_limits<std::uint32_t>::max()));
  if (state.wants_sample(reply, base::Millis(std::max<lua_Integer>(deadline, 0)), bounded_rate,
                         logs_errors)) {
    write_request(state, reply, request, detail, fd);
  }
  return 0;
}

int real_millis(lua_State* lua) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  lua_pushinteger(lua, std::chrono::duration_cast<base::Millis>(now).count());
  return 1;
}

int mono_millis(lua_State* lua) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  lua_pushinteger(lua, std::chrono::duration_cast<base::Millis>(now).count());
  return 1;
}

// Limiters.

int take_tokens(lua_State* lua) {
  auto* bucket = static_cast<route::TokenBucket*>(luaL_checkudata(lua, 1, kLimiterType));
  const lua_Integer count = luaL_checkinteger(lua, 2);
  lua_pushboolean(lua, bucket->take(count, std::chrono::steady_clock::now()) ? 1 : 0);
  return 1;
}

int make_limiter(lua_State* lua) {
  const route::TokenBucketOptions options = read_bucket_options(lua, 1);
  void* memory = lua_newuserdatauv(lua, sizeof(route::TokenBucket), 0);
  std::construct_at(static_cast<route::TokenBucket*>(memory), options,
                    std::chrono::steady_clock::now());
  luaL_setmetatable(lua, kLimiterType);
  return 1;
}

int take_shared_tokens(lua_State* lua) {
  auto* bucket = static_cast<ConfigValue::Limiter*>(luaL_checkudata(lua, 1, kSharedLimiterType));
  const lua_Integer count = luaL_checkinteger(lua, 2);
  lua_pushboolean(lua, (*bucket)->take(count, std::chrono::steady_clock::now()) ? 1 : 0);
  return 1;
}

int collect_shared_limiter(lua_State* lua) {
  std::destroy_at(static_cast<ConfigValue::Limiter*>(lua_touserdata(lua, 1)));
  return 0;
}

constexpr luaL_Reg kNone[] = {{nullptr, nullptr}};
constexpr luaL_Reg kPoolMeta[] = {{"__gc", &collect_pool}, {nullptr, nullptr}};
constexpr luaL_Reg kLimiterMeta[] = {{"__call", &take_tokens}, {nullptr, nullptr}};
constexpr luaL_Reg kSharedLimiterMeta[] = {
    {"__call", &take_shared_tokens}, {"__gc", &collect_shared_limiter}, {nullptr, nullptr}};

constexpr luaL_Reg kFunctions[] = {{"attach", &attach},
                                   {"internal", &run_local},
                                   {"log", &log_message},
                                   {"log_req", &log_request},
                                   {"log_reqsample", &log_sample},
                                   {"ratelim_tbf", &make_limiter},
                                   {"stat", &stat},
                                   {"time_mono_millis", &mono_millis},
                                   {"time_real_millis", &real_millis},
                                   {nullptr, nullptr}};

/// Field `name` of the table at `index`; 0 when absent.
std::uint32_t read_bucket_field(lua_State* lua, int index, const char* name) {
  const int type = lua_getfield(lua, index, name);
  lua_Number value = 0;
  if (type != LUA_TNIL) {
    int is_number = 0;
    value = lua_tonumberx(lua, -1, &is_number);
    if (is_number == 0 || !(value >= 0 && value <= kLimiterMax) || std::floor(value) != value) {
      raise(lua, "mcp.ratelim_tbf: arguments must be unsigned 32 bit integer");
    }
  }
  lua_pop(lua, 1);
  return static_cast<std::uint32_t>(value);
}

}  // namespace

route::TokenBucketOptions read_bucket_options(lua_State* lua, int index) {
  luaL_checktype(lua, index, LUA_TTABLE);
  route::TokenBucketOptions options;
  options.limit = read_bucket_field(lua, index, "limit");
  options.fill_rate = std::max(read_bucket_field(lua, index, "fillrate"), 1U);
  options.tick = base::Millis(std::max(read_bucket_field(lua, index, "tickrate"), 1U));
  return options;
}

const ConfigValue::Limiter* shared_limiter_at(lua_State* lua, int index) {
  return static_cast<const ConfigValue::Limiter*>(luaL_testudata(lua, index, kSharedLimiterType));
}

call::Target* WorkerState::target_at(lua_State* lua, int index) {
  if (NativeHook* native = native_hook_at(lua, index)) {
    return native->target();
  }
  const void* box = luaL_testudata(lua, index, kPoolType);
  return box == nullptr ? nullptr : static_cast<const PoolBox*>(box)->target;
}

void WorkerState::push_pool(const ConfigValue::Pool& pool) {
  std::unique_ptr<call::Target> target = setup_.pools.make_pool(pool);
  // A pool that was collected may have had the same address.
  logged_.erase(target.get());
  for (const auto& backend : pool->backends) {
    if (backend->logging.is_on) {
      logged_.insert(target.get());
    }
  }
  push_target(main(), target.release(), true);
}

void WorkerState::push_limiter(const ConfigValue::Limiter& limiter) {
  void* memory = lua_newuserdatauv(main(), sizeof(ConfigValue::Limiter), 0);
  std::construct_at(static_cast<ConfigValue::Limiter*>(memory), limiter);
  luaL_setmetatable(main(), kSharedLimiterType);
}

void define_worker_functions(lua_State* lua, WorkerState& state) {
  define_type(lua, kPoolType, kNone, kPoolMeta);
  define_type(lua, kLimiterType, kNone, kLimiterMeta);
  define_type(lua, kSharedLimiterType, kNone, kSharedLimiterMeta);
  luaL_setfuncs(lua, kFunctions, 0);
  push_target(lua, &state.local(), false);
  lua_setfield(lua, -2, "internal_handler");
}

}  // namespace kvferry::lua
