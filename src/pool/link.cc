#include "pool/link.h"

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/prefetch.h"

namespace kvferry::pool {

using call::Call;
using call::Flow;
using call::ReplyPart;
using memcache::ReplyCode;

namespace {

/// A backend that has come back is to be used within the pool's retry time.
base::Millis backoff_max(const PoolOptions& options) {
  return std::min(options.backoff_max, std::max(options.backoff_min, options.retry_timeout));
}

}  // namespace

Link::Link(LinkHost& host, net::Loop& loop, Use use)
    : host_(host),
      loop_(loop),
      timer_(net::Timer::Callback::to<&Link::on_timer>(this)),
      resume_task_(net::Task::Callback::to<&Link::continue_delivery>(this)),
      backoff_(host.options().backoff_min, backoff_max(host.options())),
      use_(use) {
  if (host.options().protocol == Protocol::Redis) {
    resp_ = std::make_unique<RespSide>();
  }
}

Link::~Link() {
  KVF_CHECK(calls_.empty());
}

std::uint32_t Link::now_ms() const {
  const auto since_epoch = loop_.now().time_since_epoch();
  return static_cast<std::uint32_t>(std::chrono::duration_cast<base::Millis>(since_epoch).count());
}

std::optional<FailureKind> Link::admit() {
  const PoolOptions& options = host_.options();
  if (phase_ == Phase::Down) {
    if (is_retired_) {
      return FailureKind::Draining;
    }
    if (backoff_.is_failing()) {
      return FailureKind::Down;
    }
    if (!host_.address().is_set()) {
      return FailureKind::Unresolved;
    }
    connect();
    if (phase_ == Phase::Down) {
      return FailureKind::ConnectRefused;
    }
  } else if (phase_ == Phase::Connecting && backoff_.is_failing()) {
    // An attempt after a failure: calls do not wait for its outcome.
    return FailureKind::Down;
  }
  if (inflight_ >= options.max_inflight || queued_bytes() >= options.max_queue_bytes) {
    return FailureKind::Overload;
  }
  return std::nullopt;
}

void Link::commit(Call& call) {
  call.sent_at_ms = now_ms();
  call.source = this;
  calls_.push_back(call);
  ++inflight_;
  BackendStats& stats = host_.stats();
  stats.requests.add(1);
  stats.inflight.add(1);
  stream_->mark_dirty();
  if (phase_ == Phase::Up && !timer_.is_armed()) {
    arm_reply_timer();
  }
}

void Link::commit_upload(Call& call) {
  KVF_CHECK(use_ == Use::Exclusive && upload_ == nullptr);
  call.body_sink = this;
  upload_ = &call;
  is_upload_paused_ = false;
  commit(call);
}

void Link::connect() {
  auto opened = loop_.connect(
      host_.address(), net::ConnectOptions{.keepalive = host_.options().tcpkeepalive}, *this);
  if (!opened || !host_.secure(**opened)) {
    fail(Failure{.kind = FailureKind::ConnectRefused, .error = EMFILE, .may_have_run = false});
    return;
  }
  stream_ = std::move(opened).value();
  // Half of the window is when a paused upload goes on.
  stream_->set_drain_notice(use_ == Use::Exclusive ? kUploadWindowBytes : 0);
  phase_ = Phase::Connecting;
  is_proven_ = false;
  greet();
  loop_.timers().arm(timer_, loop_.now() + host_.options().connect_timeout);
}

void Link::preconnect() {
  if (phase_ == Phase::Down && !backoff_.is_failing() && !is_retired_ && host_.address().is_set()) {
    connect();
  }
}

void Link::clear_backoff() {
  if (backoff_.is_failing() && phase_ == Phase::Down) {
    backoff_.on_success();
    timer_.cancel();
  }
}

void Link::follow_options() {
  const PoolOptions& options = host_.options();
  const bool is_waiting = phase_ == Phase::Down && timer_.is_armed();
  if (backoff_.set_limits(options.backoff_min, backoff_max(options)) && is_waiting) {
    loop_.timers().arm(timer_, loop_.now() + backoff_.wait(host_.random()));
  }
}

void Link::retire() {
  is_retired_ = true;
  if (calls_.empty()) {
    close_stream();
  }
}

void Link::shut(FailureKind kind) {
  fail(Failure{.kind = kind, .error = 0, .may_have_run = phase_ == Phase::Up});
}

bool Link::has_lane(std::uint64_t lane) const {
  for (const Call* call = calls_.front(); call != nullptr; call = call->next_at_target) {
    if (call->lane == lane) {
      return true;
    }
  }
  return false;
}

void Link::on_connected() {
  KVF_CHECK(phase_ == Phase::Connecting);
  if (!is_greeting()) {
    on_up();
  }
}

void Link::on_up() {
  phase_ = Phase::Up;
  connected_at_ = loop_.now();
  host_.stats().connects.add(1);
  host_.stats().links_up.add(1);
  timer_.cancel();
  if (!calls_.empty()) {
    arm_reply_timer();
  }
}

void Link::on_data(std::string_view bytes) {
  host_.stats().bytes_received.add(bytes.size());
  is_delivering_ = true;
  carry_.feed(loop_.blocks(), bytes, [this](std::string_view view) { return deliver(view); });
  is_delivering_ = false;
  if (std::exchange(is_cut_, false)) {
    carry_.clear();
  }
  if (calls_.empty()) {
    host_.on_link_empty(*this);
  }
}

std::size_t Link::deliver(std::string_view bytes) {
  if (resp_ != nullptr) {
    return deliver_resp(bytes);
  }
  std::size_t taken = 0;
  while (taken < bytes.size()) {
    if (is_cut_) {
      return bytes.size();  // Failed meanwhile: the rest belongs to nobody.
    }
    if (is_paused_) {
      break;
    }
    Call* call = calls_.front();
    if (call == nullptr) {
      fail_as_stray(bytes.substr(taken));
      return bytes.size();
    }
    if (!is_in_reply_) {
      parser_.start(call->reply_kind);
      is_in_reply_ = true;
      is_passed_on_ = false;
    }
    const auto parsed = parser_.next(bytes.substr(taken));
    if (parsed.is_need_more()) {
      break;
    }
    if (parsed.is_failed()) {
      fail(Failure{.kind = FailureKind::BadReply,
                   .error = 0,
                   .may_have_run = true,
                   .evidence = bytes.substr(taken)});
      return bytes.size();
    }
    const memcache::ReplyChunk& chunk = parsed.value();
    hand_over(*call, chunk, bytes.substr(taken, chunk.size_bytes));
    taken += chunk.size_bytes;
  }
  return taken;
}

void Link::fail_as_stray(std::string_view bytes) {
  host_.stats().stray_replies.add(1);
  fail(
      Failure{.kind = FailureKind::BadReply, .error = 0, .may_have_run = false, .evidence = bytes});
}

void Link::hand_over(Call& call, const memcache::ReplyChunk& chunk, std::string_view bytes) {
  // With thousands of calls in flight those behind have left the cache; fetch them while this one
  // is being answered.
  if (const Call* next = call.next_at_target; next != nullptr) {
    base::prefetch(next->sink, 2 * base::kCacheLineBytes);
    base::prefetch(next->next_at_target);
  }
  const bool is_first = !std::exchange(is_passed_on_, true);
  if (!chunk.is_last) {
    call.sent_at_ms = now_ms();  // Progress pushes the deadline back.
    if (is_discarding_) {
      return;
    }
    const Flow flow = call.sink->on_reply(
        call,
        ReplyPart{.bytes = bytes, .code = chunk.code, .is_first = is_first, .is_last = false});
    if (flow == Flow::Pause && phase_ == Phase::Up) {
      is_paused_ = true;
      stream_->pause_reading();
      loop_.timers().arm(timer_, loop_.now() + kStallNotice);
    }
    return;
  }
  is_in_reply_ = false;
  const bool is_cut_short = std::exchange(is_discarding_, false);
  on_call_answered(call);
  const bool is_early = upload_ == &call;
  // A server that did not understand the line may read the value behind it as commands, and answer
  // those too.
  const bool may_be_out_of_step =
      memcache::has_value(call.command) &&
      (chunk.code == ReplyCode::Error || chunk.code == ReplyCode::ClientError);
  if (is_early) {
    // Answered before its body had come: the backend's idea of what follows is unknown, so this
    // connection ends here.
    upload_ = nullptr;
    call.body_sink = nullptr;
    close_stream();
  }
  call.sink->on_reply(call, ReplyPart{.bytes = is_cut_short ? std::string_view{} : bytes,
                                      .code = chunk.code,
                                      .is_first = is_first,
                                      .is_last = true});
  if (is_retired_ && calls_.empty()) {
    close_stream();
  }
  if (may_be_out_of_step && phase_ == Phase::Up) {
    fail(Failure{
        .kind = FailureKind::BadReply, .error = 0, .may_have_run = true, .evidence = bytes});
  }
}

void Link::on_call_answered(Call& call) {
  calls_.pop_front();
  --inflight_;
  BackendStats& stats = host_.stats();
  stats.inflight.sub(1);
  stats.latency.record(loop_.now() - call.started);
  if (!is_proven_) {
    is_proven_ = true;
    backoff_.on_success();
    host_.on_link_proven(*this);
  }
}

void Link::on_end() {
  on_closed(ECONNRESET);
}

void Link::on_closed(int error) {
  if (phase_ == Phase::Up && calls_.empty() && has_lasted()) {
    // Closed while idle: no failure, the next call connects anew.
    backoff_.on_success();
    close_stream();
    host_.on_link_empty(*this);
    return;
  }
  if (phase_ == Phase::Connecting) {
    fail(Failure{
        .kind = error == ETIMEDOUT ? FailureKind::ConnectTimeout : FailureKind::ConnectRefused,
        .error = error,
        .may_have_run = false});
  } else if (phase_ == Phase::Up) {
    fail(Failure{.kind = FailureKind::Closed, .error = error, .may_have_run = true});
  }
}

bool Link::has_lasted() const {
  return is_proven_ || loop_.now() - connected_at_ >= host_.options().backoff_max;
}

void Link::close_stream() {
  if (phase_ == Phase::Up) {
    host_.stats().links_up.sub(1);
  }
  phase_ = Phase::Down;
  stream_.reset();
  timer_.cancel();
  resume_task_.cancel();
  is_in_reply_ = is_passed_on_ = is_paused_ = is_discarding_ = false;
  parser_.start(memcache::ReplyKind::Line);
  if (resp_ != nullptr) {
    resp_->reader.restart();
  }
  output_ = &held_;
  held_.clear();
  if (is_delivering_) {
    is_cut_ = true;
  } else {
    carry_.clear();
  }
}

void Link::fail(const Failure& failure) {
  const bool was_usable = phase_ == Phase::Up && is_proven_;
  const bool is_reply_cut = is_passed_on_ && is_in_reply_;
  close_stream();
  if (failure.kind != FailureKind::Draining && !is_retired_) {
    // A connection that worked is replaced at once; one that never did waits longer each time.
    if (!was_usable) {
      const base::Millis wait = backoff_.on_failure(host_.random());
      const bool is_locked_out = failure.detail == kCredentialsRejected;
      loop_.timers().arm(
          timer_, loop_.now() + (is_locked_out ? std::max(wait, kCredentialsRetryMin) : wait));
    }
    host_.on_link_failed(*this, failure);
  }
  if (upload_ != nullptr) {
    std::exchange(upload_, nullptr)->body_sink = nullptr;
  }
  // Answers may bring new calls to this very link; those belong to its next connection.
  CallFifo failed = std::exchange(calls_, CallFifo{});
  const std::uint32_t count = std::exchange(inflight_, 0);
  host_.stats().inflight.sub(count);
  host_.stats().failures[static_cast<std::size_t>(failure.kind)].add(count);
  if (failed.empty()) {
    return;
  }
  const std::string line = host_.failure_line(failure);
  bool is_broken = is_reply_cut;
  while (Call* call = failed.pop_front()) {
    call->sink->on_reply(*call,
                         ReplyPart{.bytes = is_broken ? std::string_view{} : std::string_view(line),
                                   .code = ReplyCode::ServerError,
                                   .is_first = !is_broken,
                                   .is_last = true,
                                   .is_broken = is_broken});
    is_broken = false;
  }
  host_.on_link_empty(*this);
}

void Link::on_drained() {
  if (upload_ != nullptr && std::exchange(is_upload_paused_, false)) {
    upload_->body_source->resume_body(*upload_);
  }
}

void Link::resume(Call& call) {
  KVF_DCHECK(&call == calls_.front());
  static_cast<void>(call);
  // Later in this turn: the sink is in the middle of its own work.
  if (is_paused_) {
    loop_.defer(resume_task_);
  }
}

void Link::discard(Call& call) {
  is_discarding_ = true;
  resume(call);
}

void Link::continue_delivery() {
  if (!is_paused_) {
    return;
  }
  is_paused_ = false;
  if (calls_.front() != nullptr) {
    calls_.front()->sent_at_ms = now_ms();
  }
  timer_.cancel();
  arm_reply_timer();
  is_delivering_ = true;
  carry_.feed(loop_.blocks(), {}, [this](std::string_view view) { return deliver(view); });
  is_delivering_ = false;
  if (std::exchange(is_cut_, false)) {
    carry_.clear();
  } else if (phase_ == Phase::Up && !is_paused_) {
    stream_->resume_reading();
  }
  if (calls_.empty()) {
    host_.on_link_empty(*this);
  }
}

Flow Link::on_body(Call& call, std::string_view bytes, bool is_last) {
  KVF_DCHECK(&call == upload_);
  call.sent_at_ms = now_ms();
  host_.stats().bytes_sent.add(bytes.size());
  write(bytes);
  stream_->mark_dirty();
  if (is_last) {
    upload_ = nullptr;
    call.body_sink = nullptr;
    return Flow::Continue;
  }
  if (queued_bytes() > kUploadWindowBytes) {
    is_upload_paused_ = true;
    if (phase_ == Phase::Up && !timer_.is_armed()) {
      arm_reply_timer();
    }
    return Flow::Pause;
  }
  return Flow::Continue;
}

void Link::on_body_lost(Call& call) {
  KVF_DCHECK(&call == upload_);
  static_cast<void>(call);
  // The backend waits for bytes that will not come. Closing tells it; it is not the backend's
  // failure.
  shut(FailureKind::Draining);
}

}  // namespace kvferry::pool
