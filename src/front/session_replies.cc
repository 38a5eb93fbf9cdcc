// From reply parts back to bytes in request order: the output side of a session.
#include <utility>

#include "front/resp_client.h"
#include "front/session.h"

namespace kvferry::front {

using call::Call;
using call::Flow;
using call::ReplyPart;

Flow Session::on_reply(Call& call, const ReplyPart& part) {
  if (part.is_first) {
    call.is_hidden = call.quiet != call::Quiet::No && part.origin != call::ReplyOrigin::Script &&
                     call::is_hidden(call.quiet, part.code);
  }
  if (part.is_last) {
    ServiceStats& stats = *service_.stats_;
    stats.replies[static_cast<std::size_t>(part.code)].add(1);
    stats.latencies.record(call.command, service_.context_.loop.now() - call.started);
  }
  return take_reply(call, part);
}

/// What may be shown of a part goes to the client, or is kept until its turn comes.
Flow Session::take_reply(Call& call, const ReplyPart& part) {
  return &call == queue_.front() ? on_front_reply(call, part) : on_early_reply(call, part);
}

/// In place of a reply that was cut off before its turn came.
std::string_view Session::cut_line() const {
  return wire_ == Wire::Resp ? RespClient::kCutLine : service_.options_.cut_line;
}

Flow Session::on_front_reply(Call& call, const ReplyPart& part) {
  const bool is_shown = phase_ != Phase::Dead && !call.is_hidden;
  if (!part.is_last) {
    if (is_shown && !call.is_passed && !part.is_sure) {
      keep(call, part.bytes);
      pass_stash(call);
    } else if (is_shown) {
      pass_stash_whole(call);
      write(part.bytes);
    }
    if (phase_ != Phase::Dead && stream_->output_bytes() > output_window()) {
      pause(call);
      return Flow::Pause;
    }
    return Flow::Continue;
  }
  if (part.is_broken && is_shown && call.is_passed) {
    pop_front();
    // The client was promised more bytes than there are. It gets the replies before.
    die("error", Farewell::SendOutput);
    return Flow::Continue;
  }
  if (is_shown) {
    if (part.is_broken) {
      call.stash.clear();
    } else if (!call.stash.empty()) {
      pass_stash_whole(call);
    }
    write(part.is_broken && part.bytes.empty() ? cut_line() : part.bytes);
  }
  pop_front();
  pass_stashes();
  on_answered();
  return Flow::Continue;
}

Flow Session::on_early_reply(Call& call, const ReplyPart& part) {
  const bool is_shown = phase_ != Phase::Dead && !call.is_hidden;
  if (part.is_broken) {
    call.stash.clear();
  }
  if (is_shown) {
    keep(call, part.is_broken && part.bytes.empty() ? cut_line() : part.bytes);
  }
  if (part.is_last) {
    call.is_done = true;
    call.is_paused = false;  // Its source has forgotten it.
  } else if (call.stash.size() > (is_spilling_ ? call::kSpillBytesMax : kStashWindowBytes)) {
    mark_paused(call);
    return Flow::Pause;
  }
  return Flow::Continue;
}

void Session::on_blocked(Call& call) {
  if (phase_ == Phase::Dead || !call.is_paused) {
    return;
  }
  if (&call != queue_.front()) {
    // Its turn has not come, which is not this client's fault: keep more of it, up to a limit.
    if (call.stash.size() > call::kSpillBytesMax) {
      return;
    }
  } else if (stream_->output_bytes() > call::kSpillBytesMax) {
    on_stalled();
    return;
  }
  is_spilling_ = true;
  call.is_paused = false;
  call.source->resume(call);
}

void Session::keep(Call& call, std::string_view bytes) {
  call.stash.append(service_.context_.loop.blocks(), bytes);
}

/// Lets go of what is kept of the front call's reply once it is more than can be held back. Until
/// then a reply that is cut off can still be replaced by an error line.
void Session::pass_stash(Call& call) {
  if (call.is_done || call.stash.size() >= call::kStreamBytesMin) {
    pass_stash_whole(call);
  }
}

void Session::pass_stash_whole(Call& call) {
  call.is_passed = true;
  if (call.stash.empty()) {
    return;
  }
  service_.stats_->bytes_sent.add(call.stash.size());
  stream_->output().splice(stream_->blocks(), call.stash);
  stream_->mark_dirty();
}

void Session::pop_front() {
  Call& call = *queue_.pop_front();
  last_active_ = service_.context_.loop.now();
  --inflight_;
  service_.stats_->inflight.sub(1);
  if (&call == body_call_) {
    // Answered before its body had come whole: swallow the rest.
    drop_rest_of_body();
    unhold(kBody);
  }
  service_.context_.calls.release(call);
}

void Session::pass_stashes() {
  while (Call* call = queue_.front()) {
    if (phase_ == Phase::Dead) {
      call->stash.clear();
    } else {
      pass_stash(*call);
    }
    if (!call->is_done) {
      resume_front();
      return;
    }
    pop_front();
  }
}

/// The front call's source goes on when there is room for what it sends.
void Session::resume_front() {
  Call* call = queue_.front();
  if (call == nullptr || !call->is_paused) {
    return;
  }
  if (phase_ != Phase::Dead && stream_->output_bytes() > output_window()) {
    // Paused before its turn; from now on it is the client that it waits for.
    if (stall_timer_ == nullptr) {
      arm_stall_timer();
    }
    return;
  }
  call->is_paused = false;
  call->source->resume(*call);
}

void Session::on_answered() {
  if ((holds_ & kInflight) != 0 && inflight_ <= service_.options_.inflight_max / 2) {
    unhold(kInflight);
  }
  if (!queue_.empty()) {
    return;
  }
  if ((holds_ & kBarrier) != 0) {
    unhold(kBarrier);
  }
  release_if_done();
}

void Session::pause(Call& call) {
  mark_paused(call);
  arm_stall_timer();
}

void Session::mark_paused(Call& call) {
  call.is_paused = true;
  if (call.is_half_done) {
    hold(kBarrier);
  }
}

void Session::arm_stall_timer() {
  if (stall_timer_ == nullptr) {
    stall_timer_ =
        std::make_unique<net::Timer>(net::Timer::Callback::to<&Session::on_stalled>(this));
  }
  net::Loop& loop = service_.context_.loop;
  loop.timers().arm(*stall_timer_, loop.now() + service_.options_.stall_timeout);
}

void Session::on_stalled() {
  service_.stats_->clients_stalled.add(1);
  abort();
}

void Session::on_drained() {
  stall_timer_.reset();
  is_spilling_ = false;
  unhold(kOutput);
  pass_watched();
  resume_front();
  release_if_done();  // A client that is to go has its time for the rest limited, too.
}

}  // namespace kvferry::front
