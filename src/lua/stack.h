// How bindings talk to Lua's stack.
//
// Lua raises by longjmp, which skips destructors. So a binding (int f(lua_State*)) has only views,
// numbers and references as locals wherever it calls something of Lua that may raise: luaL_check*,
// lua_push* of texts and tables, raise(). What needs a std::string is done in a function of its own
// that calls no Lua.
#pragma once

#include <cstddef>
#include <string_view>

#include <lua.hpp>

namespace kvferry::lua {

/// Raises `text` as a Lua error, without the place, as memcached's proxy does. Never returns; the
/// type suits `return raise(...)`.
[[noreturn]] int raise(lua_State* lua, std::string_view text);
/// The same with a printf format of Lua's kind (lua_pushfstring).
[[noreturn]] int raise_format(lua_State* lua, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

/// A string argument; numbers are converted in place, as luaL_checklstring does it.
inline std::string_view check_text(lua_State* lua, int index) {
  std::size_t size = 0;
  const char* bytes = luaL_checklstring(lua, index, &size);
  return {bytes, size};
}
/// The string at `index`, which is known to be one. Valid while the value is on the stack or
/// referenced.
inline std::string_view text_at(lua_State* lua, int index) {
  std::size_t size = 0;
  const char* bytes = lua_tolstring(lua, index, &size);
  return {bytes, size};
}
inline void push_text(lua_State* lua, std::string_view text) {
  lua_pushlstring(lua, text.data(), text.size());
}

/// Defines type `name`: a metatable with `methods` (ended by an empty entry) as __index. Leaves
/// nothing on the stack.
void define_type(lua_State* lua, const char* name, const luaL_Reg* methods,
                 const luaL_Reg* metamethods);

}  // namespace kvferry::lua
