// Fast checks of what userdata hold. luaL_checkudata looks a name up in the registry, which means a
// string made of bytes each time; here the address of a constant is the key.
#pragma once

#include "lua/stack.h"

namespace kvferry::lua {

/// A type of userdata. There is one constant for each; its address is what counts.
struct BoxType {
  const char* name;  // As errors show it.
  /// Under which luaL_newmetatable knows it: unlike `name`, no other type's.
  const char* registry_name;
};

/// Defines `type` as define_type() does.
inline void define_box_type(lua_State* lua, const BoxType& type, const luaL_Reg* methods,
                            const luaL_Reg* metamethods) {
  define_type(lua, type.registry_name, methods, metamethods);
  luaL_getmetatable(lua, type.registry_name);
  lua_pushstring(lua, type.name);
  lua_setfield(lua, -2, "__name");
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &type);
}

/// Makes the userdata at the top of the stack one of `type`. Raises nothing.
inline void set_box_type(lua_State* lua, const BoxType& type) {
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &type);
  lua_setmetatable(lua, -2);
}

/// The userdata at `index` when it is one of `type`, or of `other_type`; null otherwise. Raises
/// nothing.
inline void* box_at(lua_State* lua, int index, const BoxType& type, const BoxType& other_type) {
  void* const box = lua_touserdata(lua, index);
  if (box == nullptr || lua_getmetatable(lua, index) == 0) {
    return nullptr;
  }
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &type);
  bool is_one = lua_rawequal(lua, -1, -2) != 0;
  if (!is_one && &other_type != &type) {
    lua_pop(lua, 1);
    lua_rawgetp(lua, LUA_REGISTRYINDEX, &other_type);
    is_one = lua_rawequal(lua, -1, -2) != 0;
  }
  lua_pop(lua, 2);
  return is_one ? box : nullptr;
}
inline void* box_at(lua_State* lua, int index, const BoxType& type) {
  return box_at(lua, index, type, type);
}

/// Raises Lua's own error for an argument of another type.
[[noreturn]] inline void refuse_type(lua_State* lua, int index, const BoxType& type) {
  luaL_typeerror(lua, index, type.name);
  __builtin_unreachable();
}

}  // namespace kvferry::lua
