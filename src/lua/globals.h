// SavedGlobals: the global variables of a state as they were, for a load that may fail.
#pragma once

#include "lua/stack.h"

namespace kvferry::lua {

class SavedGlobals {
 public:
  explicit SavedGlobals(lua_State* lua) : lua_(lua) {}
  SavedGlobals(const SavedGlobals&) = delete;
  SavedGlobals& operator=(const SavedGlobals&) = delete;

  /// Notes which globals there are. Tables among them are shared, not copied.
  void save();
  /// Brings back what was noted, and removes what is new.
  void restore();
  void forget();

 private:
  lua_State* lua_;
  int ref_ = LUA_NOREF;
};

}  // namespace kvferry::lua
