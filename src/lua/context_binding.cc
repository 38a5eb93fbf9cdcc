// The methods of rctx.
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <span>

#include "lua/generator.h"
#include "lua/script_slot.h"
#include "lua/worker_state.h"

namespace kvferry::lua {

using route::ResultClass;
using route::RouteRequest;
using route::WaitMode;

namespace {

/// Handles that one list may name.
constexpr std::size_t kListMax = 1024;
/// Longer waits are as good as this.
constexpr double kWaitSecondsMax = 86400.0 * 365;

ScriptSlot& check_slot(lua_State* lua) {
  ScriptSlot* const running = Vm::owner_of<WorkerState>(lua).running_slot();
  if (running != nullptr && running->is_context(lua_touserdata(lua, 1))) [[likely]] {
    return *running;
  }
  auto* slot = *static_cast<ScriptSlot**>(luaL_checkudata(lua, 1, kContextType));
  if (slot == nullptr) {
    raise(lua, "rctx belongs to a function that was replaced");
  }
  return *slot;
}

/// The handle at `index`, or raises `error`.
std::uint32_t check_handle(lua_State* lua, const ScriptSlot& slot, int index, const char* error) {
  int is_number = 0;
  const lua_Integer handle = lua_tointegerx(lua, index, &is_number);
  // The last handle of a context is ours: mcp.internal.
  if (is_number == 0 || handle < 0 || handle >= slot.local_handle()) {
    raise(lua, error);
  }
  return static_cast<std::uint32_t>(handle);
}

RouteRequest& check_sendable(lua_State* lua, int index) {
  RouteRequest& request = check_request(lua, index);
  if (!memcache::has_key(request.command())) {
    raise(lua, "cannot queue requests without a key");
  }
  return request;
}

/// The timeout at `index`, which may be absent.
std::optional<base::Micros> check_timeout(lua_State* lua, int index) {
  if (lua_isnoneornil(lua, index)) {
    return std::nullopt;
  }
  int is_number = 0;
  const lua_Number seconds = lua_tonumberx(lua, index, &is_number);
  if (is_number == 0 || std::isnan(seconds)) {
    raise(lua, "timeout argument to wait or sleep must be a number");
  }
  const double bounded = std::min(std::max(seconds, 0.0), kWaitSecondsMax);
  return base::Micros(static_cast<std::int64_t>(bounded * 1e6));
}

/// Waits belong to the request's own coroutine: a coroutine that the script made would get our
/// yield.
void check_can_wait(lua_State* lua, ScriptSlot& slot, const char* error) {
  if (slot.context().is_waiting()) {
    raise(lua, error);
  }
  if (!slot.is_running_on(lua)) {
    if (lua_isyieldable(lua) == 0) {
      raise(lua, "attempt to yield from outside a coroutine");
    }
    raise(lua, "wait: must be called from the route function's own coroutine");
  }
  if (lua_isyieldable(lua) == 0) {
    raise(lua, "attempt to yield across a C-call boundary");
  }
}

void check_can_enqueue(lua_State* lua, ScriptSlot& slot) {
  if (slot.context().is_waiting()) {
    raise(lua, "enqueue: cannot enqueue new requests while in a wait");
  }
}

int enqueue(lua_State* lua) {
  ScriptSlot& slot = check_slot(lua);
  RouteRequest& request = check_sendable(lua, 2);
  check_can_enqueue(lua, slot);
  if (lua_isnumber(lua, 3) != 0) {
    const std::uint32_t handle =
        check_handle(lua, slot, 3, "attempted to enqueue an invalid handle");
    slot.context().enqueue(handle, request);
    return 0;
  }
  if (lua_istable(lua, 3) == 0) {
    return raise(lua, "must pass a handle or a table to queue");
  }
  const auto count = static_cast<lua_Integer>(lua_rawlen(lua, 3));
  for (lua_Integer i = 1; i <= count; ++i) {
    if (lua_rawgeti(lua, 3, i) != LUA_TNUMBER) {
      return raise(lua, "invalid handle passed to queue via array table");
    }
    const std::uint32_t handle =
        check_handle(lua, slot, -1, "attempted to enqueue an invalid handle");
    lua_pop(lua, 1);
    slot.context().enqueue(handle, request);
  }
  return 0;
}

/// Context::wait_for(), which may run sub-functions and callbacks.
bool wait_for(ScriptSlot& slot, std::uint32_t handle, std::optional<base::Micros> timeout) {
  const Vm::Pause pause(slot.state().vm());
  return slot.context().wait_for(handle, timeout);
}

bool wait_until(ScriptSlot& slot, std::uint32_t count, WaitMode mode,
                std::optional<base::Micros> timeout) {
  const Vm::Pause pause(slot.state().vm());
  return slot.context().wait_until(count, mode, timeout);
}

/// Sends what is queued; the values of the call come at once, or when the coroutine is resumed.
int wait_on_handle(lua_State* lua, ScriptSlot& slot, std::uint32_t handle,
                   std::optional<base::Micros> timeout) {
  slot.set_waiting(ScriptSlot::Waiting::Handle, handle);
  if (wait_for(slot, handle, timeout)) {
    slot.set_waiting(ScriptSlot::Waiting::None, 0);
    slot.push_result(lua, handle);
    return 1;
  }
  return lua_yield(lua, 0);
}

int enqueue_and_wait(lua_State* lua) {
  ScriptSlot& slot = check_slot(lua);
  RouteRequest& request = check_sendable(lua, 2);
  check_can_enqueue(lua, slot);
  const std::uint32_t handle =
      check_handle(lua, slot, 3, "invalid handle passed to enqueue_and_wait");
  const std::optional<base::Micros> timeout = check_timeout(lua, 4);
  check_can_wait(lua, slot, "wait: cannot call while already in wait mode");
  slot.context().enqueue(handle, request);
  return wait_on_handle(lua, slot, handle, timeout);
}

int wait_handle(lua_State* lua) {
  ScriptSlot& slot = check_slot(lua);
  const std::uint32_t handle = check_handle(lua, slot, 2, "invalid handle passed to wait_handle");
  const std::optional<base::Micros> timeout = check_timeout(lua, 3);
  check_can_wait(lua, slot, "wait: cannot call while already in wait mode");
  if (!slot.context().is_used(handle)) {
    return raise(lua, "wait_handle called on unqueued handle");
  }
  return wait_on_handle(lua, slot, handle, timeout);
}

int wait_cond(lua_State* lua) {
  ScriptSlot& slot = check_slot(lua);
  if (lua_gettop(lua) < 2) {
    return raise(lua, "must pass at least count to wait_cond");
  }
  int is_number = 0;
  const lua_Integer count = lua_tointegerx(lua, 2, &is_number);
  if (is_number == 0 || count < 0) {
    return raise(lua, "wait count for wait_cond must be a positive integer");
  }
  lua_Integer mode = static_cast<lua_Integer>(WaitMode::Any);
  if (!lua_isnoneornil(lua, 3)) {
    mode = lua_tointegerx(lua, 3, &is_number);
    if (is_number == 0 || mode < static_cast<lua_Integer>(WaitMode::Any) ||
        mode > static_cast<lua_Integer>(WaitMode::FastGood)) {
      return raise(lua, "invalid mode sent to wait_cond");
    }
  }
  const std::optional<base::Micros> timeout = check_timeout(lua, 4);
  check_can_wait(lua, slot, "wait_cond: cannot call while already in wait mode");
  slot.set_waiting(ScriptSlot::Waiting::Count, 0);
  const auto wanted = static_cast<std::uint32_t>(std::min<lua_Integer>(count, UINT32_MAX));
  if (wait_until(slot, wanted, static_cast<WaitMode>(mode), timeout)) {
    slot.set_waiting(ScriptSlot::Waiting::None, 0);
    lua_pushinteger(lua, slot.context().done());
    return 1;
  }
  return lua_yield(lua, 0);
}

int sleep(lua_State* lua) {
  ScriptSlot& slot = check_slot(lua);
  const std::optional<base::Micros> duration = check_timeout(lua, 2);
  if (!duration) {
    return raise(lua, "timeout argument to wait or sleep must be a number");
  }
  check_can_wait(lua, slot, "sleep: cannot call while already in wait mode");
  slot.set_waiting(ScriptSlot::Waiting::Sleep, 0);
  slot.context().sleep(*duration);
  return lua_yield(lua, 0);
}

constexpr const char* kBadResultHandle = "invalid queue handle passed to :good/:ok:/:any";

int push_if(lua_State* lua, bool (*is_wanted)(ResultClass)) {
  ScriptSlot& slot = check_slot(lua);
  const std::uint32_t handle = check_handle(lua, slot, 2, kBadResultHandle);
  if (is_wanted(slot.context().class_of(handle))) {
    slot.push_result(lua, handle);
  } else {
    lua_pushnil(lua);
  }
  return 1;
}

int res_good(lua_State* lua) {
  return push_if(lua, [](ResultClass found) { return found == ResultClass::Good; });
}

int res_ok(lua_State* lua) {
  return push_if(lua, [](ResultClass found) {
    return found == ResultClass::Good || found == ResultClass::Ok;
  });
}

int res_any(lua_State* lua) {
  return push_if(lua, [](ResultClass found) { return found != ResultClass::None; });
}

int push_with_class(lua_State* lua, ScriptSlot& slot, std::optional<std::uint32_t> handle) {
  if (!handle || slot.context().class_of(*handle) == ResultClass::None) {
    lua_pushnil(lua);
    lua_pushnil(lua);
    return 2;
  }
  slot.push_result(lua, *handle);
  lua_pushinteger(lua, static_cast<lua_Integer>(slot.context().class_of(*handle)));
  return 2;
}

int result(lua_State* lua) {
  ScriptSlot& slot = check_slot(lua);
  return push_with_class(lua, slot, check_handle(lua, slot, 2, kBadResultHandle));
}

/// Reads the list of handles at 2; raises on anything else.
std::span<const std::uint32_t> check_list(lua_State* lua, const ScriptSlot& slot,
                                          std::array<std::uint32_t, kListMax>& handles,
                                          const char* not_a_table, const char* bad_handle) {
  if (lua_istable(lua, 2) == 0) {
    raise(lua, not_a_table);
  }
  const std::size_t count = lua_rawlen(lua, 2);
  if (count > handles.size()) {
    raise(lua, bad_handle);
  }
  for (std::size_t i = 0; i < count; ++i) {
    lua_rawgeti(lua, 2, static_cast<lua_Integer>(i) + 1);
    handles[i] = check_handle(lua, slot, -1, bad_handle);
    lua_pop(lua, 1);
  }
  return std::span<const std::uint32_t>(handles).first(count);
}

int best_result(lua_State* lua) {
  ScriptSlot& slot = check_slot(lua);
  std::array<std::uint32_t, kListMax> handles;  // NOLINT(cppcoreguidelines-pro-type-member-init):
                                                // read as far as it is written.
  const auto list = check_list(lua, slot, handles, "must pass a table to :best_result",
                               "invalid queue handle passed to best_result");
  return push_with_class(lua, slot, slot.context().best_of(list));
}

int worst_result(lua_State* lua) {
  ScriptSlot& slot = check_slot(lua);
  std::array<std::uint32_t, kListMax> handles;  // NOLINT(cppcoreguidelines-pro-type-member-init):
                                                // read as far as it is written.
  const auto list = check_list(lua, slot, handles, "must pass a table to :worst_result",
                               "invalid queue handle passed to worst_result");
  return push_with_class(lua, slot, slot.context().worst_of(list));
}

int handle_set_cb(lua_State* lua) {
  ScriptSlot& slot = check_slot(lua);
  const std::uint32_t handle = check_handle(lua, slot, 2, "invalid handle passed to queue_set_cb");
  luaL_checktype(lua, 3, LUA_TFUNCTION);
  lua_settop(lua, 3);
  slot.set_callback(lua, handle);
  return 0;
}

int request_new(lua_State* lua) {
  if (!check_slot(lua).push_new_request(lua)) {
    return raise(lua, "rctx request new: object count limit reached");
  }
  return 1;
}

int response_new(lua_State* lua) {
  if (!check_slot(lua).push_new_reply(lua)) {
    return raise(lua, "rctx request new: object count limit reached");
  }
  return 1;
}

int cfd(lua_State* lua) {
  ScriptSlot& slot = check_slot(lua);
  lua_pushinteger(lua, slot.is_sub_function() ? 0 : slot.context().client_fd());
  return 1;
}

int tls_peer_cn(lua_State* lua) {
  const int fd = check_slot(lua).context().client_fd();
  const std::string_view name = Vm::owner_of<WorkerState>(lua).loop().tls_peer_name(fd);
  if (name.empty()) {
    lua_pushnil(lua);
  } else {
    lua_pushlstring(lua, name.data(), name.size());
  }
  return 1;
}

constexpr luaL_Reg kMethods[] = {{"enqueue", &enqueue},
                                 {"enqueue_and_wait", &enqueue_and_wait},
                                 {"wait_handle", &wait_handle},
                                 {"wait_cond", &wait_cond},
                                 {"sleep", &sleep},
                                 {"res_good", &res_good},
                                 {"res_ok", &res_ok},
                                 {"res_any", &res_any},
                                 {"result", &result},
                                 {"best_result", &best_result},
                                 {"worst_result", &worst_result},
                                 {"handle_set_cb", &handle_set_cb},
                                 {"request_new", &request_new},
                                 {"response_new", &response_new},
                                 {"cfd", &cfd},
                                 {"tls_peer_cn", &tls_peer_cn},
                                 {nullptr, nullptr}};
constexpr luaL_Reg kMetamethods[] = {{nullptr, nullptr}};

}  // namespace

int run_local(lua_State* lua) {
  RouteRequest& request = check_request(lua, 1);
  const WorkerState& state = Vm::owner_of<WorkerState>(lua);
  ScriptSlot* slot = state.running_slot();
  if (slot == nullptr) {
    return raise(lua, "mcp.internal must be called from a route function");
  }
  if (slot->is_sub_function()) {
    return raise(lua, "cannot run mcp.internal from a sub request");
  }
  check_can_wait(lua, *slot, "wait: cannot call while already in wait mode");
  if (!can_run_locally(request.command())) {
    push_owned_reply(lua).assign("SERVER_ERROR bad request\r\n", {});
    return 1;
  }
  const std::uint32_t handle = slot->local_handle();
  slot->context().enqueue(handle, request);
  slot->set_waiting(ScriptSlot::Waiting::Local, handle);
  if (wait_for(*slot, handle, std::nullopt)) {
    slot->set_waiting(ScriptSlot::Waiting::None, 0);
    slot->push_local_result(lua);
    return 1;
  }
  return lua_yield(lua, 0);
}

void define_context(lua_State* lua) {
  define_type(lua, kContextType, kMethods, kMetamethods);
}

}  // namespace kvferry::lua
