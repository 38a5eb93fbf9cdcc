// PassedGets: gets of several keys whose routes do nothing but pass them on: all keys are placed in
// one pass, and each backend gets its keys together. Nothing of a route is needed from then on.
//
// To clients and in statistics they are what route::SplitGet would make of them: each key counts as
// a request. Source:    docs/lua.md, "Gets of several keys". Lifetime:  outlives the calls that it
// has answered for. Threads:   one worker.
#pragma once

#include "lua/hookable.h"
#include "lua/script_stats.h"
#include "net/loop.h"
#include "pool/mcp_gets.h"

namespace kvferry::lua {

class PassedGets final : private pool::McpGetEvents {
 public:
  PassedGets(net::Loop& loop, call::CallPool& calls, ScriptStats& stats);
  PassedGets(const PassedGets&) = delete;
  PassedGets& operator=(const PassedGets&) = delete;

  /// Sends `request`, a retrieval of two keys or more, where `hook` passes it to. False, with
  /// nothing done, when some key has to be run by its route.
  bool start(call::Call& call, const memcache::Request& request, Hookable& hook);

 private:
  bool place(const memcache::Request& request, Hookable& hook, pool::GetForm& form);
  // pool::McpGetEvents
  void on_get_over(std::uint32_t key_count) override { stats_.active.sub(key_count); }
  void on_kept(std::size_t bytes) override { stats_.buffer_bytes.add(bytes); }
  void on_dropped(std::size_t bytes) override { stats_.buffer_bytes.sub(bytes); }

  ScriptStats& stats_;
  pool::McpGets gets_;
};

}  // namespace kvferry::lua
