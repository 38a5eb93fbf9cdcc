#include "route/context.h"

#include "base/check.h"
#include "base/prefetch.h"

namespace kvferry::route {

using call::Call;
using call::Flow;
using call::ReplyPart;

namespace {

bool counts(WaitMode mode, ResultClass result_class) {
  switch (mode) {
    case WaitMode::Any:
      return true;
    case WaitMode::Good:
      return result_class == ResultClass::Good;
    case WaitMode::Ok:
    case WaitMode::FastGood:
      return result_class == ResultClass::Good || result_class == ResultClass::Ok;
  }
  return false;
}

}  // namespace

Context::Context(net::Loop& loop, call::CallPool& calls, ContextHost& host,
                 std::span<call::Target* const> targets)
    : loop_(loop),
      calls_(calls),
      host_(host),
      handle_count_(static_cast<std::uint32_t>(targets.size())),
      timer_(net::Timer::Callback::to<&Context::on_timer>(this)),
      next_turn_(net::Task::Callback::to<&Context::on_next_turn>(this)),
      far_(targets.size() > kHandlesNear ? targets.size() - kHandlesNear : 0) {
  for (std::uint32_t i = 0; i < handle_count_; ++i) {
    at(i).target = targets[i];
  }
}

Context::~Context() {
  KVF_CHECK(inflight_ == 0);
}

void Context::begin(const Call& client) {
  lane_ = client.lane;
  client_fd_ = client.client_fd;
  has_ended_ = false;
  ++serial_;
}

void Context::enqueue(std::uint32_t handle, RouteRequest& request) {
  Handle& entry = at(handle);
  if (entry.state != State::Idle) {
    return;
  }
  entry.state = State::Queued;
  entry.request = &request;
  ++used_;
  ++queued_;
}

void Context::send_queued() {
  is_sending_ = true;
  for (std::uint32_t i = 0; queued_ != 0 && i < handle_count_; ++i) {
    if (at(i).state == State::Queued) {
      --queued_;
      send(i);
    }
  }
  is_sending_ = false;
}

void Context::send(std::uint32_t index) {
  Handle& handle = at(index);
  handle.state = State::Active;
  handle.sent_at = loop_.now();
  ++inflight_;
  if (!handle.request->is_consistent()) {
    // Its value has another length than its line says: a server would read the rest as commands.
    handle.reply.fail();
    complete(index);
    return;
  }
  Call& call = calls_.acquire();
  call.sink = this;
  call.started = handle.sent_at;
  call.lane = lane_;
  call.client_fd = client_fd_;
  call.owner_index = index;
  call.shared_request = handle.request;
  const memcache::Request request = handle.request->wire();
  call.command = request.command;
  call.reply_kind = memcache::reply_kind_of(request.command);
  handle.target->send(call, request);
}

Flow Context::on_reply(Call& call, const ReplyPart& part) {
  Handle& handle = at(call.owner_index);
  handle.reply.take(part);
  if (!part.is_last) {
    return Flow::Continue;
  }
  handle.reply.answerer = call.answerer;
  const std::uint32_t index = call.owner_index;
  calls_.release(call);
  complete(index);
  return Flow::Continue;
}

void Context::prefetch(const Call& call) const {
  base::prefetch(&at(call.owner_index), sizeof(Handle));
  host_.prefetch();
}

void Context::complete(std::uint32_t index) {
  Handle& handle = at(index);
  handle.state = State::Complete;
  handle.reply.elapsed = std::chrono::duration_cast<base::Micros>(loop_.now() - handle.sent_at);
  --inflight_;
  Verdict verdict;
  if (handle.reply.origin() != call::ReplyOrigin::Script) {
    verdict = host_.on_arrival(index, handle.reply.natural_class());
  }
  handle.result_class = verdict.result_class;
  const std::uint64_t serial = serial_;
  if (has_ended_) {
    if (inflight_ == 0) {
      host_.on_settled();
    }
    return;
  }
  if (wait_.kind == Wait::Kind::None || is_sending_) {
    wait_.is_resumed = wait_.is_resumed || verdict.resumes;
  } else if (judge(handle, verdict.resumes)) {
    finish_wait(false);
  }
  if (serial_ == serial) {
    handle.reply.keep();
  }
}

bool Context::judge(Handle& handle, bool resumes) {
  if (wait_.kind == Wait::Kind::Count && !handle.is_waited &&
      counts(wait_.mode, handle.result_class)) {
    handle.is_waited = true;
    ++wait_.done;
    resumes =
        resumes || (wait_.mode == WaitMode::FastGood && handle.result_class == ResultClass::Good);
  }
  wait_.is_resumed = wait_.is_resumed || resumes;
  return is_wait_over();
}

bool Context::is_wait_over() const {
  switch (wait_.kind) {
    case Wait::Kind::None:
    case Wait::Kind::Sleep:
      return false;
    case Wait::Kind::Handle:
      return at(wait_.handle).state != State::Active;
    case Wait::Kind::Count:
      return wait_.is_resumed || wait_.done >= wait_.count || inflight_ == 0;
  }
  return true;
}

bool Context::wait_for(std::uint32_t handle, std::optional<base::Micros> timeout) {
  KVF_CHECK(wait_.kind == Wait::Kind::None);
  wait_ = Wait{.kind = Wait::Kind::Handle, .handle = handle};
  send_queued();
  at(handle).is_waited = true;
  if (is_wait_over()) {
    wait_.kind = Wait::Kind::None;
    return true;
  }
  arm(timeout);
  return false;
}

bool Context::wait_until(std::uint32_t count, WaitMode mode, std::optional<base::Micros> timeout) {
  KVF_CHECK(wait_.kind == Wait::Kind::None);
  wait_ = Wait{.kind = Wait::Kind::Count, .mode = mode, .count = count};
  send_queued();
  if (count == 0) {
    loop_.defer(next_turn_);
    return false;
  }
  // Those that came before this wait, or while it was sending, are looked at as if they came now.
  bool is_any = inflight_ != 0;
  for (std::uint32_t i = 0; i < handle_count_; ++i) {
    Handle& handle = at(i);
    if (handle.state == State::Complete && !handle.is_waited) {
      is_any = true;
      judge(handle, false);
      if (wait_.is_resumed || wait_.done >= wait_.count) {
        break;
      }
    }
  }
  if (is_wait_over() && !(timeout && !is_any)) {
    wait_.kind = Wait::Kind::None;
    return true;
  }
  arm(timeout);
  return false;
}

void Context::sleep(base::Micros duration) {
  KVF_CHECK(wait_.kind == Wait::Kind::None);
  wait_ = Wait{.kind = Wait::Kind::Sleep};
  arm(duration);
}

void Context::arm(std::optional<base::Micros> timeout) {
  if (timeout) {
    loop_.timers().arm(timer_, loop_.now() + *timeout);
  }
}

void Context::finish_wait(bool has_timed_out) {
  cancel_wait();
  host_.on_wait_over(has_timed_out);
}

void Context::cancel_wait() {
  wait_.kind = Wait::Kind::None;
  timer_.cancel();
  next_turn_.cancel();
}

void Context::reopen(std::uint32_t handle) {
  Handle& entry = at(handle);
  KVF_CHECK(entry.state == State::Complete);
  make_idle(entry);
}

void Context::make_idle(Handle& handle) {
  --used_;
  handle.state = State::Idle;
  handle.request = nullptr;
  handle.is_waited = false;
  handle.result_class = ResultClass::None;
  handle.reply.reset();
}

void Context::on_timer() {
  const bool is_sleep = wait_.kind == Wait::Kind::Sleep;
  finish_wait(!is_sleep);
}

void Context::on_next_turn() {
  finish_wait(false);
}

std::optional<std::uint32_t> Context::best_of(std::span<const std::uint32_t> handles) const {
  std::optional<std::uint32_t> ok;
  std::optional<std::uint32_t> rest;
  for (const std::uint32_t index : handles) {
    const ResultClass found = class_of(index);
    if (found == ResultClass::Good) {
      return index;
    }
    if (found == ResultClass::Ok) {
      ok = index;
    } else if (found == ResultClass::Any) {
      rest = index;
    }
  }
  return ok ? ok : rest;
}

std::optional<std::uint32_t> Context::worst_of(std::span<const std::uint32_t> handles) const {
  std::optional<std::uint32_t> worst;
  for (const std::uint32_t index : handles) {
    const ResultClass found = class_of(index);
    if (found != ResultClass::None && (!worst || found >= class_of(*worst))) {
      worst = index;
    }
  }
  return worst;
}

bool Context::end() {
  KVF_CHECK(wait_.kind == Wait::Kind::None);
  has_ended_ = true;
  if (queued_ != 0) {
    for (std::uint32_t i = 0; queued_ != 0; ++i) {
      if (at(i).state == State::Queued) {
        at(i).state = State::Idle;
        --queued_;
        --used_;
      }
    }
  }
  return inflight_ == 0;
}

void Context::reset() {
  KVF_CHECK(has_ended_ && inflight_ == 0);
  for (std::uint32_t i = 0; used_ != 0; ++i) {
    if (at(i).state != State::Idle) {
      make_idle(at(i));
    }
  }
  wait_ = Wait{};
  ++serial_;
}

}  // namespace kvferry::route
