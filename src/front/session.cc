// Life of a session: how it begins, holds, and ends.
#include "front/session.h"

#include <utility>

#include "front/resp_client.h"

namespace kvferry::front {

using call::Call;

Session::Session(Service& service, net::StreamPtr stream, std::uint64_t lane, bool is_counted)
    : service_(service),
      stream_(std::move(stream)),
      parser_(service.options_.parser),
      task_(net::Task::Callback::to<&Session::continue_parsing>(this)),
      lane_(lane),
      last_active_(service.context_.loop.now()),
      is_counted_(is_counted) {
  is_locked_ = service.options_.credentials != nullptr;
  stream_->set_handler(*this);
  stream_->set_drain_notice(kOutputWindowBytes);
}

Session::~Session() = default;

void Session::reject(std::string_view line) {
  phase_ = Phase::Ending;
  stream_->write(line);
  release_if_done();
}

void Session::write(std::string_view bytes) {
  service_.stats_->bytes_sent.add(bytes.size());
  stream_->write(bytes);
}

void Session::unhold(Hold reason) {
  if ((holds_ & reason) == 0) {
    return;
  }
  holds_ = static_cast<std::uint8_t>(holds_ & ~reason);
  if (holds_ == 0 && phase_ == Phase::Open) {
    service_.context_.loop.defer(task_);
  }
}

void Session::continue_parsing() {
  holds_ = static_cast<std::uint8_t>(holds_ & ~kTurn);
  if (phase_ != Phase::Open) {
    return;
  }
  turn_requests_ = 0;
  is_parsing_ = true;
  carry_.feed(service_.context_.loop.blocks(), {},
              [this](std::string_view view) { return consume(view); });
  is_parsing_ = false;
  after_input();
}

void Session::after_input() {
  if (phase_ != Phase::Open) {
    carry_.clear();
    release_if_done();
    return;
  }
  if (end_if_ready()) {
    return;
  }
  if (stream_->output_bytes() > kOutputWindowBytes) {
    hold(kOutput);
  }
  update_reading();
}

void Session::update_reading() {
  const bool can_take = holds_ == 0 || (holds_ == kTurn && carry_.empty());
  const bool wants_input = can_take && (!is_draining_ || is_in_body());
  if (wants_input && stream_->is_reading_paused()) {
    stream_->resume_reading();
  } else if (!wants_input && !stream_->is_reading_paused()) {
    stream_->pause_reading();
  }
}

/// Some of a request that is longer than its begin has been taken, and some has not come.
bool Session::is_in_body() const {
  return body_call_ != nullptr || (skip_left_ != 0 && watcher_ == nullptr) ||
         (resp_ != nullptr && resp_->is_in_request());
}

void Session::end() {
  if (phase_ != Phase::Open) {
    return;
  }
  phase_ = Phase::Ending;
  if (!is_parsing_) {
    carry_.clear();
  }
  if (body_call_ != nullptr) {
    Call& call = *forget_body();
    body_left_ = 0;
    if (call.body_sink != nullptr) {
      call.body_sink->on_body_lost(call);
      return;  // Answered within that call, which ended this session if it was the last.
    }
  }
  release_if_done();
}

void Session::on_end() {
  // What was received before is still answered: `printf ... | nc` half-closes at once.
  has_ended_ = true;
  if (phase_ == Phase::Open) {
    end_if_ready();
  }
}

void Session::drain() {
  is_draining_ = true;
  if (phase_ == Phase::Open && !end_if_ready()) {
    update_reading();
  }
}

/// Ends a session that gets no new requests once what it has received was started. A body in
/// progress is waited for unless its sender is gone.
bool Session::end_if_ready() {
  const bool is_last_input = has_ended_ || (is_draining_ && !is_in_body());
  if (!is_last_input || (holds_ != 0 && !carry_.empty())) {
    return false;
  }
  end();
  return true;
}

void Session::on_closed(int error) {
  die(error == 0 ? "normal" : "error");
}

void Session::abort(std::string_view reason) {
  die(reason);
}

void Session::die(std::string_view reason, Farewell farewell) {
  if (phase_ == Phase::Dead) {
    return;
  }
  phase_ = Phase::Dead;
  watcher_.reset();
  service_.report_closed(*this, reason);
  if (farewell == Farewell::SendOutput) {
    net::Stream::leave(std::move(stream_));
  }
  stream_.reset();
  stall_timer_.reset();
  task_.cancel();
  if (!is_parsing_) {
    carry_.clear();
  }
  const bool was_parsing =
      std::exchange(is_parsing_, true);  // Keeps this alive while calls are answered below.
  if (body_call_ != nullptr) {
    Call& call = *forget_body();
    body_left_ = 0;
    if (call.body_sink != nullptr) {
      call.body_sink->on_body_lost(call);
    }
  }
  discard_paused();
  pass_stashes();  // Those that were only waiting for their turn.
  is_parsing_ = was_parsing;
  release_if_done();
}

/// Sources that wait for this client go on and drop what is left.
void Session::discard_paused() {
  // Each may answer at once and so change the queue: begin anew after each.
  for (Call* call = queue_.front(); call != nullptr;) {
    if (std::exchange(call->is_paused, false)) {
      call->source->discard(*call);
      call = queue_.front();
    } else {
      call = call->next_at_owner;
    }
  }
}

void Session::release_if_done() {
  if (!queue_.empty() || is_parsing_ || phase_ == Phase::Open) {
    return;
  }
  if (phase_ == Phase::Ending) {
    if (stream_->output_bytes() != 0) {
      arm_stall_timer();  // A client that does not read may not stay for ever.
    }
    stream_->close_after_output();
    return;
  }
  service_.release(*this);
}

}  // namespace kvferry::front
