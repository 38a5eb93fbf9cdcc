#include "route/native_route.h"

#include "route/null_answer.h"

namespace kvferry::route {

using call::Call;
using memcache::Request;

namespace {

call::Quiet quietness_of(const Request& request) {
  RouteRequest view;
  view.borrow(request);
  return view.quietness();
}

}  // namespace

void NativeRoute::keep_value(Call& call, const Request& request) const {
  // Whoever took a client's call over lets go of it with the answer, and may have counted it. A
  // sub-request has the value of its route, which counts it.
  if (request.value.empty() || call.outer_sink == nullptr || call.held_bytes != 0) [[likely]] {
    return;
  }
  call.held_bytes = static_cast<std::uint32_t>(request.value.size());
  setup_.host.on_kept(call.held_bytes);
}

void NativeRoute::pass(Call& call, const Request& request, const RouteChild& child) {
  if (!child.is_route) {
    keep_value(call, request);
  }
  if (child.is_route || (!request.quiet && !request.noreply)) [[likely]] {
    child.target->send(call, request);
    return;
  }
  blanked_.borrow(request);
  call.quiet = blanked_.quietness();
  child.target->send(call, blanked_.wire());
  blanked_.reset();
}

void NativeRoute::answer_line(Call& call, const Request& request, std::string_view line,
                              memcache::ReplyCode code) {
  if (request.quiet || request.noreply) {
    call.quiet = quietness_of(request);
  }
  call::answer(call, line, code);
}

void NativeRoute::answer_null(Call& call, const Request& request) {
  const NullAnswer null = null_answer(request.command);
  if (null.line.empty()) {
    answer_line(call, request, kBackendFailureLine, memcache::ReplyCode::ServerError);
    return;
  }
  answer_line(call, request, null.line, null.code);
}

}  // namespace kvferry::route
