#include "pool/pool.h"

#include <utility>

#include "pool/broadcast.h"
#include "pool/failure_text.h"
#include "pool/request_bytes.h"

namespace kvferry::pool {

using call::Call;
using memcache::Command;
using memcache::ReplyCode;
using memcache::Request;

Pool::Pool(const PoolContext& context, std::shared_ptr<const PoolSnapshot> snapshot)
    : context_(context),
      kept_(context, std::move(snapshot)),
      gets_(context.loop, context.calls, context.budget) {}

Pool::~Pool() = default;

void Pool::send(Call& call, const Request& request) {
  if (PoolGets::is_for(request)) {
    if (!gets_.start(call, request, *kept_.snapshot().placement, backends(), options().on_partial,
                     kept_.random_state())) {
      refuse_all_down(call);
    }
    return;
  }
  if (request.key_count == 0) {
    broadcast(call, request);
    return;
  }
  const std::uint32_t index = kept_.snapshot().placement->select(request.key, kept_.random_state());
  if (index == kNoServer) {
    refuse_all_down(call);
    return;
  }
  send_to_one(*backends()[index], call, request);
}

void Pool::send_to_one(Backend& backend, Call& call, const Request& request) {
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the value lies behind the line
  std::string_view bytes(request.line.data(), request.size_bytes);
  if (must_unmute(request)) [[unlikely]] {
    bytes = unmute(request, scratch_);
  }
  if (!request.has_complete_value) [[unlikely]] {
    backend.start_upload(call, bytes);
    return;
  }
  backend.forward(call, bytes);
}

void Pool::broadcast(Call& call, const Request& request) {
  if (request.command != Command::FlushAll) {
    call::answer(call, "ERROR\r\n", ReplyCode::Error);
    return;
  }
  const std::string_view bytes = must_unmute(request) ? unmute(request, scratch_) : request.line;
  Broadcast::start(context_.calls, call, backends(), bytes);
}

void Pool::refuse_all_down(Call& call) const {
  const Failure failure{.kind = FailureKind::Down, .error = 0, .may_have_run = false};
  call::answer(call, failure_line(options(), {}, failure), ReplyCode::ServerError);
}

}  // namespace kvferry::pool
