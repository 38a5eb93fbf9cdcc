#include "lua/script_slot.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/prefetch.h"
#include "lua/generator.h"
#include "lua/worker_state.h"

namespace kvferry::lua {

using call::Call;
using memcache::ReplyCode;
using route::ResultClass;
using route::RouteReply;
using route::Verdict;

namespace {

// User values of a context's userdata.
constexpr int kThreadValue = 1;
constexpr int kFunctionValue = 2;
constexpr int kObjectsValue = 3;
constexpr int kFixedValues = 3;
constexpr int callback_value(std::uint32_t handle) {
  return kFixedValues + 1 + static_cast<int>(handle);
}
// What lies at the bottom of the coroutine's stack all the time.
constexpr int kContextPlace = 1;
constexpr int kFunctionPlace = 2;

/// Of a coroutine and of its stack, before a reply resumes it.
constexpr std::size_t kThreadBytesFetched = 4 * base::kCacheLineBytes;
constexpr std::size_t kStackBytesFetched = 4 * base::kCacheLineBytes;
constexpr std::size_t kRequestBytesFetched = 3 * base::kCacheLineBytes;

constexpr std::string_view kBackendFailureLine = "SERVER_ERROR backend failure\r\n";
constexpr std::string_view kScriptFailureLine = "SERVER_ERROR lua failure\r\n";
constexpr std::string_view kBadResponseLine = "SERVER_ERROR bad response\r\n";

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

void ScriptSlot::send(Call& call, const memcache::Request& request) {
  KVF_CHECK(!is_busy_);
  is_busy_ = true;
  is_settled_ = false;
  call_ = &call;
  if (parent_ != nullptr) {
    ++parent_->busy_children_;
  }
  auto* const shared = static_cast<route::RouteRequest*>(call.shared_request);
  // A native route, which is no parent, may be done with its request before this is.
  request_ = parent_ != nullptr && shared != nullptr ? shared : &own_request_;
  if (request_ == &own_request_) {
    own_request_.borrow(shared != nullptr ? shared->shown() : request);
    charge(request.value.size());
  }
  context_.begin(call);
  lua_pushvalue(thread_, kFunctionPlace);
  ticket_.push(thread_);
  resume(1);
  if (is_busy_ && request_ == &own_request_) {
    own_request_.keep();  // It is not over, and the client's bytes go.
  }
}

void ScriptSlot::resume(int arguments) {
  waiting_ = Waiting::None;
  int results = 0;
  lua_State* from = state_.current();
  int status = 0;
  bool is_used_up = false;
  {
    const Vm::Run run(state_.vm(), thread_);
    const WorkerState::Running running(state_, thread_, *this);
    status = lua_resume(thread_, from, arguments, &results);
    is_used_up = run.is_used_up();
  }
  if (status == LUA_OK) {
    finish();
  } else if (status != LUA_YIELD) {
    fail(is_used_up);
  } else if (waiting_ == Waiting::None) {
    // The script's own yield, which nobody would ever resume.
    lua_pushliteral(thread_, "attempt to yield from a route function");
    fail(is_used_up);
  }
}

void ScriptSlot::on_wait_over(bool has_timed_out) {
  int arguments = 0;
  switch (std::exchange(waiting_, Waiting::None)) {
    case Waiting::Handle:
      if (has_timed_out) {
        lua_pushnil(thread_);
        lua_pushboolean(thread_, 1);
        arguments = 2;
      } else {
        push_result(thread_, waiting_handle_);
        arguments = 1;
      }
      break;
    case Waiting::Count:
      lua_pushinteger(thread_, context_.done());
      arguments = 1;
      if (has_timed_out) {
        lua_pushboolean(thread_, 1);
        arguments = 2;
      }
      break;
    case Waiting::Sleep:
      lua_pushboolean(thread_, 1);
      arguments = 1;
      break;
    case Waiting::Local:
      push_local_result(thread_);
      arguments = 1;
      break;
    case Waiting::None:
      KVF_CHECK(false);
      break;
  }
  resume(arguments);
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

Verdict ScriptSlot::on_arrival(std::uint32_t handle, ResultClass natural) {
  state_.on_reply(context_.reply(handle), context_.request_of(handle), context_.client_fd());
  charge(context_.reply(handle).bytes().size());
  Verdict verdict{.result_class = natural, .resumes = false};
  lua_State* lua = state_.current();
  if (!push_callback(lua, handle)) {
    return verdict;
  }
  push_result(lua, handle);
  ticket_.push(lua);
  const Vm::Run run(state_.vm(), lua);
  if (lua_pcall(lua, 2, 2, 0) != LUA_OK) {
    state_.report_error(lua);
    return verdict;
  }
  if (lua_isinteger(lua, -2) != 0) {
    const lua_Integer said = lua_tointeger(lua, -2);
    if (said == static_cast<lua_Integer>(route::WaitMode::Good)) {
      verdict.result_class = ResultClass::Good;
    } else if (said == static_cast<lua_Integer>(route::WaitMode::Ok)) {
      verdict.result_class = ResultClass::Ok;
    }
    verdict.resumes = lua_isboolean(lua, -1) && lua_toboolean(lua, -1) != 0;
  }
  lua_pop(lua, 2);
  return verdict;
}

void ScriptSlot::fail(bool is_used_up) {
  // The message is on top of the coroutine's stack.
  state_.report_script_error(thread_);
  if (is_used_up) {
    lua_State* lua = state_.main();
    push_anchored_context(lua);
    thread_ = make_thread(lua);
    lua_pop(lua, 1);
  } else {
    {
      // Variables that are to be closed run the script's code.
      const Vm::Run run(state_.vm(), thread_);
      lua_resetthread(thread_);
    }
    lua_settop(thread_, 0);
    push_anchored_context(thread_);
  }
  prepare_thread();
  if (context_.is_waiting()) {
    context_.cancel_wait();
  }
  if (parent_ != nullptr) {
    answer(kBackendFailureLine, ReplyCode::ServerError, call::ReplyOrigin::Failure);
  } else {
    answer(kScriptFailureLine, ReplyCode::ServerError, call::ReplyOrigin::Failure);
  }
  end();
}

void ScriptSlot::finish() {
  // What lua_resume() counts as results includes what always lies at the bottom.
  constexpr int kFirst = kFunctionPlace + 1;
  lua_settop(thread_, std::max(lua_gettop(thread_), kFirst));
  if (RouteReply* reply = reply_at(thread_, kFirst)) {
    answer_with(*reply);
  } else if (lua_type(thread_, kFirst) == LUA_TSTRING) {
    const std::string_view text = text_at(thread_, kFirst);
    answer(text, ReplyCode::Other, call::ReplyOrigin::Script);
  } else if (parent_ != nullptr) {
    answer(kBackendFailureLine, ReplyCode::ServerError, call::ReplyOrigin::Failure);
  } else {
    answer(kBadResponseLine, ReplyCode::ServerError, call::ReplyOrigin::Failure);
  }
  lua_settop(thread_, kFunctionPlace);
  end();
}

void ScriptSlot::answer_with(RouteReply& reply) {
  if (reply.is_closed() || reply.is_empty()) {
    if (parent_ != nullptr) {
      answer(kBackendFailureLine, ReplyCode::ServerError, call::ReplyOrigin::Failure);
    } else {
      answer(kBadResponseLine, ReplyCode::ServerError, call::ReplyOrigin::Failure);
    }
    return;
  }
  if (!reply.is_ok() && reply.type() != route::AnswerType::Error) {
    answer(kBackendFailureLine, ReplyCode::ServerError, call::ReplyOrigin::Failure);
    return;
  }
  answer(reply.bytes(), reply.wire_code(), call::ReplyOrigin::Answerer);
}

void ScriptSlot::answer(std::string_view bytes, ReplyCode code, call::ReplyOrigin origin) {
  Call& call = *std::exchange(call_, nullptr);
  if (parent_ == nullptr) {
    call.quiet = request_->quietness();
  }
  call.sink->on_reply(
      call, call::ReplyPart{
                .bytes = bytes, .code = code, .is_first = true, .is_last = true, .origin = origin});
}

void ScriptSlot::end() {
  is_settled_ = context_.end();
  settle_if_done();
}

void ScriptSlot::on_settled() {
  is_settled_ = true;
  settle_if_done();
}

void ScriptSlot::settle_if_done() {
  if (!is_settled_ || busy_children_ != 0 || !is_busy_) {
    return;
  }
  is_busy_ = false;
  state_.stats().buffer_bytes.sub(std::exchange(charged_bytes_, 0));
  ticket_ = state_.tickets().renew(ticket_, *this);
  context_.reset();
  if (has_made_objects_) {
    for (const auto& made : made_requests_) {
      made->reset();
    }
    for (const auto& made : made_replies_) {
      made->reset();
    }
  }
  own_request_.reset();
  request_ = nullptr;
  if (parent_ != nullptr) {
    --parent_->busy_children_;
    parent_->settle_if_done();
  } else {
    generator_.on_slot_free(*this);
  }
}

void ScriptSlot::charge(std::size_t bytes) {
  charged_bytes_ += bytes;
  state_.stats().buffer_bytes.add(bytes);
}

}  // namespace kvferry::lua
