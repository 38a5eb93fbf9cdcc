// Route functions that need no Lua to run: recognised by their code when a slot is built.
//
//   function(r) return rctx:enqueue_and_wait(r, h) end       forwarded to h
//   function(r) return "text" end                            answered with the text
//
// A function is recognised by its bytecode, compared with that of the functions above, compiled
// here. So nothing is guessed: what is recognised does just this. The values of rctx and h are
// looked at for each request, since other functions of the script may change them.
//
// Source:    the dump format of Lua 5.4 (ldump.c, lundump.c): header, then the function.
// Threads:   one worker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/delegate.h"
#include "call/call.h"
#include "lua/script_stats.h"
#include "lua/stack.h"

namespace kvferry::lua {

/// What a function does.
enum class PlainKind : std::uint8_t { None, Forward, Text };

class PlainShapes {
 public:
  explicit PlainShapes(lua_State* lua);
  /// Looks at the function at `index`.
  PlainKind recognise(lua_State* lua, int index) const;

 private:
  std::vector<std::string> forwards_;  // Code and constants of the functions that forward.
  std::string text_code_;              // Code of those that return a constant.
};

/// Stands in front of a client's session while a forwarded request is under way: counts it, and
/// replaces what is no answer.
class PlainForward final : public call::ReplySink {
 public:
  /// `on_done` follows each reply; nothing of this is touched after it.
  PlainForward(ScriptStats& stats, base::Delegate<void()> on_done)
      : stats_(stats), on_done_(on_done) {}

  /// Hands the client's call itself on to `target`.
  void send(call::Call& call, const memcache::Request& request, call::Target& target);

  // call::ReplySink
  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override;
  void on_blocked(call::Call& call) override { call.outer_sink->on_blocked(call); }

 private:
  ScriptStats& stats_;
  base::Delegate<void()> on_done_;
};

}  // namespace kvferry::lua
