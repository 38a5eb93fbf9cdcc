#include "lua/stack.h"

#include <cstdarg>

namespace kvferry::lua {

int raise(lua_State* lua, std::string_view text) {
  push_text(lua, text);
  lua_error(lua);
  __builtin_unreachable();
}

int raise_format(lua_State* lua, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  lua_pushvfstring(lua, format, arguments);
  va_end(arguments);
  lua_error(lua);
  __builtin_unreachable();
}

void define_type(lua_State* lua, const char* name, const luaL_Reg* methods,
                 const luaL_Reg* metamethods) {
  luaL_newmetatable(lua, name);
  luaL_setfuncs(lua, metamethods, 0);
  lua_newtable(lua);
  luaL_setfuncs(lua, methods, 0);
  lua_setfield(lua, -2, "__index");
  lua_pop(lua, 1);
}

}  // namespace kvferry::lua
