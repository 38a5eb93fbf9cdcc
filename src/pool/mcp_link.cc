#include "pool/mcp_link.h"

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "pool/link.h"

namespace kvferry::pool {

using call::Call;
using call::ReplyOrigin;
using call::ReplyPart;
using memcache::ReplyCode;

namespace {

constexpr std::string_view kVersionRequest = "version\r\n";
/// Unsent bytes from which on_drained() tells that the backend takes them.
constexpr std::size_t kDrainNoticeBytes = std::size_t{256} * 1024;

McpFailure failure_of_errno(int error) {
  if (error == 0) {
    return McpFailure::Disconnected;
  }
  return error == EPIPE ? McpFailure::Writing : McpFailure::Reading;
}

/// In memcached's proxy the handshake belongs to the validation of a connection.
McpFailure failure_of_handshake(int error) {
  switch (error) {
    case EPROTO:
      return McpFailure::BadValidate;
    case ECONNRESET:
      return McpFailure::Disconnected;
    default:
      return McpFailure::Connecting;  // It did not come to a handshake.
  }
}

/// Whether the answer to "version" is another one than the version; otherwise it is none at all.
bool is_other_answer(std::string_view line) {
  const ReplyCode code = memcache::find_reply_code(line);
  return code != ReplyCode::None && code != ReplyCode::Other && !memcache::is_error(code);
}

}  // namespace

McpLink::McpLink(McpLinkHost& host, net::Loop& loop)
    : host_(host),
      loop_(loop),
      timer_(net::Timer::Callback::to<&McpLink::on_timer>(this)),
      start_task_(net::Task::Callback::to<&McpLink::connect>(this)),
      resume_task_(net::Task::Callback::to<&McpLink::continue_delivery>(this)) {
  start();
}

McpLink::~McpLink() {
  KVF_CHECK(calls_.empty());
}

void McpLink::arm(base::Micros delay) {
  loop_.timers().arm(timer_, loop_.now() + delay);
}

void McpLink::forward(Call& call, std::string_view bytes) {
  KVF_DCHECK(!is_bad());
  call.source = this;
  if (phase_ == Phase::Ready) {
    stream_->write(bytes);
    if (calls_.empty()) {
      quiet_since_ = loop_.now();
      if (!timer_.is_armed()) {
        arm(host_.options().read_timeout);
      }
    }
  } else {
    queued_.append(loop_.blocks(), bytes);
  }
  calls_.push_back(call);
  inflight_ += call.reply_count;
}

// ---- connecting

void McpLink::start() {
  // Never at once: a failure that needs no waiting would come from within the last one's handling.
  phase_ = Phase::Starting;
  loop_.defer(start_task_);
}

void McpLink::connect() {
  if (phase_ != Phase::Starting) {
    return;
  }
  host_.ask_address();
  if (host_.address().is_set()) {
    on_address();
  } else {
    arm(host_.options().connect_timeout);
  }
}

void McpLink::on_address() {
  if (phase_ != Phase::Starting || start_task_.is_queued()) {
    return;
  }
  if (!host_.address().is_set()) {
    fail(McpFailure::Connecting, {});
    return;
  }
  auto opened = loop_.connect(
      host_.address(), net::ConnectOptions{.keepalive = host_.options().tcp_keepalive}, *this);
  const net::TlsContextPtr& tls = host_.options().tls;
  if (!opened || (tls != nullptr && !(*opened)->start_tls(tls, host_.options().host))) {
    fail(McpFailure::Connecting, {});
    return;
  }
  stream_ = std::move(opened).value();
  stream_->set_drain_notice(kDrainNoticeBytes);
  phase_ = Phase::Connecting;
  arm(host_.options().connect_timeout);
}

void McpLink::on_connected() {
  KVF_CHECK(phase_ == Phase::Connecting);
  phase_ = Phase::Validating;
  stream_->write(kVersionRequest);
  arm(host_.options().read_timeout);
}

/// Looks at the answer to the question for the version, as far as it has come.
void McpLink::validate() {
  const std::string_view bytes = carry_.view();
  const std::size_t newline = bytes.find('\n');
  if (newline == std::string_view::npos) {
    if (bytes.size() > memcache::kReplyLineBytesMax) {
      fail(McpFailure::ReadValidate, bytes);
    } else {
      arm(host_.options().read_timeout);
    }
    return;
  }
  const std::string_view line = bytes.substr(0, newline + 1);
  if (memcache::find_reply_code(line) != ReplyCode::Version) {
    fail(is_other_answer(line) ? McpFailure::BadValidate : McpFailure::ReadValidate, bytes);
    return;
  }
  carry_.clear();  // Whatever stands behind the line belongs to nobody.
  on_ready();
}

void McpLink::on_ready() {
  const bool was_bad = health_.is_bad();
  phase_ = Phase::Ready;
  health_.on_validated(loop_.now());
  timer_.cancel();
  if (!calls_.empty()) {
    stream_->output().splice(loop_.blocks(), queued_);
    stream_->mark_dirty();
    quiet_since_ = loop_.now();
    arm(host_.options().read_timeout);
  }
  if (was_bad) {
    host_.on_link_well();
  }
}

// ---- failures

void McpLink::on_end() {
  on_closed(0);
}

void McpLink::on_closed(int error) {
  if (phase_ == Phase::Connecting) {
    fail(host_.options().tls == nullptr ? McpFailure::Connecting : failure_of_handshake(error), {});
  } else if (phase_ == Phase::Validating || phase_ == Phase::Ready) {
    fail(failure_of_errno(error), carry_.view());
  }
}

void McpLink::close_stream() {
  stream_.reset();
  timer_.cancel();
  start_task_.cancel();
  resume_task_.cancel();
  queued_.clear();
  is_in_reply_ = is_passed_on_ = is_paused_ = is_discarding_ = false;
  begun_ = 0;
  phase_ = Phase::Resting;
  if (!is_delivering_) {
    carry_.clear();
  }
}

McpLink::Broken McpLink::give_up(McpFailure failure, std::string_view unread) {
  Broken broken;
  broken.failure = failure;
  broken.unread = unread.substr(0, kMcpUnreadBytesMax);
  broken.is_silent = is_bad();
  broken.is_cut = is_passed_on_ && is_in_reply_;
  broken.is_begun = broken.is_cut || begun_ != 0;
  close_stream();
  broken.calls = std::exchange(calls_, CallFifo{});
  broken.depth = std::exchange(inflight_, 0);
  if (is_retired_) {
    return broken;
  }
  broken.verdict = health_.on_failure(host_.options(), failure, loop_.now());
  if (broken.verdict.is_bad) {
    arm(broken.verdict.pause);
  } else {
    start();
  }
  return broken;
}

void McpLink::report(Broken broken) {
  if (!broken.is_silent) {
    host_.on_link_failed(broken.failure, broken.depth, broken.unread);
  }
  if (broken.verdict.is_newly_bad) {
    host_.on_link_bad(broken.verdict.is_flapping, broken.verdict.pause);
  } else if (!broken.verdict.is_bad && !is_retired_) {
    host_.on_link_retried();
  }
  bool is_broken = broken.is_cut;
  bool is_begun = broken.is_begun;
  while (Call* call = broken.calls.pop_front()) {
    call->sink->on_reply(*call, ReplyPart{.bytes = is_broken ? std::string_view{} : kMcpFailureLine,
                                          .code = ReplyCode::ServerError,
                                          .is_first = !is_begun,
                                          .is_last = true,
                                          .is_broken = is_broken,
                                          .origin = ReplyOrigin::Failure});
    is_broken = is_begun = false;
  }
  if (is_retired_ && calls_.empty()) {
    host_.on_link_retired();
  }
}

void McpLink::retire() {
  is_retired_ = true;
  if (calls_.empty()) {
    close_stream();
  }
}

void McpLink::shut() {
  KVF_DCHECK(is_retired_);
  fail(McpFailure::Disconnected, {});
}

// ---- time

void McpLink::on_timer() {
  switch (phase_) {
    case Phase::Resting:
      start();
      return;
    case Phase::Starting:
    case Phase::Connecting:
      fail(McpFailure::ConnTimeout, {});
      return;
    case Phase::Validating:
      fail(McpFailure::ReadValidate, carry_.view());
      return;
    case Phase::Ready:
      on_read_timer();
      return;
  }
}

/// The timer is set once and looks at the time of the last read when it fires; setting it anew at
/// each read would cost every reply something.
void McpLink::on_read_timer() {
  if (is_paused_) {
    // The silence is our own: a client that does not read holds everyone up.
    Call& front = *calls_.front();
    arm(kStallNotice);
    if (front.next_at_target != nullptr) {
      front.sink->on_blocked(front);
    }
    return;
  }
  if (calls_.empty()) {
    return;  // Armed again by the next call.
  }
  const auto due_at = quiet_since_ + host_.options().read_timeout;
  if (loop_.now() >= due_at) {
    fail(McpFailure::Timeout, carry_.view());
  } else {
    loop_.timers().arm(timer_, due_at);
  }
}

void McpLink::on_drained() {
  quiet_since_ = loop_.now();  // It takes what it is sent: that is no silence.
}

}  // namespace kvferry::pool
