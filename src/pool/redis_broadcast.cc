#include "pool/redis_broadcast.h"

#include <algorithm>
#include <utility>

#include "call/redis_target.h"
#include "pool/failure_text.h"
#include "pool/merge_text.h"
#include "pool/redis_merge.h"

namespace kvferry::pool {

using call::Call;
using call::Flow;
using call::ReplyPart;
using redis::Merge;
using redis::Request;

RedisBroadcast::RedisBroadcast(const PoolContext& context, const Kept& kept, Call& parent,
                               const redis::Command& command)
    : context_(context),
      kept_(kept),
      parent_(&parent),
      command_(command),
      timer_(net::Timer::Callback::to<&RedisBroadcast::on_timeout>(this)),
      resume_task_(net::Task::Callback::to<&RedisBroadcast::pass_on>(this)) {}

void RedisBroadcast::start(const PoolContext& context, const Kept& kept, Call& parent,
                           const Request& request) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): owns itself, see leave_if_over()
  auto* const broadcast = new RedisBroadcast(context, kept, parent, request.command);
  parent.source = broadcast;
  broadcast->send(parent, request);
  // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): the calls that wait hold it
}

void RedisBroadcast::send(Call& parent, const Request& request) {
  const auto& backends = kept_.list();
  replies_.resize(backends.size());
  is_over_.resize(backends.size());
  left_ = backends.size() + 1;
  context_.loop.timers().arm(timer_, context_.loop.now() + options().redis.broadcast_timeout);
  for (std::size_t i = 0; i < backends.size(); ++i) {
    Call& call = context_.calls.acquire();
    call.sink = this;
    call.started = parent.started;
    call.lane = parent.lane;
    call.command = parent.command;
    call.client_fd = parent.client_fd;
    call.owner_index = static_cast<std::uint32_t>(i);
    backends[i]->lane(request.version, request.database).forward(call, request.bytes);
  }
  if (--left_ == 0) {
    answer_merged();
  }
}

Flow RedisBroadcast::on_reply(Call& call, const ReplyPart& part) {
  const std::size_t index = call.owner_index;
  if (!is_answered_ && !is_too_large_) {
    take(replies_[index], part);
  }
  if (part.is_last) {
    is_over_[index] = true;
    context_.calls.release(call);
    if (--left_ == 0) {
      if (is_answered_) {
        leave_if_over();
      } else {
        answer_merged();
      }
    }
  }
  return Flow::Continue;
}

void RedisBroadcast::take(std::string& reply, const ReplyPart& part) {
  if (part.is_broken) {
    kept_bytes_ -= reply.size();
    reply = lost_part_line(options());
    kept_bytes_ += reply.size();
    return;
  }
  kept_bytes_ += part.bytes.size();
  if (kept_bytes_ > options().redis.max_merge_bytes) {
    is_too_large_ = true;
    std::fill(replies_.begin(), replies_.end(), std::string());
    return;
  }
  reply += part.bytes;
}

void RedisBroadcast::on_timeout() {
  if (is_answered_) {
    return;
  }
  PoolOptions limits = options();
  limits.timeout = options().redis.broadcast_timeout;
  const std::string line = failure_line(
      limits, {}, Failure{.kind = FailureKind::Timeout, .error = 0, .may_have_run = true});
  for (std::size_t i = 0; i < replies_.size(); ++i) {
    if (!is_over_[i]) {
      replies_[i] = line;
    }
  }
  answer_failed();
}

void RedisBroadcast::answer_merged() {
  timer_.cancel();
  const auto is_good = [](const std::string& reply) { return !is_error_reply(reply); };
  if (is_too_large_) {
    answer(too_large_line(options()));
    return;
  }
  if (replies_.empty()) {
    answer(failure_line(options(), {}, Failure{.kind = FailureKind::Down}));
    return;
  }
  if (command_.merge == Merge::FirstSuccess) {
    const auto found = std::find_if(replies_.begin(), replies_.end(), is_good);
    answer(found == replies_.end() ? replies_.front() : *found);
    return;
  }
  if (!std::all_of(replies_.begin(), replies_.end(), is_good)) {
    answer_failed();
    return;
  }
  std::string merged;
  answer(merge_replies(command_.merge, replies_, merged) ? std::move(merged)
                                                         : bad_part_line(options()));
}

void RedisBroadcast::answer_failed() {
  PartialResult result{.command = command_.name, .total = replies_.size()};
  for (const std::string& reply : replies_) {
    std::int64_t number = 0;
    if (!is_error_reply(reply)) {
      ++result.done;
      result.counted +=
          command_.merge == Merge::Sum && read_number_reply(reply, number) ? number : 0;
    } else if (result.first_failure.empty()) {
      result.first_failure = reply;
    }
  }
  answer(partial_line(options(), result));
}

void RedisBroadcast::answer(std::string line) {
  is_answered_ = true;
  merged_ = std::move(line);
  std::fill(replies_.begin(), replies_.end(), std::string());
  pass_on();
}

void RedisBroadcast::pass_on() {
  const auto code = call::redis_reply_code(merged_.front(), merged_.size() > 1 ? merged_[1] : '\0');
  while (!is_paused_) {
    const std::size_t left = is_discarding_ ? 0 : merged_.size() - passed_bytes_;
    const std::size_t size = std::min(left, kMergedPartBytes);
    const bool is_first = passed_bytes_ == 0;
    const bool is_last = size == left;
    const std::string_view bytes = std::string_view(merged_).substr(passed_bytes_, size);
    passed_bytes_ += size;
    Call& parent = *parent_;
    if (is_last) {
      parent_ = nullptr;
    }
    const Flow flow = parent.sink->on_reply(parent, ReplyPart{.bytes = bytes,
                                                              .code = code,
                                                              .is_first = is_first,
                                                              .is_last = is_last,
                                                              .is_sure = true});
    if (is_last) {
      leave_if_over();
      return;
    }
    is_paused_ = flow == Flow::Pause;
  }
}

void RedisBroadcast::resume(Call& /*call*/) {
  is_paused_ = false;
  context_.loop.defer(resume_task_);
}

void RedisBroadcast::discard(Call& call) {
  is_discarding_ = true;
  resume(call);
}

void RedisBroadcast::leave_if_over() {
  if (left_ == 0 && parent_ == nullptr) {
    delete this;  // NOLINT(cppcoreguidelines-owning-memory): see start()
  }
}

}  // namespace kvferry::pool
