// A Lua state with the standard libraries and a table `mcp`, for tests of bindings.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include <lua.hpp>

#include "lua/stack.h"

namespace kvferry::lua {

class PlainState {
  int countdown_ = 0;  // At 1 nothing is given out any more; 0: no limit. The state below needs it.

 public:
  /// `define` adds its functions to the table at the top of the stack.
  template <typename... Define>
  explicit PlainState(Define... define) : lua(lua_newstate(&allocate, this)) {
    luaL_openlibs(lua);
    lua_newtable(lua);
    (define(lua), ...);
    lua_setglobal(lua, "mcp");
  }
  PlainState(const PlainState&) = delete;
  PlainState& operator=(const PlainState&) = delete;
  ~PlainState() { lua_close(lua); }

  /// Runs `code`. Its results, as tostring gives them, with blanks between them; or "error: " and
  /// the text.
  std::string run(std::string_view code) {
    lua_settop(lua, 0);
    if (luaL_loadbuffer(lua, code.data(), code.size(), "=test") != LUA_OK ||
        lua_pcall(lua, 0, LUA_MULTRET, 0) != LUA_OK) {
      std::string_view text = text_at(lua, -1);
      constexpr std::string_view kPlace = "test:1: ";  // Lua's own errors tell it.
      text.remove_prefix(text.starts_with(kPlace) ? kPlace.size() : 0);
      return "error: " + std::string(text);
    }
    std::string results;
    for (int i = 1; i <= lua_gettop(lua); ++i) {
      std::size_t size = 0;
      const char* const text = luaL_tolstring(lua, i, &size);
      results.append(i == 1 ? "" : " ").append(text, size);
      lua_pop(lua, 1);
    }
    return results;
  }
  /// The same when the `n`-th allocation from now on fails.
  std::string run_short_of_memory(std::string_view code, int n) {
    countdown_ = n;
    std::string results = run(code);
    countdown_ = 0;
    return results;
  }

  lua_State* const lua;

 private:
  static void* allocate(void* self, void* block, std::size_t /*old_size*/, std::size_t new_size) {
    int& countdown = static_cast<PlainState*>(self)->countdown_;
    if (new_size == 0) {
      // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): what Lua wants of its allocator.
      std::free(block);
      return nullptr;
    }
    // Lua collects all garbage and tries again, so that one failure alone would not be seen.
    if (countdown > 1) {
      --countdown;
    }
    // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): the same.
    return countdown == 1 ? nullptr : std::realloc(block, new_size);
  }
};

}  // namespace kvferry::lua
