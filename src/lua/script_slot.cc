// Life of a slot: how its Lua side is made, and what scripts are given of it.
#include "lua/script_slot.h"

#include <utility>

#include "base/check.h"
#include "base/prefetch.h"
#include "lua/generator.h"
#include "lua/worker_state.h"

namespace kvferry::lua {

using call::Call;
using memcache::ReplyCode;
using route::RouteReply;

namespace {

// User values of a context's userdata.
constexpr int kThreadValue = 1;
constexpr int kFunctionValue = 2;
constexpr int kObjectsValue = 3;
constexpr int kFixedValues = 3;
constexpr int callback_value(std::uint32_t handle) {
  return kFixedValues + 1 + static_cast<int>(handle);
}

/// Of a coroutine and of its stack, before a reply resumes it.
constexpr std::size_t kThreadBytesFetched = 4 * base::kCacheLineBytes;
constexpr std::size_t kStackBytesFetched = 4 * base::kCacheLineBytes;
constexpr std::size_t kRequestBytesFetched = 3 * base::kCacheLineBytes;

std::vector<call::Target*> targets_of(const Generator& generator,
                                      const std::vector<std::unique_ptr<ScriptSlot>>& children,
                                      WorkerState& state) {
  std::vector<call::Target*> targets;
  for (std::size_t i = 0; i < generator.handles().size(); ++i) {
    call::Target* const* pool = std::get_if<call::Target*>(&generator.handles()[i]);
    targets.push_back(pool != nullptr ? *pool : children[i].get());
  }
  targets.push_back(&state.local());  // For mcp.internal.
  return targets;
}

}  // namespace

ScriptSlot::ScriptSlot(Generator& generator, std::vector<std::unique_ptr<ScriptSlot>> children)
    : context_(generator.state().loop(), generator.state().calls(), *this,
               targets_of(generator, children, generator.state())),
      state_(generator.state()),
      generator_(generator),
      name_(generator.name()),
      has_callback_(context_.handle_count(), false),
      children_(std::move(children)) {
  for (const auto& child : children_) {
    if (child != nullptr) {
      child->parent_ = this;
    }
  }
  state_.names().add_slots(name_, 1);
}

ScriptSlot::~ScriptSlot() {
  KVF_CHECK(!is_busy_);
  state_.names().add_slots(name_, -1);
  if (thread_ == nullptr) {
    return;
  }
  // Scripts may keep the context and objects of it longer.
  if (!ticket_.is_foreign()) {
    state_.tickets().withdraw(ticket_);
  }
  for (RequestBox* box : made_request_boxes_) {
    box->request = nullptr;
  }
  for (ReplyBox* box : made_reply_boxes_) {
    box->reply = nullptr;
  }
  lua_State* lua = state_.main();
  *context_box_ = nullptr;
  state_.push_object(lua, &generator_);
  if (lua_isnil(lua, -1) == 0) {
    lua_getiuservalue(lua, -1, 1);
    lua_pushnil(lua);
    lua_rawsetp(lua, -2, this);
    lua_pop(lua, 1);
  }
  lua_pop(lua, 1);
}

bool ScriptSlot::build(lua_State* lua) {
  const Vm::Run run(state_.vm(), lua, Vm::Run::Kind::Load);
  lua_pushcfunction(lua, &ScriptSlot::build_protected);
  lua_pushlightuserdata(lua, this);
  return lua_pcall(lua, 1, 0, 0) == LUA_OK;
}

int ScriptSlot::build_protected(lua_State* lua) {
  auto& slot = *static_cast<ScriptSlot*>(lua_touserdata(lua, 1));
  slot.make_context(lua);
  const int context = lua_gettop(lua);
  slot.generator_.push_anchors(lua);
  lua_getfield(lua, -1, "f");
  lua_pushvalue(lua, context);
  lua_getfield(lua, -3, "a");
  lua_call(lua, 2, 1);
  if (lua_isfunction(lua, -1) == 0) {
    return raise(lua, "function generator didn't return a function");
  }
  slot.plain_kind_ = slot.state_.shapes().recognise(lua, -1);
  lua_setiuservalue(lua, context, kFunctionValue);
  slot.prepare_thread();
  return 0;
}

/// Pushes the userdata of this slot, kept by the generator's anchors from now on, with a coroutine.
void ScriptSlot::make_context(lua_State* lua) {
  const int values = kFixedValues + static_cast<int>(context_.handle_count());
  auto* box = static_cast<ScriptSlot**>(lua_newuserdatauv(lua, sizeof(ScriptSlot*), values));
  *box = this;
  luaL_setmetatable(lua, kContextType);
  lua_newtable(lua);
  lua_setiuservalue(lua, -2, kObjectsValue);
  lua_State* thread = make_thread(lua);
  generator_.push_anchors(lua);
  lua_pushvalue(lua, -2);
  lua_rawsetp(lua, -2, this);
  lua_pop(lua, 1);
  // From here on the destructor has something to undo.
  thread_ = thread;
  context_box_ = box;
  const std::optional<Ticket> ticket = state_.tickets().issue(*this);
  if (!ticket) {
    raise(lua, "too many function slots");
  }
  ticket_ = *ticket;
}

/// A coroutine for the context at the top of the stack, which keeps it.
lua_State* ScriptSlot::make_thread(lua_State* lua) {
  lua_State* thread = lua_newthread(lua);
  stack_ = state_.vm().last_block();
  lua_sethook(thread, nullptr, 0, 0);  // It would inherit that of a run which counts.
  lua_setiuservalue(lua, -2, kThreadValue);
  lua_pushvalue(lua, -1);
  lua_xmove(lua, thread, 1);
  return thread;
}

/// Puts what every request needs at the bottom of the coroutine's stack, where the context is.
void ScriptSlot::prepare_thread() {
  lua_settop(thread_, kContextPlace);
  lua_getiuservalue(thread_, kContextPlace, kFunctionValue);
  function_ = lua_topointer(thread_, kFunctionPlace);
}

void ScriptSlot::prefetch() const {
  base::prefetch(thread_, kThreadBytesFetched);
  base::prefetch(stack_, kStackBytesFetched);
  base::prefetch(function_);
  base::prefetch(&own_request_, kRequestBytesFetched);
}

ScriptSlot::Plain ScriptSlot::plain() const {
  if (plain_kind_ != PlainKind::Forward) {
    return Plain{.kind = plain_kind_};
  }
  // Upvalues in the order of their use: rctx, then the handle.
  lua_getupvalue(thread_, kFunctionPlace, 1);
  lua_getupvalue(thread_, kFunctionPlace, 2);
  Plain found;
  int is_number = 0;
  const lua_Integer handle = lua_tointegerx(thread_, -1, &is_number);
  if (is_context(lua_touserdata(thread_, -2)) && is_number != 0 && handle >= 0 &&
      handle < local_handle() && !has_callback_[static_cast<std::size_t>(handle)]) {
    found = Plain{.kind = PlainKind::Forward, .handle = static_cast<std::uint32_t>(handle)};
  }
  lua_pop(thread_, 2);
  return found;
}

void ScriptSlot::answer_text(Call& call) {
  // It returns its only constant; running it costs little and shows which.
  lua_pushvalue(thread_, kFunctionPlace);
  lua_call(thread_, 0, 1);
  const std::string_view text = text_at(thread_, -1);
  call.sink->on_reply(call, call::ReplyPart{.bytes = text,
                                            .code = ReplyCode::Other,
                                            .is_first = true,
                                            .is_last = true,
                                            .origin = call::ReplyOrigin::Script});
  lua_settop(thread_, kFunctionPlace);
}

/// Pushes the context when it is not on the coroutine's stack any more.
void ScriptSlot::push_anchored_context(lua_State* lua) const {
  generator_.push_anchors(lua);
  lua_rawgetp(lua, -1, this);
  lua_remove(lua, -2);
}

void ScriptSlot::push_context(lua_State* lua) const {
  lua_pushvalue(thread_, kContextPlace);
  if (lua != thread_) {
    lua_xmove(thread_, lua, 1);
  }
}

void ScriptSlot::push_result(lua_State* lua, std::uint32_t handle) {
  if (!context_.is_complete(handle)) {
    lua_pushnil(lua);
    return;
  }
  const RouteReply& reply = context_.reply(handle);
  if (reply.origin() == call::ReplyOrigin::Script) {
    push_text(lua, reply.bytes());
    return;
  }
  ticket_.of_reply(handle).push(lua);
}

void ScriptSlot::push_local_result(lua_State* lua) {
  const RouteReply& reply = context_.reply(local_handle());
  RouteReply& copy = push_owned_reply(lua);
  copy.copy_from(reply);
  context_.reopen(local_handle());
}

void ScriptSlot::set_callback(lua_State* lua, std::uint32_t handle) {
  push_context(lua);
  lua_insert(lua, -2);
  lua_setiuservalue(lua, -2, callback_value(handle));
  lua_pop(lua, 1);
  has_callback_[handle] = true;
  has_callbacks_ = true;
}

bool ScriptSlot::push_new_request(lua_State* lua) {
  if (made_requests_.size() + made_replies_.size() >= generator_.objects_max()) {
    return false;
  }
  has_made_objects_ = true;
  made_requests_.push_back(std::make_unique<route::RouteRequest>());
  made_request_boxes_.push_back(push_request(lua, *made_requests_.back()));
  push_context(lua);
  lua_getiuservalue(lua, -1, kObjectsValue);
  lua_pushvalue(lua, -3);
  lua_rawseti(lua, -2, static_cast<lua_Integer>(lua_rawlen(lua, -2)) + 1);
  lua_pop(lua, 2);
  return true;
}

bool ScriptSlot::push_new_reply(lua_State* lua) {
  if (made_requests_.size() + made_replies_.size() >= generator_.objects_max()) {
    return false;
  }
  has_made_objects_ = true;
  made_replies_.push_back(std::make_unique<RouteReply>());
  made_reply_boxes_.push_back(push_reply(lua, *made_replies_.back()));
  push_context(lua);
  lua_getiuservalue(lua, -1, kObjectsValue);
  lua_pushvalue(lua, -3);
  lua_rawseti(lua, -2, static_cast<lua_Integer>(lua_rawlen(lua, -2)) + 1);
  lua_pop(lua, 2);
  return true;
}

bool ScriptSlot::push_callback(lua_State* lua, std::uint32_t handle) {
  if (!has_callbacks_ || !has_callback_[handle]) {
    return false;
  }
  push_context(lua);
  lua_getiuservalue(lua, -1, callback_value(handle));
  lua_remove(lua, -2);
  return true;
}

}  // namespace kvferry::lua
