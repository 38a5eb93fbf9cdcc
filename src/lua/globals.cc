#include "lua/globals.h"

#include <utility>

namespace kvferry::lua {

void SavedGlobals::save() {
  forget();
  lua_newtable(lua_);
  lua_pushglobaltable(lua_);
  lua_pushnil(lua_);
  while (lua_next(lua_, -2) != 0) {
    lua_pushvalue(lua_, -2);
    lua_insert(lua_, -2);
    lua_rawset(lua_, -5);
  }
  lua_pop(lua_, 1);
  ref_ = luaL_ref(lua_, LUA_REGISTRYINDEX);
}

void SavedGlobals::restore() {
  lua_rawgeti(lua_, LUA_REGISTRYINDEX, ref_);
  lua_pushglobaltable(lua_);
  // What is new goes; giving nil to a field that is there is allowed while it is walked.
  lua_pushnil(lua_);
  while (lua_next(lua_, -2) != 0) {
    lua_pop(lua_, 1);
    lua_pushvalue(lua_, -1);
    lua_pushvalue(lua_, -1);
    lua_rawget(lua_, -5);
    lua_rawset(lua_, -4);
  }
  // What was removed comes back.
  lua_pushnil(lua_);
  while (lua_next(lua_, -3) != 0) {
    lua_pushvalue(lua_, -2);
    lua_insert(lua_, -2);
    lua_rawset(lua_, -4);
  }
  lua_pop(lua_, 2);
  forget();
}

void SavedGlobals::forget() {
  luaL_unref(lua_, LUA_REGISTRYINDEX, std::exchange(ref_, LUA_NOREF));
}

}  // namespace kvferry::lua
