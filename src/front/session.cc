#include "front/session.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "front/binary_refusal.h"

namespace kvferry::front {

using call::Call;
using call::Flow;
using call::ReplyPart;
using memcache::ReplyCode;

namespace {

/// In place of a reply that was cut off before its turn came.
constexpr std::string_view kCutLine = "SERVER_ERROR kvferry: connection to backend lost\r\n";

}  // namespace

Session::Session(Service& service, net::StreamPtr stream, std::uint64_t lane, bool is_counted)
    : service_(service),
      stream_(std::move(stream)),
      parser_(service.options_.parser),
      task_(net::Task::Callback::to<&Session::continue_parsing>(this)),
      lane_(lane),
      last_active_(service.context_.loop.now()),
      is_counted_(is_counted) {
  stream_->set_handler(*this);
  stream_->set_drain_notice(kOutputWindowBytes);
}

void Session::reject(std::string_view line) {
  phase_ = Phase::Ending;
  stream_->write(line);
  release_if_done();
}

void Session::write(std::string_view bytes) {
  service_.stats_->bytes_sent.add(bytes.size());
  stream_->write(bytes);
}

// --- Input ---------------------------------------------------------------------------------------

void Session::on_data(std::string_view bytes) {
  service_.stats_->bytes_received.add(bytes.size());
  if (phase_ != Phase::Open) {
    return;
  }
  last_active_ = service_.context_.loop.now();
  turn_requests_ = 0;
  is_parsing_ = true;
  carry_.feed(service_.context_.loop.blocks(), bytes,
              [this](std::string_view view) { return consume(view); });
  is_parsing_ = false;
  after_input();
}

std::size_t Session::consume(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size()) {
    if (phase_ != Phase::Open) {
      return bytes.size();
    }
    if (holds_ != 0) {
      break;
    }
    const std::size_t part = consume_one(bytes.substr(taken));
    if (part == 0) {
      break;
    }
    taken += part;
  }
  return taken;
}

/// Takes one request, or a piece of a body, from the front of `bytes`; 0 when it cannot now.
std::size_t Session::consume_one(std::string_view bytes) {
  if (skip_left_ != 0) [[unlikely]] {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(skip_left_, bytes.size()));
    skip_left_ -= part;
    return part;
  }
  if (body_call_ != nullptr) [[unlikely]] {
    return pass_body(bytes);
  }
  if (turn_requests_ >= service_.options_.requests_per_turn) {
    hold(kTurn);
    service_.context_.loop.defer(task_);
    return 0;
  }
  const auto parsed = parser_.parse(bytes);
  if (parsed.is_need_more()) {
    return 0;
  }
  if (parsed.is_failed()) {
    return on_parse_failure(parsed.error(), bytes);
  }
  ++turn_requests_;
  const memcache::Request& request = parsed.value();
  return dispatch(request) ? request.size_bytes : 0;
}

std::size_t Session::pass_body(std::string_view bytes) {
  const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(body_left_, bytes.size()));
  body_left_ -= part;
  Call& call = *body_call_;
  if (body_left_ == 0) {
    // Requests behind it wait for its reply: its body went another way than they would.
    body_call_ = nullptr;
    hold(kBarrier);
  }
  if (call.body_sink->on_body(call, bytes.substr(0, part), body_left_ == 0) == Flow::Pause &&
      body_call_ != nullptr) {
    hold(kBody);
  }
  return part;
}

std::size_t Session::on_parse_failure(const memcache::ParseFailure& failure,
                                      std::string_view bytes) {
  using memcache::RequestError;
  skip_left_ = failure.skip_bytes;
  if (failure.error == RequestError::None) {
    return failure.size_bytes;  // The rest of a line that was refused before.
  }
  service_.stats_->parse_errors.add(1);
  if (failure.error == RequestError::TooLarge && service_.forget_ && !failure.key.empty()) {
    service_.forget_(failure.key);
  }
  if (failure.error == RequestError::NotText && bytes.front() == kBinaryRequestMagic) {
    service_.context_.commands.on_binary_client(stream_->fd());
    answer_with(compose_binary_refusal(bytes), ReplyCode::ClientError);
  }
  const bool is_silent = failure.noreply && service_.options_.words == memcache::ErrorWords::Store;
  const std::string_view line = memcache::error_line(failure.error, service_.options_.words);
  if (!is_silent && !line.empty()) {
    answer_with(line, failure.error == RequestError::TooLarge ? ReplyCode::ServerError
                                                              : ReplyCode::ClientError);
  }
  if (memcache::closes_connection(failure.error)) {
    phase_ = Phase::Ending;
  }
  return failure.size_bytes;
}

Call& Session::make_call(const memcache::Request& request) {
  Call& call = service_.context_.calls.acquire();
  call.sink = this;
  call.started = service_.context_.loop.now();
  call.lane = lane_;
  call.command = request.command;
  call.reply_kind = memcache::reply_kind_of(request.command);
  if (request.noreply) {
    call.quiet = call::Quiet::All;
  } else if (request.quiet) {
    call.quiet =
        request.command == memcache::Command::Mg ? call::Quiet::Miss : call::Quiet::Success;
  }
  queue_.push_back(call);
  ++inflight_;
  service_.stats_->inflight.add(1);
  return call;
}

bool Session::dispatch(const memcache::Request& request) {
  if (!request.has_complete_value) [[unlikely]] {
    return dispatch_streamed(request);
  }
  service_.stats_->requests[static_cast<std::size_t>(request.command)].add(1);
  if (request.key_count == 0) [[unlikely]] {
    answer_locally(request);
    return true;
  }
  if (service_.context_.budget.is_exhausted()) [[unlikely]] {
    refuse_memory(request);
    return true;
  }
  Call& call = make_call(request);
  service_.target_->send(call, request);
  if (inflight_ >= service_.options_.inflight_max) {
    hold(kInflight);
  }
  return true;
}

bool Session::dispatch_streamed(const memcache::Request& request) {
  if (!queue_.empty()) {
    hold(kBarrier);
    return false;
  }
  service_.stats_->requests[static_cast<std::size_t>(request.command)].add(1);
  if (service_.context_.budget.is_exhausted()) {
    refuse_memory(request);
    return true;
  }
  Call& call = make_call(request);
  call.body_source = this;
  body_call_ = &call;
  body_left_ = request.value_bytes + 2;
  service_.target_->send(call, request);
  if (body_call_ != nullptr && body_call_->body_waits) {
    hold(kBody);
  }
  return true;
}

void Session::refuse_memory(const memcache::Request& request) {
  service_.stats_->memory_refusals.add(1);
  if (!request.has_complete_value) {
    skip_left_ = request.value_bytes + 2;
  }
  if (!request.noreply) {
    answer_with("SERVER_ERROR out of memory\r\n", ReplyCode::ServerError);
  }
}

void Session::answer_with(std::string_view line, ReplyCode code) {
  service_.stats_->replies[static_cast<std::size_t>(code)].add(1);
  if (queue_.empty()) {
    write(line);
    return;
  }
  Call& call = service_.context_.calls.acquire();
  call.stash.append(service_.context_.loop.blocks(), line);
  call.is_done = true;
  queue_.push_back(call);
  ++inflight_;
  service_.stats_->inflight.add(1);
}

void Session::resume_body(Call& /*call*/) {
  unhold(kBody);
}

void Session::discard_body(Call& call) {
  if (body_call_ == &call) {
    body_call_ = nullptr;
    skip_left_ = std::exchange(body_left_, 0);
    hold(kBarrier);
    unhold(kBody);
  }
}

// --- Replies -------------------------------------------------------------------------------------

Flow Session::on_reply(Call& call, const ReplyPart& part) {
  if (part.is_first) {
    call.is_hidden = call.quiet != call::Quiet::No && call::is_hidden(call.quiet, part.code);
  }
  if (part.is_last) {
    ServiceStats& stats = *service_.stats_;
    stats.replies[static_cast<std::size_t>(part.code)].add(1);
    stats.latencies.record(call.command, service_.context_.loop.now() - call.started);
  }
  return &call == queue_.front() ? on_front_reply(call, part) : on_early_reply(call, part);
}

Flow Session::on_front_reply(Call& call, const ReplyPart& part) {
  if (phase_ != Phase::Dead && !call.is_hidden) {
    write(part.bytes);
  }
  if (part.is_last) {
    const bool is_cut = part.is_broken && !call.is_hidden;
    pop_front();
    if (is_cut && phase_ != Phase::Dead) {
      abort();  // The client was promised more bytes than there are.
      return Flow::Continue;
    }
    pass_stashes();
    on_answered();
    return Flow::Continue;
  }
  if (phase_ != Phase::Dead && stream_->output_bytes() > kOutputWindowBytes) {
    pause(call);
    return Flow::Pause;
  }
  return Flow::Continue;
}

Flow Session::on_early_reply(Call& call, const ReplyPart& part) {
  base::BlockPool& blocks = service_.context_.loop.blocks();
  if (part.is_broken) {
    call.stash.clear();
    if (!call.is_hidden) {
      call.stash.append(blocks, kCutLine);
    }
  } else if (phase_ != Phase::Dead && !call.is_hidden) {
    call.stash.append(blocks, part.bytes);
  }
  if (part.is_last) {
    call.is_done = true;
  } else if (call.stash.size() > kStashWindowBytes) {
    call.is_paused = true;
    return Flow::Pause;
  }
  return Flow::Continue;
}

void Session::pop_front() {
  Call& call = *queue_.pop_front();
  --inflight_;
  service_.stats_->inflight.sub(1);
  if (&call == body_call_) {
    // Answered before its body had come whole: swallow the rest.
    body_call_ = nullptr;
    skip_left_ = std::exchange(body_left_, 0);
    unhold(kBody);
  }
  service_.context_.calls.release(call);
}

void Session::pass_stashes() {
  while (Call* call = queue_.front()) {
    if (!call->stash.empty()) {
      if (phase_ == Phase::Dead) {
        call->stash.clear();
      } else {
        service_.stats_->bytes_sent.add(call->stash.size());
        stream_->output().splice(stream_->blocks(), call->stash);
        stream_->mark_dirty();
      }
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
  if (call != nullptr && call->is_paused &&
      (phase_ == Phase::Dead || stream_->output_bytes() <= kOutputWindowBytes)) {
    call->is_paused = false;
    call->source->resume(*call);
  }
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
  call.is_paused = true;
  arm_stall_timer();
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
  unhold(kOutput);
  resume_front();
}

// --- Flow and end --------------------------------------------------------------------------------

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
  if (has_ended_ && (holds_ == 0 || carry_.empty())) {
    end();
    return;
  }
  if (stream_->output_bytes() > kOutputWindowBytes) {
    hold(kOutput);
  }
  update_reading();
}

void Session::update_reading() {
  const bool wants_input = holds_ == 0 || (holds_ == kTurn && carry_.empty());
  if (wants_input && stream_->is_reading_paused()) {
    stream_->resume_reading();
  } else if (!wants_input && !stream_->is_reading_paused()) {
    stream_->pause_reading();
  }
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
    Call& call = *std::exchange(body_call_, nullptr);
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
  if (holds_ == 0 || carry_.empty()) {
    end();
  }
}

void Session::on_closed(int /*error*/) {
  die();
}

void Session::abort() {
  die();
}

void Session::die() {
  if (phase_ == Phase::Dead) {
    return;
  }
  phase_ = Phase::Dead;
  stream_.reset();
  stall_timer_.reset();
  task_.cancel();
  if (!is_parsing_) {
    carry_.clear();
  }
  const bool was_parsing =
      std::exchange(is_parsing_, true);  // Keeps this alive while calls are answered below.
  if (body_call_ != nullptr) {
    Call& call = *std::exchange(body_call_, nullptr);
    body_left_ = 0;
    if (call.body_sink != nullptr) {
      call.body_sink->on_body_lost(call);
    }
  }
  discard_paused();
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
