// The built-in route library: our own Lua text in the program, chosen by name where others name a
// file.
//
// Source: docs/routelib.md; the text lies in src/lua/routelib/.
#pragma once

#include <string_view>

namespace kvferry::lua {

/// The name under which memcached's proxy has its library, and ours.
inline bool is_routelib(std::string_view name) {
  return name == "routelib" || name == "kvferry";
}

/// Made by the build out of the files in src/lua/routelib/.
std::string_view routelib_text();

}  // namespace kvferry::lua
