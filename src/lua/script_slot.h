// ScriptSlot: runs one request at a time through a route function of a script.
//
//   Free --run()--> Running --wait--> Waiting --on_wait_over--> Running --return--> Answered
//    ^                                                                                 |
//    +------------------- last sub-request answered, own sub-functions free -----------+
//
// It owns a coroutine and one context. A handle whose target is a generator has a slot of its own
// in here: sub-functions are built with their parent and belong to it for good.
//
// Lifetime:  owned by its generator or by its parent slot.
// Threads:   one worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "call/call.h"
#include "lua/boxes.h"
#include "lua/plain_function.h"
#include "lua/stack.h"
#include "lua/tickets.h"
#include "route/context.h"

namespace kvferry::lua {

class Generator;
class WorkerState;

class ScriptSlot final : public call::Target, private route::ContextHost {
 public:
  /// `children` holds a slot for each handle whose target is a generator.
  ScriptSlot(Generator& generator, std::vector<std::unique_ptr<ScriptSlot>> children);
  ~ScriptSlot() override;

  /// What the route function does, as far as that needs no Lua. Looked at anew for each request,
  /// since the script may change what the function refers to.
  struct Plain {
    PlainKind kind = PlainKind::None;
    std::uint32_t handle = 0;  // Of Forward.
  };
  Plain plain() const;
  /// Answers with the text that a function of kind Text returns.
  void answer_text(call::Call& call);

  /// Builds the Lua side by running the generator function. False: a Lua error value is on top of
  /// `lua`'s stack.
  bool build(lua_State* lua);

  /// Runs a request. As a target it serves its parent's handle.
  void send(call::Call& call, const memcache::Request& request) override;

  /// Set by the generator: the request counts as one that a client has under way.
  bool is_counted = false;

  /// route::ContextHost: fetches what a request or a reply needs, this itself apart.
  void prefetch() const override;

  // For bindings.

  route::Context& context() { return context_; }
  /// The request that is being served.
  route::RouteRequest& request() { return *request_; }
  /// Of that request; those of earlier ones are over.
  Ticket ticket() const { return ticket_; }
  /// Whether the userdata at `box` is this slot's rctx.
  bool is_context(const void* box) const { return box == context_box_; }
  lua_State* thread() const { return thread_; }
  Generator& generator() { return generator_; }
  WorkerState& state() { return state_; }
  bool is_sub_function() const { return parent_ != nullptr; }
  /// Whether a request is being served.
  bool is_running_on(const lua_State* lua) const { return call_ != nullptr && lua == thread_; }
  /// Pushes what came back on `handle`: a response, a script's text, or nil.
  void push_result(lua_State* lua, std::uint32_t handle);
  /// Sets the function at the top of the stack as callback of `handle`, and pops it.
  void set_callback(lua_State* lua, std::uint32_t handle);
  /// Pushes a new, empty object; false when there are too many.
  bool push_new_request(lua_State* lua);
  bool push_new_reply(lua_State* lua);

  /// What a coroutine that is about to yield waits for, which decides what it gets.
  enum class Waiting : std::uint8_t { None, Handle, Count, Sleep, Local };
  void set_waiting(Waiting waiting, std::uint32_t handle) {
    waiting_ = waiting;
    waiting_handle_ = handle;
  }
  /// The handle of mcp.internal.
  std::uint32_t local_handle() const { return context_.handle_count() - 1; }
  /// Pushes the answer of mcp.internal as an object of its own, and frees the handle for the next.
  void push_local_result(lua_State* lua);

 private:
  // route::ContextHost
  route::Verdict on_arrival(std::uint32_t handle, route::ResultClass natural) override;
  void on_wait_over(bool has_timed_out) override;
  void on_settled() override;

  static int build_protected(lua_State* lua);
  void make_context(lua_State* lua);
  lua_State* make_thread(lua_State* lua);
  void prepare_thread();
  void resume(int arguments);
  void fail(bool is_used_up);
  void finish();
  void answer_with(route::RouteReply& reply);
  void answer(std::string_view bytes, memcache::ReplyCode code, call::ReplyOrigin origin);
  void end();
  void settle_if_done();
  void charge(std::size_t bytes);
  void push_context(lua_State* lua) const;
  void push_anchored_context(lua_State* lua) const;
  bool push_callback(lua_State* lua, std::uint32_t handle);

  // What lies at the bottom of the coroutine's stack all the time.
  static constexpr int kContextPlace = 1;
  static constexpr int kFunctionPlace = 2;

  // What a reply needs comes first, and lies together.
  route::Context context_;
  call::Call* call_ = nullptr;  // Until it is answered.
  route::RouteRequest* request_ = nullptr;
  lua_State* thread_ = nullptr;
  const void* stack_ = nullptr;     // The coroutine's, as it was made: to be fetched ahead.
  const void* function_ = nullptr;  // The route function; the same.
  WorkerState& state_;
  Generator& generator_;
  ScriptSlot* parent_ = nullptr;
  ScriptSlot** context_box_ = nullptr;  // What the userdata of rctx holds.
  Ticket ticket_;
  std::size_t charged_bytes_ = 0;  // To the account of buffers.
  std::uint32_t busy_children_ = 0;
  std::uint32_t waiting_handle_ = 0;
  Waiting waiting_ = Waiting::None;
  PlainKind plain_kind_ = PlainKind::None;
  bool is_busy_ = false;    // From send() until everything has settled.
  bool is_settled_ = true;  // The context has ended and nothing of it is in flight.
  bool has_callbacks_ = false;
  bool has_made_objects_ = false;
  route::RouteRequest own_request_;
  std::string name_;  // Of the generator, which the collector may destroy before this.
  std::vector<bool> has_callback_;                     // By handle.
  std::vector<std::unique_ptr<ScriptSlot>> children_;  // By handle; null where it is no generator.
  std::vector<std::unique_ptr<route::RouteRequest>> made_requests_;
  std::vector<std::unique_ptr<route::RouteReply>> made_replies_;
  std::vector<RequestBox*> made_request_boxes_;
  std::vector<ReplyBox*> made_reply_boxes_;
};

/// Adds the type of rctx.
void define_context(lua_State* lua);

}  // namespace kvferry::lua
