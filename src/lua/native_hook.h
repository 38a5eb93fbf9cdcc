// NativeHook: a native route (route::NativeRoute) as scripts hold it: it can be attached, be an
// entry of a router, a handle of a function generator, and a child of another native route.
//
// Lifetime:  lives in a userdata, whose user value keeps the children; while it is acquired or has
//            requests under way, the state's registry keeps that userdata.
// Threads:   one worker.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lua/hookable.h"
#include "lua/stack.h"
#include "route/native_route.h"
#include "route/near_copies.h"
#include "route/passing_routes.h"

namespace kvferry::lua {

class WorkerState;

inline constexpr const char* kNativeHookType = "mcp.native_route";

/// What the constructors of native routes read; each route takes what it needs.
struct NativeOptions {
  bool miss = false;
  bool shuffle = false;
  bool fail_until_limit = false;
  std::uint32_t failover_count = 0;
  std::uint32_t fixed_children = 0;
  /// The user counters of what it counts, by route::RouteEvent; 0: none.
  std::array<std::uint32_t, route::kRouteEvents> counters{};
  std::optional<base::Micros> wait;
  std::string ttl;
  route::NearOptions near;
  route::NearSpace near_space;
  std::uint64_t near_memory_bytes = 0;
  std::optional<route::RateLimitRoute::Bucket> bucket;
};

class NativeHook final : public Hookable, public call::ReplySink, private route::RouteHost {
 public:
  explicit NativeHook(WorkerState& state);
  ~NativeHook() override;

  // Making; what keeps the children alive is the caller's concern.
  NativeOptions options;
  void set_name(std::string_view name) { name_ = name; }
  /// `hookable` is null for pools and the local cache.
  void add_child(call::Target& target, Hookable* hookable);
  std::size_t child_count() const { return children_.size(); }
  /// False when there is no such kind of route.
  bool build(std::string_view kind);

  /// Null before it is built.
  call::Target* target() { return route_.get(); }

  // Hookable
  void run(call::Call& call, const memcache::Request& request) override;
  Passage passage(const memcache::Request& request) override;
  void acquire() override;
  void release() override;

  // call::ReplySink
  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override;
  void on_blocked(call::Call& call) override;

 private:
  // route::RouteHost
  void on_logged_reply(const route::RouteReply& reply, const route::RouteRequest& request,
                       int client_fd) override;
  void count(route::RouteEvent event) override;
  void on_lingering() override;
  void on_lingered() override;
  void on_kept(std::size_t bytes) override;
  void on_dropped(std::size_t bytes) override;
  void hold() override;
  void let_go() override;

  struct Child {
    route::RouteChild route;
    Hookable* hookable = nullptr;   // Null for pools and the local cache.
    pool::McpPool* pool = nullptr;  // One that nobody has to watch; null otherwise.
  };

  std::unique_ptr<route::NativeRoute> make_passing(std::string_view kind);
  std::unique_ptr<route::NativeRoute> make_waiting(std::string_view kind);
  route::RouteSetup setup();

  WorkerState& state_;
  std::string name_ = "anonymous";
  std::vector<Child> children_;
  std::vector<std::unique_ptr<call::Target>> watchers_;
  std::unique_ptr<route::NativeRoute> route_;
  std::uint32_t acquired_ = 0;
  std::uint32_t references_ = 0;
};

/// Null when it is none.
NativeHook* native_hook_at(lua_State* lua, int index);
/// Pushes the table that the route library is given: `route(kind, fields)` makes a native route.
void push_native_functions(lua_State* lua);

}  // namespace kvferry::lua
