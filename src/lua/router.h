// Router: picks a generator or native route by the command and by a part of the key, without
// running Lua.
//
// Source: docs/lua.md, "Routers". Threads: one worker.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lua/generator.h"
#include "lua/hookable.h"

namespace kvferry::lua {

inline constexpr const char* kRouterType = "mcp.router";
inline constexpr std::size_t kSeparatorBytesMax = 5;

/// Which part of a key a router looks at.
struct PrefixRule {
  bool is_anchored = false;  // The key must begin with `start`.
  std::string start = "/";
  std::string stop = "/";

  /// Empty when the key has none.
  std::string_view find(std::string_view key) const;
};

class Router final : public Hookable {
 public:
  /// What serves each command; null where there is none.
  struct CommandMap {
    std::array<Hookable*, memcache::kCommandCount> by_command{};
    Hookable* for_storage = nullptr;  // CMD_ANY_STORAGE.

    Hookable* find(memcache::Command command) const;
  };

  explicit Router(WorkerState& state) : state_(state) {}
  ~Router() override;

  // Configuration; the userdata of what it names is kept alive by the caller.
  PrefixRule rule;
  CommandMap commands;
  Hookable* fallback = nullptr;
  CommandMap& prefix(std::string_view text) { return map_[std::string(text)]; }

  // Hookable
  void run(call::Call& call, const memcache::Request& request) override;
  Passage passage(const memcache::Request& request) override;
  void acquire() override;
  void release() override;

 private:
  struct TextHash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library's name.
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };

  Hookable* select(const memcache::Request& request) const;
  template <typename Visit>
  void for_each(Visit visit);

  WorkerState& state_;
  std::unordered_map<std::string, CommandMap, TextHash, std::equal_to<>> map_;
  std::uint32_t acquired_ = 0;
};

/// Null when it is none.
Router* router_at(lua_State* lua, int index);
/// Adds mcp.router_new and the type to the table at the top of the stack.
void define_router(lua_State* lua);

}  // namespace kvferry::lua
