#include "lua/router.h"

#include <memory>

#include "lua/native_hook.h"
#include "lua/worker_state.h"

namespace kvferry::lua {

std::string_view PrefixRule::find(std::string_view key) const {
  std::string_view rest = key;
  if (is_anchored) {
    // With longer texts there must be room for a prefix and an end behind the start.
    const bool is_long = start.size() > 1 || stop.size() > 1;
    if (!key.starts_with(start) || (is_long && key.size() < start.size() + 2)) {
      return {};
    }
    rest.remove_prefix(start.size());
  }
  const std::size_t end = rest.find(stop);
  return end == std::string_view::npos ? std::string_view{} : rest.substr(0, end);
}

Hookable* Router::CommandMap::find(memcache::Command command) const {
  Hookable* exact = by_command[static_cast<std::size_t>(command)];
  return exact != nullptr ? exact : for_storage;
}

Router::~Router() {
  while (acquired_ != 0) {
    release();
  }
}

Hookable* Router::select(const memcache::Request& request) const {
  if (request.key.empty() && memcache::has_key(request.command)) {
    return nullptr;
  }
  if (!map_.empty()) {
    const std::string_view found = rule.find(request.key);
    const auto entry = found.empty() ? map_.end() : map_.find(found);
    if (entry != map_.end()) {
      if (Hookable* hook = entry->second.find(request.command)) {
        return hook;
      }
    }
  }
  Hookable* hook = commands.by_command[static_cast<std::size_t>(request.command)];
  return hook != nullptr ? hook : fallback;
}

void Router::run(call::Call& call, const memcache::Request& request) {
  Hookable* hook = select(request);
  if (hook == nullptr) {
    call::answer(call, kStartFailureLine, memcache::ReplyCode::ServerError);
    return;
  }
  hook->run(call, request);
}

Passage Router::passage(const memcache::Request& request) {
  Hookable* hook = select(request);
  if (hook == nullptr) {
    return {};
  }
  Passage passage = hook->passage(request);
  passage.is_for_all_keys = passage.is_for_all_keys && map_.empty();
  return passage;
}

template <typename Visit>
void Router::for_each(Visit visit) {
  const auto visit_map = [&visit](CommandMap& map) {
    for (Hookable* hook : map.by_command) {
      if (hook != nullptr) {
        visit(*hook);
      }
    }
    if (map.for_storage != nullptr) {
      visit(*map.for_storage);
    }
  };
  for (auto& [prefix, map] : map_) {
    visit_map(map);
  }
  visit_map(commands);
  if (fallback != nullptr) {
    visit(*fallback);
  }
}

void Router::acquire() {
  if (acquired_++ == 0) {
    for_each([](Hookable& hook) { hook.acquire(); });
    state_.names().add_generators("mcp_router", 1);
    state_.names().add_slots("mcp_router", 0);
    state_.pin(this);
  }
}

void Router::release() {
  if (--acquired_ == 0) {
    for_each([](Hookable& hook) { hook.release(); });
    state_.names().add_generators("mcp_router", -1);
    state_.unpin(this);
  }
}

namespace {

int collect(lua_State* lua) {
  std::destroy_at(router_at(lua, 1));
  return 0;
}

constexpr luaL_Reg kMethods[] = {{nullptr, nullptr}};
constexpr luaL_Reg kMetamethods[] = {{"__gc", &collect}, {nullptr, nullptr}};

/// The generator or native route at the top of the stack, kept alive by the router at 2.
Hookable* take_hook(lua_State* lua) {
  Hookable* hook = generator_at(lua, -1);
  if (hook == nullptr) {
    hook = native_hook_at(lua, -1);
  }
  if (hook == nullptr) {
    if (router_at(lua, -1) != nullptr) {
      raise(lua, "cannot nest a router in mcp.router_new");
    }
    luaL_checkudata(lua, -1, kGeneratorType);
  }
  lua_getiuservalue(lua, 2, 1);
  lua_pushvalue(lua, -2);
  lua_rawseti(lua, -2, static_cast<lua_Integer>(lua_rawlen(lua, -2)) + 1);
  lua_pop(lua, 1);
  return hook;
}

/// Reads a table of commands at the top of the stack.
void read_commands(lua_State* lua, Router::CommandMap& map, Hookable** for_all) {
  lua_pushnil(lua);
  while (lua_next(lua, -2) != 0) {
    if (lua_isinteger(lua, -2) == 0) {
      raise(lua, "Non integer key in router command map in router_new");
    }
    const lua_Integer number = lua_tointeger(lua, -2);
    if (number == kCommandAnyStorage) {
      *for_all = take_hook(lua);
    } else {
      const memcache::Command command = number < 1 || number >= kCommandEndStorage
                                            ? memcache::Command::Unknown
                                            : command_of_number(static_cast<unsigned>(number));
      if (command == memcache::Command::Unknown) {
        raise(lua, "Bad command in router command map in router_new");
      }
      map.by_command[static_cast<std::size_t>(command)] = take_hook(lua);
    }
    lua_pop(lua, 1);
  }
}

void read_map(lua_State* lua, Router& router) {
  lua_pushnil(lua);
  while (lua_next(lua, -2) != 0) {
    if (lua_type(lua, -2) != LUA_TSTRING) {
      raise(lua, "unhandled data in router_new map");
    }
    Router::CommandMap& entry = router.prefix(text_at(lua, -2));
    if (lua_istable(lua, -1)) {
      read_commands(lua, entry, &entry.for_storage);
    } else if (lua_isuserdata(lua, -1) != 0) {
      entry.for_storage = take_hook(lua);
      // A generator takes every command, those without a key excepted, which have no prefix.
    } else {
      raise(lua, "unhandled data in router_new map");
    }
    lua_pop(lua, 1);
  }
}

/// Reads separator `name` of the table at 1; false when it is absent.
bool read_separator(lua_State* lua, const char* name, std::string& out) {
  const int type = lua_getfield(lua, 1, name);
  if (type == LUA_TNIL) {
    lua_pop(lua, 1);
    return false;
  }
  if (type != LUA_TSTRING) {
    raise_format(lua, "must pass a string to %s in mcp.router_new", name);
  }
  const std::string_view text = text_at(lua, -1);
  if (text.size() > kSeparatorBytesMax) {
    raise_format(lua, "%s is too long in mcp.router_new", name);
  }
  if (text.empty()) {
    raise_format(lua, "must pass a non-zero length string to %s in mcp.router_new", name);
  }
  out.assign(text);
  lua_pop(lua, 1);
  return true;
}

void read_rule(lua_State* lua, PrefixRule& rule) {
  const int type = lua_getfield(lua, 1, "mode");
  const std::string_view mode = type == LUA_TSTRING ? text_at(lua, -1) : "prefix";
  if (type != LUA_TNIL && mode != "prefix" && mode != "anchor") {
    raise(lua, "unknown type passed to mcp.router_new");
  }
  rule.is_anchored = mode == "anchor";
  lua_pop(lua, 1);
  const bool has_stop = read_separator(lua, "stop", rule.stop);
  if (rule.is_anchored && read_separator(lua, "start", rule.start) != has_stop) {
    raise(lua, "must specify start and stop if mode is anchor in mcp.router_new");
  }
}

int make(lua_State* lua) {
  if (lua_istable(lua, 1) == 0) {
    return raise(lua, "Must pass a table of arguments to mcp.router_new");
  }
  lua_settop(lua, 1);
  auto& state = Vm::owner_of<WorkerState>(lua);
  void* memory = lua_newuserdatauv(lua, sizeof(Router), 1);
  lua_newtable(lua);
  lua_setiuservalue(lua, 2, 1);
  Router& router = *std::construct_at(static_cast<Router*>(memory), state);
  luaL_setmetatable(lua, kRouterType);
  state.register_object(lua, &router);
  const int map = lua_getfield(lua, 1, "map");
  const int commands = lua_getfield(lua, 1, "cmap");
  if (map == LUA_TNIL && commands == LUA_TNIL) {
    return raise(lua, "Must pass map and/or cmap to mcp.router_new");
  }
  if (map != LUA_TNIL && map != LUA_TTABLE) {
    return raise(lua, "Must pass a table to map argument of router_new");
  }
  if (commands != LUA_TNIL && commands != LUA_TTABLE) {
    return raise(lua, "Must pass a table to cmap argument of mcp.router_new");
  }
  if (commands == LUA_TTABLE) {
    read_commands(lua, router.commands, &router.fallback);
  }
  lua_pop(lua, 1);
  if (map == LUA_TTABLE) {
    read_rule(lua, router.rule);
    read_map(lua, router);
  }
  lua_pop(lua, 1);
  if (lua_getfield(lua, 1, "default") != LUA_TNIL) {
    router.fallback = take_hook(lua);
  }
  lua_settop(lua, 2);
  return 1;
}

}  // namespace

Router* router_at(lua_State* lua, int index) {
  return static_cast<Router*>(luaL_testudata(lua, index, kRouterType));
}

void define_router(lua_State* lua) {
  define_type(lua, kRouterType, kMethods, kMetamethods);
  lua_pushcfunction(lua, &make);
  lua_setfield(lua, -2, "router_new");
}

}  // namespace kvferry::lua
