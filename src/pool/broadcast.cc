#include "pool/broadcast.h"

#include "pool/backend.h"

namespace kvferry::pool {

using call::Call;
using call::Flow;
using call::ReplyPart;
using memcache::ReplyCode;

void Broadcast::start(call::CallPool& calls, Call& parent,
                      const std::vector<std::unique_ptr<Backend>>& backends,
                      std::string_view bytes) {
  // Released by itself after the last answer, which may come from within the loop; one more is
  // counted until it has ended.
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): owns itself
  auto* const broadcast = new Broadcast(calls, parent, backends.size() + 1);
  for (const auto& backend : backends) {
    Call& call = calls.acquire();
    call.sink = broadcast;
    call.started = parent.started;
    call.lane = parent.lane;
    call.command = parent.command;
    call.reply_kind = memcache::ReplyKind::Line;
    backend->forward(call, bytes);
  }
  broadcast->finish_if_done();
  // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): the calls that wait hold it
}

Flow Broadcast::on_reply(Call& call, const ReplyPart& part) {
  const bool is_worse = memcache::is_error(part.code) && !memcache::is_error(code_);
  if (part.is_first && (code_ == ReplyCode::None || is_worse)) {
    answer_ = part.bytes;
    code_ = part.code;
  }
  if (part.is_last) {
    calls_.release(call);
    finish_if_done();
  }
  return Flow::Continue;
}

void Broadcast::finish_if_done() {
  if (--left_ != 0) {
    return;
  }
  if (code_ == ReplyCode::None) {
    answer_ = "SERVER_ERROR kvferry: no backend\r\n";
    code_ = ReplyCode::ServerError;
  }
  call::answer(parent_, answer_, code_);
  delete this;  // NOLINT(cppcoreguidelines-owning-memory): see start()
}

}  // namespace kvferry::pool
