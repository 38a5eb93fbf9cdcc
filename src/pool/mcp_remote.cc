#include "pool/mcp_remote.h"

#include <utility>

#include "base/check.h"
#include "pool/mcp_backends.h"
#include "pool/mcp_failure.h"

namespace kvferry::pool {

using call::Call;
using call::Flow;
using call::ReplyOrigin;
using call::ReplyPart;

namespace {

/// Answers the calls that still wait. Scripts run meanwhile, and may let the remote end go.
void take_replies(McpWaiting& waiting, const std::vector<McpRemoteReply>& replies) {
  for (const McpRemoteReply& reply : replies) {
    const auto found = waiting.calls.find(reply.id);
    if (found == waiting.calls.end()) {
      continue;
    }
    Call& call = *found->second;
    waiting.calls.erase(found);
    // What takes a call of several requests, or a wide reply, uses what has come of it.
    if (reply.is_cut) {
      call.sink->on_reply(
          call,
          ReplyPart{.bytes = reply.bytes, .code = reply.code, .is_first = true, .is_last = false});
    }
    call.sink->on_reply(call, ReplyPart{.bytes = reply.is_cut ? std::string_view{} : reply.bytes,
                                        .code = reply.code,
                                        .is_first = !reply.is_cut,
                                        .is_last = true,
                                        .is_broken = reply.is_cut,
                                        .origin = reply.origin});
  }
  if (waiting.remote != nullptr) {
    waiting.remote->on_replied();
  }
}

}  // namespace

McpRemote::McpRemote(Setup setup)
    : setup_(std::move(setup)),
      far_id_(setup_.far->next_id()),
      waiting_(std::make_shared<McpWaiting>()),
      flush_task_(net::Task::Callback::to<&McpRemote::flush>(this)) {
  waiting_->remote = this;
  setup_.far->post([id = far_id_, prefix = setup_.prefix, options = setup_.options,
                    home = setup_.home, waiting = waiting_](McpBackends& backends) {
    backends.attach_far_end(id, prefix, options, home, waiting);
  });
}

McpRemote::~McpRemote() {
  KVF_CHECK(waiting_->calls.empty());
  waiting_->remote = nullptr;
  setup_.far->post([id = far_id_](McpBackends& backends) { backends.detach_far_end(id); });
}

void McpRemote::forward(Call& call, std::string_view bytes) {
  call.answerer = &setup_.answerer;
  const std::uint64_t id = ++last_id_;
  waiting_->calls.emplace(id, &call);
  outbox_.push_back(McpRemoteRequest{.id = id,
                                     .bytes = std::string(bytes),
                                     .reply_count = call.reply_count,
                                     .is_wide = call.is_wide});
  setup_.loop.defer(flush_task_);
}

void McpRemote::flush() {
  setup_.far->post([id = far_id_, requests = std::make_shared<std::vector<McpRemoteRequest>>(
                                      std::exchange(outbox_, {}))](McpBackends& backends) {
    if (McpFarEnd* end = backends.far_end(id)) {
      end->send(*requests);
    }
  });
}

void McpRemote::shut() {
  flush_task_.cancel();
  outbox_.clear();
  for (const auto& [id, call] : std::exchange(waiting_->calls, {})) {
    answer_mcp_failure(*call);
  }
}

void McpRemote::on_replied() {
  if (on_drained_ && waiting_->calls.empty()) {
    on_drained_();
  }
}

McpFarEnd::McpFarEnd(Setup setup)
    : setup_(std::move(setup)), flush_task_(net::Task::Callback::to<&McpFarEnd::flush>(this)) {}

McpFarEnd::~McpFarEnd() {
  KVF_CHECK(is_drained());
  flush();
}

std::uint32_t McpFarEnd::take_slot() {
  if (free_.empty()) {
    slots_.emplace_back();
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void McpFarEnd::send(const std::vector<McpRemoteRequest>& requests) {
  for (const McpRemoteRequest& request : requests) {
    const std::uint32_t slot = take_slot();
    slots_[slot].id = request.id;
    Call& call = setup_.calls.acquire();
    call.sink = this;
    call.started = setup_.loop.now();
    call.owner_index = slot;
    call.reply_count = request.reply_count;
    call.is_wide = request.is_wide;
    if (setup_.backend != nullptr) {
      setup_.backend->forward(call, request.bytes);
    } else {
      answer_mcp_failure(call);
    }
  }
}

Flow McpFarEnd::on_reply(Call& call, const ReplyPart& part) {
  McpRemoteReply& reply = slots_[call.owner_index];
  reply.bytes += part.bytes;
  reply.code = part.code;
  if (!part.is_last) {
    return Flow::Continue;
  }
  reply.origin = part.origin;
  if (part.is_broken) {
    reply.is_cut = call.is_wide || call.reply_count > 1;
    if (!reply.is_cut) {
      reply.bytes = kMcpFailureLine;
    }
    reply.origin = ReplyOrigin::Failure;
  }
  outbox_.push_back(std::exchange(reply, {}));
  free_.push_back(call.owner_index);
  setup_.calls.release(call);
  setup_.loop.defer(flush_task_);
  return Flow::Continue;
}

void McpFarEnd::flush() {
  flush_task_.cancel();
  if (outbox_.empty()) {
    return;
  }
  setup_.home->post(
      [waiting = setup_.waiting,
       replies = std::make_shared<std::vector<McpRemoteReply>>(std::exchange(outbox_, {}))](
          McpBackends& /*backends*/) { take_replies(*waiting, *replies); });
}

}  // namespace kvferry::pool
