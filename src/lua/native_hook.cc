#include "lua/native_hook.h"

#include <algorithm>
#include <memory>
#include <random>
#include <utility>

#include "base/check.h"
#include "lua/generator.h"
#include "lua/worker_state.h"
#include "pool/mcp_pool.h"
#include "route/coalesce_route.h"
#include "route/failover_routes.h"
#include "route/near_route.h"
#include "route/replicating_routes.h"

namespace kvferry::lua {

using call::Call;
using call::Flow;

namespace {

/// Whether answers of `pool` may have to be logged, so that somebody must look at them.
bool is_logged(const pool::McpPool& pool) {
  for (const auto& backend : pool.options().backends) {
    if (backend->logging.is_on) {
      return true;
    }
  }
  return false;
}

std::uint64_t draw_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

}  // namespace

NativeHook::NativeHook(WorkerState& state) : state_(state) {}

NativeHook::~NativeHook() {
  KVF_CHECK(references_ == 0 || route_ == nullptr);
}

void NativeHook::add_child(call::Target& target, Hookable* hookable) {
  children_.push_back(
      Child{.route = route::RouteChild{.target = &target, .is_route = hookable != nullptr},
            .hookable = hookable,
            .pool = hookable == nullptr ? dynamic_cast<pool::McpPool*>(&target) : nullptr});
}

route::RouteSetup NativeHook::setup() {
  route::RouteSetup setup{
      .loop = state_.loop(), .calls = state_.calls(), .host = *this, .children = {}};
  for (const Child& child : children_) {
    setup.children.push_back(child.route);
  }
  return setup;
}

bool NativeHook::build(std::string_view kind) {
  route_ = make_waiting(kind);
  if (route_ == nullptr) {
    // Those that hand calls on see no answers: where these matter, somebody between does.
    for (Child& child : children_) {
      if (child.pool != nullptr && is_logged(*child.pool)) {
        route::RouteSetup watcher = setup();
        watcher.children = {child.route};
        watchers_.push_back(std::make_unique<route::SplitRoute>(watcher));
        child.route = route::RouteChild{.target = watchers_.back().get(), .is_route = true};
        child.pool = nullptr;
      }
    }
    route_ = make_passing(kind);
  }
  return route_ != nullptr;
}

Passage NativeHook::passage(const memcache::Request& request) {
  const route::RouteChild* selected = route_->select(request.command, request.key);
  const auto child = std::find_if(children_.begin(), children_.end(), [&](const Child& each) {
    return selected != nullptr && each.route.target == selected->target;
  });
  if (child == children_.end()) {
    return {};
  }
  Passage passage;
  if (child->hookable != nullptr) {
    passage = child->hookable->passage(request);
  } else if (child->pool != nullptr) {
    passage =
        Passage{.pool = child->pool,
                .form = child->pool->options().has_wide_gets.value_or(true) ? pool::GetForm::Wide
                                                                            : pool::GetForm::Row,
                .is_for_all_keys = true};
  }
  passage.is_for_all_keys = passage.is_for_all_keys && children_.size() == 1;
  return passage;
}

std::unique_ptr<route::NativeRoute> NativeHook::make_passing(std::string_view kind) {
  if (kind == "direct") {
    return std::make_unique<route::DirectRoute>(setup());
  }
  if (kind == "null") {
    return std::make_unique<route::NullRoute>(setup());
  }
  if (kind == "random") {
    return std::make_unique<route::RandomRoute>(setup(), draw_seed());
  }
  if (kind == "ttl") {
    return std::make_unique<route::TtlRoute>(setup(), options.ttl);
  }
  if (kind == "ratelim" && options.bucket) {
    return std::make_unique<route::RateLimitRoute>(setup(), *std::move(options.bucket),
                                                   options.fail_until_limit);
  }
  return nullptr;
}

std::unique_ptr<route::NativeRoute> NativeHook::make_waiting(std::string_view kind) {
  if (kind == "failover") {
    return std::make_unique<route::FailoverRoute>(
        setup(), route::FailoverOptions{.goes_on_after_miss = options.miss,
                                        .tries_max = options.failover_count,
                                        .shuffles = options.shuffle,
                                        .fixed_children = options.fixed_children,
                                        .wait = options.wait,
                                        .seed = draw_seed()});
  }
  if (kind == "zfailover") {
    return std::make_unique<route::ZoneFailoverRoute>(setup(), options.miss);
  }
  if (kind == "allfastest") {
    return std::make_unique<route::AllFastestRoute>(setup(), options.miss, options.wait);
  }
  if (kind == "allsync") {
    return std::make_unique<route::AllSyncRoute>(setup());
  }
  if (kind == "allasync") {
    return std::make_unique<route::AllAsyncRoute>(setup());
  }
  if (kind == "split") {
    return std::make_unique<route::SplitRoute>(setup());
  }
  if (kind == "nearcache" && state_.near_stores() != nullptr) {
    return std::make_unique<route::NearRoute>(
        setup(), state_.near_stores()->of(options.near_space, options.near_memory_bytes),
        *state_.clock(), options.near);
  }
  if (kind == "coalesce" && state_.writes() != nullptr) {
    return std::make_unique<route::CoalesceRoute>(setup(), *state_.writes());
  }
  return nullptr;
}

void NativeHook::run(Call& call, const memcache::Request& request) {
  state_.stats().active.add(1);
  hold();
  call.outer_sink = std::exchange(call.sink, this);
  route_->send(call, request);
}

Flow NativeHook::on_reply(Call& call, const call::ReplyPart& part) {
  call::ReplySink& sink = *call.outer_sink;
  if (!part.is_last) {
    return sink.on_reply(call, part);
  }
  call.sink = &sink;
  state_.stats().active.sub(1);
  if (call.held_bytes != 0) {
    on_dropped(std::exchange(call.held_bytes, 0));
  }
  const Flow flow = sink.on_reply(call, part);
  let_go();
  return flow;
}

void NativeHook::on_blocked(Call& call) {
  call.outer_sink->on_blocked(call);
}

void NativeHook::acquire() {
  if (acquired_++ == 0) {
    state_.names().add_generators(name_, 1);
    state_.names().add_slots(name_, 0);
    for (const Child& child : children_) {
      if (child.hookable != nullptr) {
        child.hookable->acquire();
      }
    }
  }
  hold();
}

void NativeHook::release() {
  KVF_CHECK(acquired_ != 0);
  if (--acquired_ == 0) {
    state_.names().add_generators(name_, -1);
    for (const Child& child : children_) {
      if (child.hookable != nullptr) {
        child.hookable->release();
      }
    }
  }
  let_go();
}

void NativeHook::hold() {
  if (references_++ == 0) {
    state_.pin(this);
  }
}

void NativeHook::let_go() {
  KVF_CHECK(references_ != 0);
  if (--references_ == 0) {
    state_.unpin(this);
  }
}

void NativeHook::on_logged_reply(const route::RouteReply& reply, const route::RouteRequest& request,
                                 int client_fd) {
  state_.on_reply(reply, &request, client_fd);
}

void NativeHook::count(route::RouteEvent event) {
  const std::uint32_t counter = options.counters[static_cast<std::size_t>(event)];
  const UserCounters* counters = state_.user_counters_now();
  if (counter != 0 && counters != nullptr && counter < counters->size()) {
    state_.count_for_user(counter, 1);
  }
}

void NativeHook::on_lingering() {
  state_.stats().active.add(1);
}

void NativeHook::on_lingered() {
  state_.stats().active.sub(1);
}

void NativeHook::on_kept(std::size_t bytes) {
  state_.stats().buffer_bytes.add(bytes);
}

void NativeHook::on_dropped(std::size_t bytes) {
  state_.stats().buffer_bytes.sub(bytes);
}

namespace {

// The arguments of route(kind, fields), and what it makes.
constexpr int kKindPlace = 1;
constexpr int kFieldsPlace = 2;
constexpr int kHookPlace = 3;

int collect(lua_State* lua) {
  std::destroy_at(static_cast<NativeHook*>(lua_touserdata(lua, 1)));
  return 0;
}

NativeHook& push_hook(lua_State* lua, WorkerState& state) {
  void* memory = lua_newuserdatauv(lua, sizeof(NativeHook), 1);
  lua_newtable(lua);
  lua_setiuservalue(lua, -2, 1);
  auto* hook = std::construct_at(static_cast<NativeHook*>(memory), state);
  luaL_setmetatable(lua, kNativeHookType);
  state.register_object(lua, hook);
  return *hook;
}

/// Takes the child at the top of the stack, and pops it.
void take_child(lua_State* lua, NativeHook& hook, WorkerState& state) {
  Hookable* hookable = native_hook_at(lua, -1);
  call::Target* target = state.target_at(lua, -1);
  if (Generator* generator = generator_at(lua, -1)) {
    if (!generator->is_ready() || generator->is_closed()) {
      raise(lua, "a function generator that is a child of a route must be ready");
    }
    target = generator;
    hookable = generator;
  }
  if (target == nullptr) {
    raise(lua, "a child of a route must be a pool, a route, or a function generator");
  }
  lua_getiuservalue(lua, kHookPlace, 1);
  lua_insert(lua, -2);
  lua_rawseti(lua, -2, static_cast<lua_Integer>(hook.child_count()) + 1);
  lua_pop(lua, 1);
  hook.add_child(*target, hookable);
}

bool read_flag(lua_State* lua, const char* name) {
  lua_getfield(lua, kFieldsPlace, name);
  const bool is_set = lua_toboolean(lua, -1) != 0;
  lua_pop(lua, 1);
  return is_set;
}

std::uint32_t read_count(lua_State* lua, const char* name) {
  lua_getfield(lua, kFieldsPlace, name);
  const lua_Integer count = lua_tointeger(lua, -1);
  lua_pop(lua, 1);
  return count < 0 || count > std::numeric_limits<std::int32_t>::max()
             ? 0
             : static_cast<std::uint32_t>(count);
}

/// A size; the script that made it has checked its bounds.
std::uint64_t read_bytes(lua_State* lua, const char* name) {
  lua_getfield(lua, kFieldsPlace, name);
  const lua_Integer bytes = lua_tointeger(lua, -1);
  lua_pop(lua, 1);
  return bytes < 0 ? 0 : static_cast<std::uint64_t>(bytes);
}

void read_texts(lua_State* lua, NativeHook& hook) {
  if (lua_getfield(lua, kFieldsPlace, "label") == LUA_TSTRING) {
    hook.set_name(text_at(lua, -1).substr(0, kGeneratorNameBytesMax));
  }
  if (lua_getfield(lua, kFieldsPlace, "ttl") != LUA_TNIL) {
    hook.options.ttl.assign(check_text(lua, -1));
  }
  if (lua_getfield(lua, kFieldsPlace, "wait") != LUA_TNIL) {
    constexpr lua_Number kWaitMax = 86400.0 * 365;
    const lua_Number seconds = std::min(std::max(luaL_checknumber(lua, -1), 0.0), kWaitMax);
    hook.options.wait = base::Micros(static_cast<std::int64_t>(seconds * 1e6));
  }
  lua_pop(lua, 3);
}

void read_counters(lua_State* lua, NativeHook& hook) {
  using route::RouteEvent;
  constexpr std::pair<RouteEvent, const char*> kFields[] = {
      {RouteEvent::Repeat, "counter"},      {RouteEvent::Refused, "counter"},
      {RouteEvent::Hit, "hit_counter"},     {RouteEvent::Miss, "miss_counter"},
      {RouteEvent::Joined, "join_counter"},
  };
  for (const auto& [event, name] : kFields) {
    hook.options.counters[static_cast<std::size_t>(event)] = read_count(lua, name);
  }
}

void read_near(lua_State* lua, NativeHook& hook) {
  hook.options.near = route::NearOptions{.ttl = base::Millis(read_count(lua, "ttl_ms")),
                                         .value_bytes_max = read_count(lua, "max_value")};
  hook.options.near_space = {.owner = route::SpaceOwner::Lua, .number = read_count(lua, "space")};
  hook.options.near_memory_bytes = read_bytes(lua, "memory");
}

void read_bucket(lua_State* lua, NativeHook& hook, WorkerState& state) {
  if (lua_getfield(lua, kFieldsPlace, "bucket") == LUA_TTABLE) {
    hook.options.bucket =
        route::TokenBucket(read_bucket_options(lua, lua_gettop(lua)), state.loop().now());
  } else if (const ConfigValue::Limiter* limiter = shared_limiter_at(lua, -1)) {
    hook.options.bucket = *limiter;
  }
  lua_pop(lua, 1);
}

int make_route(lua_State* lua) {
  const std::string_view kind = check_text(lua, kKindPlace);
  luaL_checktype(lua, kFieldsPlace, LUA_TTABLE);
  lua_settop(lua, kFieldsPlace);
  auto& state = Vm::owner_of<WorkerState>(lua);
  NativeHook& hook = push_hook(lua, state);
  if (lua_getfield(lua, kFieldsPlace, "children") == LUA_TTABLE) {
    const auto count = static_cast<lua_Integer>(lua_rawlen(lua, -1));
    for (lua_Integer i = 1; i <= count; ++i) {
      lua_rawgeti(lua, -1, i);
      take_child(lua, hook, state);
    }
  }
  lua_settop(lua, kHookPlace);
  read_texts(lua, hook);
  read_bucket(lua, hook, state);
  hook.options.miss = read_flag(lua, "miss");
  hook.options.shuffle = read_flag(lua, "shuffle");
  hook.options.fail_until_limit = read_flag(lua, "fail_until_limit");
  hook.options.failover_count = read_count(lua, "failover_count");
  hook.options.fixed_children = read_count(lua, "fixed_children");
  read_counters(lua, hook);
  read_near(lua, hook);
  if (kind != "null" && hook.child_count() == 0) {
    return raise_format(lua, "a route of kind %s needs children", lua_tostring(lua, kKindPlace));
  }
  if (!hook.build(kind)) {
    return raise_format(lua, "there is no route of kind %s", lua_tostring(lua, kKindPlace));
  }
  return 1;
}

constexpr luaL_Reg kMethods[] = {{nullptr, nullptr}};
constexpr luaL_Reg kMetamethods[] = {{"__gc", &collect}, {nullptr, nullptr}};

}  // namespace

NativeHook* native_hook_at(lua_State* lua, int index) {
  return static_cast<NativeHook*>(luaL_testudata(lua, index, kNativeHookType));
}

void push_native_functions(lua_State* lua) {
  if (luaL_getmetatable(lua, kNativeHookType) == LUA_TNIL) {
    define_type(lua, kNativeHookType, kMethods, kMetamethods);
  }
  lua_pop(lua, 1);
  lua_newtable(lua);
  lua_pushcfunction(lua, &make_route);
  lua_setfield(lua, -2, "route");
}

}  // namespace kvferry::lua
