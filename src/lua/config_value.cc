#include "lua/config_value.h"

#include <string_view>

#include "lua/stack.h"

namespace kvferry::lua {
namespace {

struct Reader {
  lua_State* lua;
  std::string path;  // Of the entry that is being read, for errors.
  std::string error;

  bool fail(std::string_view why) {
    error = std::string(why) + " at " + (path.empty() ? "the returned value" : path);
    return false;
  }
  bool read(ConfigValue& out, int depth);
  bool read_table(ConfigValue& out, int depth);
  bool read_object(ConfigValue& out);
};

/// Part of a path: `.name` or `[7]`.
std::string step_of(const ConfigValue& key) {
  if (const auto* text = std::get_if<std::string>(&key.value)) {
    return "." + *text;
  }
  if (const auto* number = std::get_if<std::int64_t>(&key.value)) {
    return "[" + std::to_string(*number) + "]";
  }
  return "[" + std::to_string(std::get<double>(key.value)) + "]";
}

bool Reader::read(ConfigValue& out, int depth) {
  switch (lua_type(lua, -1)) {
    case LUA_TNIL:
      return true;
    case LUA_TBOOLEAN:
      out.value = lua_toboolean(lua, -1) != 0;
      return true;
    case LUA_TNUMBER:
      if (lua_isinteger(lua, -1) != 0) {
        out.value = static_cast<std::int64_t>(lua_tointeger(lua, -1));
      } else {
        out.value = lua_tonumber(lua, -1);
      }
      return true;
    case LUA_TSTRING:
      out.value = std::string(text_at(lua, -1));
      return true;
    case LUA_TTABLE:
      return read_table(out, depth);
    case LUA_TUSERDATA:
      return read_object(out);
    default:
      return fail("unhandled data type in configuration table");
  }
}

bool Reader::read_table(ConfigValue& out, int depth) {
  if (depth == kConfigDepthMax) {
    path.resize(std::min<std::size_t>(path.size(), 120));
    return fail("configuration table holds itself, or is nested deeper than " +
                std::to_string(kConfigDepthMax) + " levels,");
  }
  // A table whose keys or values call back cannot be met: metatables are not looked at.
  if (lua_checkstack(lua, 4) == 0) {
    return fail("configuration table is nested too deep");
  }
  ConfigValue::Table table;
  lua_pushnil(lua);
  while (lua_next(lua, -2) != 0) {
    const int key_type = lua_type(lua, -2);
    if (key_type != LUA_TSTRING && key_type != LUA_TNUMBER) {
      return fail("configuration table keys must be strings or numbers");
    }
    auto& [key, value] = table.emplace_back();
    lua_pushvalue(lua, -2);  // Reading a number as text would change the key under lua_next.
    read(key, depth);
    lua_pop(lua, 1);
    const std::size_t before = path.size();
    path += step_of(key);
    if (!read(value, depth + 1)) {
      return false;
    }
    path.resize(before);
    lua_pop(lua, 1);
  }
  out.value = std::move(table);
  return true;
}

bool Reader::read_object(ConfigValue& out) {
  if (const void* pool = luaL_testudata(lua, -1, kConfigPoolType)) {
    out.value = *static_cast<const ConfigValue::Pool*>(pool);
    return true;
  }
  if (const void* limiter = luaL_testudata(lua, -1, kConfigLimiterType)) {
    out.value = *static_cast<const ConfigValue::Limiter*>(limiter);
    return true;
  }
  return fail("unhandled userdata type in configuration table");
}

struct Pusher {
  lua_State* lua;
  ConfigObjects& objects;

  void operator()(std::monostate) const { lua_pushnil(lua); }
  void operator()(bool value) const { lua_pushboolean(lua, value ? 1 : 0); }
  void operator()(std::int64_t value) const { lua_pushinteger(lua, value); }
  void operator()(double value) const { lua_pushnumber(lua, value); }
  void operator()(const std::string& value) const { push_text(lua, value); }
  void operator()(const ConfigValue::Pool& value) const { objects.push_pool(value); }
  void operator()(const ConfigValue::Limiter& value) const { objects.push_limiter(value); }
  void operator()(const ConfigValue::Table& table) const {
    luaL_checkstack(lua, 4, "configuration table is nested too deep");
    lua_newtable(lua);
    for (const auto& [key, value] : table) {
      push_config_value(lua, key, objects);
      push_config_value(lua, value, objects);
      lua_rawset(lua, -3);
    }
  }
};

}  // namespace

base::Result<ConfigValue> read_config_value(lua_State* lua) {
  Reader reader{.lua = lua, .path = {}, .error = {}};
  ConfigValue value;
  const int top = lua_gettop(lua);
  const bool is_read = reader.read(value, 0);
  lua_settop(lua, top);
  if (!is_read) {
    return base::Error(base::ErrorCode::InvalidInput, reader.error);
  }
  return value;
}

void push_config_value(lua_State* lua, const ConfigValue& value, ConfigObjects& objects) {
  std::visit(Pusher{lua, objects}, value.value);
}

}  // namespace kvferry::lua
