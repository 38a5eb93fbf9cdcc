#include "route/waiting_route.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "call/answerer.h"
#include "route/null_answer.h"

namespace kvferry::route {

using call::Call;
using call::ReplyOrigin;
using memcache::ReplyCode;
using memcache::Request;

RouteRun::RouteRun(WaitingRoute& route)
    : route_(route), context_(route.loop(), route.calls(), *this, route.targets_) {
  order.reserve(route.targets_.size());
}

void RouteRun::begin(Call& call, const Request& request) {
  call_ = &call;
  // Always a copy of its own: some sub-requests may last longer than the one that this is part of.
  request_.borrow(call.shared_request == nullptr
                      ? request
                      : static_cast<RouteRequest*>(call.shared_request)->shown());
  context_.begin(call);
  route_.host().hold();
  keep(call.held_bytes == 0 ? request.value.size() : 0);  // Else somebody before has counted it.
  const std::uint64_t serial = serial_;
  route_.start(*this);
  if (serial_ == serial) {
    request_.keep();  // It is not over, and the client's bytes go.
  }
}

void RouteRun::keep(std::size_t bytes) {
  if (bytes != 0) {
    kept_bytes_ += bytes;
    route_.host().on_kept(bytes);
  }
}

void RouteRun::enqueue_all() {
  for (std::uint32_t i = 0; i < child_count(); ++i) {
    enqueue(i);
  }
}

Verdict RouteRun::on_arrival(std::uint32_t handle, ResultClass natural) {
  const RouteReply& reply = context_.reply(handle);
  if (reply.answerer != nullptr && reply.answerer->logging.is_on) [[unlikely]] {
    route_.host().on_logged_reply(reply, *context_.request_of(handle), context_.client_fd());
  }
  keep(reply.bytes().size());
  return {.result_class = natural, .resumes = false};
}

void RouteRun::on_wait_over(bool /*has_timed_out*/) {
  route_.on_wait_over(*this);
}

void RouteRun::answer_with(std::uint32_t child) {
  if (!context_.is_complete(child)) {
    answer_failure();
    return;
  }
  answer_like(context_.reply(child));
}

void RouteRun::answer_like(const RouteReply& reply) {
  if (reply.origin() == ReplyOrigin::Script) {
    answer(reply.bytes(), ReplyCode::Other, ReplyOrigin::Script);
  } else if (reply.is_empty() || (!reply.is_ok() && reply.type() != AnswerType::Error)) {
    answer_failure();
  } else {
    answer(reply.bytes(), reply.wire_code(), ReplyOrigin::Answerer);
  }
}

void RouteRun::answer_text(std::string_view bytes, ReplyCode code) {
  answer(bytes, code, ReplyOrigin::Answerer);
}

void RouteRun::answer_with_best() {
  answer_with(context_.best_of(route_.indexes_).value_or(0));
}

void RouteRun::answer_null() {
  const NullAnswer null = null_answer(request_.command());
  if (null.line.empty()) {
    answer_failure();
  } else {
    answer(null.line, null.code, ReplyOrigin::Answerer);
  }
}

void RouteRun::answer_failure() {
  answer(kBackendFailureLine, ReplyCode::ServerError, ReplyOrigin::Failure);
}

void RouteRun::answer(std::string_view bytes, ReplyCode code, ReplyOrigin origin) {
  Call& call = *std::exchange(call_, nullptr);
  if (const call::Quiet quiet = request_.quietness(); quiet != call::Quiet::No) {
    call.quiet = quiet;  // Otherwise somebody before may have set it.
  }
  // Before the answer, which may begin much.
  const bool is_settled = context_.end();
  if (!is_settled) {
    route_.host().on_lingering();
  }
  call.sink->on_reply(
      call, call::ReplyPart{
                .bytes = bytes, .code = code, .is_first = true, .is_last = true, .origin = origin});
  if (is_settled) {
    free();
  }
}

void RouteRun::on_settled() {
  route_.host().on_lingered();
  free();
}

void RouteRun::free() {
  ++serial_;
  context_.reset();
  request_.reset();
  tries = 0;
  mark = 0;
  note = nullptr;
  RouteHost& host = route_.host();
  host.on_dropped(std::exchange(kept_bytes_, 0));
  route_.put_back(*this);
  host.let_go();  // The route may go from here on.
}

WaitingRoute::WaitingRoute(const RouteSetup& setup)
    : NativeRoute(setup), trim_task_(net::Task::Callback::to<&WaitingRoute::trim>(this)) {
  for (const RouteChild& child : children()) {
    indexes_.push_back(static_cast<std::uint32_t>(targets_.size()));
    targets_.push_back(child.target);
  }
}

WaitingRoute::~WaitingRoute() {
  KVF_CHECK(free_.size() == runs_.size());
}

void WaitingRoute::send(Call& call, const Request& request) {
  if (free_.empty()) {
    runs_.push_back(std::make_unique<RouteRun>(*this));
    free_.reserve(runs_.size());
    free_.push_back(runs_.back().get());
  }
  RouteRun& run = *free_.back();
  free_.pop_back();
  run.begin(call, request);
}

void WaitingRoute::put_back(RouteRun& run) {
  free_.push_back(&run);
  // It is on the stack, so that it cannot go here.
  if (free_.size() > kFreeRunsMax && !trim_task_.is_queued()) {
    loop().defer(trim_task_);
  }
}

void WaitingRoute::trim() {
  if (free_.size() <= kFreeRunsMax) {
    return;
  }
  std::sort(free_.begin(), free_.end());
  const auto surplus_end = free_.begin() + static_cast<std::ptrdiff_t>(free_.size() - kFreeRunsMax);
  std::erase_if(runs_, [&](const std::unique_ptr<RouteRun>& run) {
    return std::binary_search(free_.begin(), surplus_end, run.get());
  });
  free_.erase(free_.begin(), surplus_end);
}

}  // namespace kvferry::route
