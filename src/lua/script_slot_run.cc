// One request through a slot: how it runs, waits, is answered and ends.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "lua/generator.h"
#include "lua/script_slot.h"
#include "lua/worker_state.h"

namespace kvferry::lua {

using call::Call;
using memcache::ReplyCode;
using route::ResultClass;
using route::RouteReply;
using route::Verdict;

namespace {

constexpr std::string_view kBackendFailureLine = "SERVER_ERROR backend failure\r\n";
constexpr std::string_view kScriptFailureLine = "SERVER_ERROR lua failure\r\n";
constexpr std::string_view kBadResponseLine = "SERVER_ERROR bad response\r\n";

}  // namespace

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
