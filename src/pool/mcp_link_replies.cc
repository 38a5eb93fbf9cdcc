// What a connection to a backend of a script reads, and whom it goes to; see mcp_link.cc for the
// rest.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/prefetch.h"
#include "pool/link.h"
#include "pool/mcp_link.h"

namespace kvferry::pool {

using call::Call;
using call::Flow;
using call::ReplyPart;
using memcache::AnyReplyError;
using memcache::ReplyCode;

namespace {

/// Of a sink and of a call behind the one that is answered.
constexpr std::size_t kSinkBytesFetched = 7 * base::kCacheLineBytes;
constexpr std::size_t kCallBytesFetched = 2 * base::kCacheLineBytes;

McpFailure failure_of(AnyReplyError error) {
  switch (error) {
    case AnyReplyError::Unhandled:
      return McpFailure::UnhandledReply;
    case AnyReplyError::MissingEnd:
      return McpFailure::MissingEnd;
    case AnyReplyError::TooLarge:
      return McpFailure::OutOfMemory;
    case AnyReplyError::None:
    case AnyReplyError::NoReply:
      break;
  }
  return McpFailure::Parsing;
}

/// Whether it answers a get.
bool is_of_items(ReplyCode code) {
  return code == ReplyCode::Value || code == ReplyCode::End;
}

/// Fetches what the calls behind `call` will need, while that is being answered: of each first the
/// call, then its sink, then what the sink knows.
void prefetch_behind(const Call& call) {
  const Call* const next = call.next_at_target;
  if (next == nullptr) {
    return;
  }
  next->sink->prefetch(*next);
  if (const Call* const second = next->next_at_target; second != nullptr) {
    base::prefetch(second->sink, kSinkBytesFetched);
    base::prefetch(second->next_at_target, kCallBytesFetched);
  }
}

}  // namespace

void McpLink::on_data(std::string_view bytes) {
  if (phase_ == Phase::Validating) {
    carry_.append(loop_.blocks(), bytes);
    validate();
    return;
  }
  quiet_since_ = loop_.now();
  if (calls_.empty()) {
    fail(McpFailure::ClosedSock, bytes);
    return;
  }
  answerable_ = inflight_;
  is_delivering_ = true;
  carry_.feed(loop_.blocks(), bytes, [this](std::string_view view) { return deliver(view); });
  after_delivery();
}

void McpLink::after_delivery() {
  is_delivering_ = false;
  if (phase_ != Phase::Ready) {
    carry_.clear();
  }
  if (is_retired_ && calls_.empty()) {
    close_stream();
    host_.on_link_retired();
  }
}

std::size_t McpLink::deliver(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && !is_paused_) {
    const std::string_view here = bytes.substr(taken);
    if (answerable_ == 0) {
      fail(McpFailure::TrailingData, here);
      return bytes.size();
    }
    Call& call = *calls_.front();
    if (!is_in_reply_) {
      parser_.start(call.is_wide);
      is_in_reply_ = true;
    }
    const auto parsed = parser_.next(here);
    if (parsed.is_need_more()) {
      break;
    }
    if (parsed.is_failed()) {
      fail(failure_of(parsed.error()), here.substr(parser_.failed_at()));
      return bytes.size();
    }
    memcache::ReplyChunk chunk = parsed.value();
    if (chunk.is_first && !host_.has_reply_room()) {
      fail(McpFailure::OutOfMemory, here);
      return bytes.size();
    }
    const std::uint32_t replies = call.reply_count == 1 ? 1 : gather_row(call, here, chunk);
    taken += chunk.size_bytes;
    if (!hand_over(call, chunk, replies, here.substr(0, chunk.size_bytes), bytes.substr(taken))) {
      return bytes.size();  // Failed meanwhile: the rest belongs to nobody.
    }
  }
  return taken;
}

/// Takes what other whole replies to `call` follow the chunk, when that is one, together with it:
/// they are passed on in one piece. How many they are in all.
std::uint32_t McpLink::gather_row(const Call& call, std::string_view bytes,
                                  memcache::ReplyChunk& chunk) {
  std::uint32_t replies = 1;
  if (!chunk.is_first || !chunk.is_last || !is_of_items(chunk.code)) {
    return replies;
  }
  const std::uint32_t due = std::min(call.reply_count - begun_, answerable_);
  while (replies < due) {
    parser_.start();
    const auto parsed = parser_.next(bytes.substr(chunk.size_bytes));
    if (!parsed.is_done() || !parsed.value().is_last || !is_of_items(parsed.value().code)) {
      break;  // Begun anew, and looked at by itself.
    }
    chunk.size_bytes += parsed.value().size_bytes;
    chunk.code = parsed.value().code == ReplyCode::Value ? ReplyCode::Value : chunk.code;
    ++replies;
  }
  return replies;
}

std::optional<McpFailure> McpLink::failure_behind(ReplyCode code, std::string_view rest) const {
  if (code == ReplyCode::Error || code == ReplyCode::ClientError) {
    return McpFailure::InvalidProtocol;
  }
  if (answerable_ == 0 && !rest.empty()) {
    return McpFailure::TrailingData;
  }
  return std::nullopt;
}

/// Passes a part on, with which `replies` of the call end if that is the last of one. False when
/// the connection has failed.
bool McpLink::hand_over(Call& call, const memcache::ReplyChunk& chunk, std::uint32_t replies,
                        std::string_view bytes, std::string_view rest) {
  prefetch_behind(call);
  const bool is_first = !std::exchange(is_passed_on_, true) && begun_ == 0;
  const bool is_last = chunk.is_last && begun_ + replies == call.reply_count;
  const ReplyPart part{
      .bytes = bytes, .code = chunk.code, .is_first = is_first, .is_last = is_last};
  if (!chunk.is_last) {
    return pass_on(call, part);
  }
  finish_replies(call, replies);
  const auto failure = failure_behind(chunk.code, rest);
  if (!failure && !is_last) {
    return pass_on(call, part);
  }
  if (!failure) {
    call.sink->on_reply(call, part);
    return phase_ == Phase::Ready;
  }
  // The reply is good, the connection is not. It is given up first, so that a call that the reply
  // brings about goes to the next one.
  Broken broken = give_up(*failure, rest);
  call.sink->on_reply(call, part);
  report(std::move(broken));
  return false;
}

/// Passes a part on that is not the call's last.
bool McpLink::pass_on(Call& call, const ReplyPart& part) {
  if (is_discarding_) {
    return true;
  }
  const Flow flow = call.sink->on_reply(call, part);
  if (flow == Flow::Pause && phase_ == Phase::Ready) {
    is_paused_ = true;
    stream_->pause_reading();
    arm(kStallNotice);
  }
  return phase_ == Phase::Ready;
}

/// The front call has had `replies` more, whole.
void McpLink::finish_replies(const Call& call, std::uint32_t replies) {
  begun_ += replies;
  inflight_ -= replies;
  answerable_ -= replies;
  is_in_reply_ = is_passed_on_ = false;
  if (begun_ == call.reply_count) {
    calls_.pop_front();
    begun_ = 0;
    is_discarding_ = false;
  }
}

void McpLink::resume(Call& call) {
  KVF_DCHECK(&call == calls_.front());
  static_cast<void>(call);
  // Later in this turn: the sink is in the middle of its own work.
  if (is_paused_) {
    loop_.defer(resume_task_);
  }
}

void McpLink::discard(Call& call) {
  is_discarding_ = true;
  resume(call);
}

void McpLink::continue_delivery() {
  if (!is_paused_) {
    return;
  }
  is_paused_ = false;
  quiet_since_ = loop_.now();
  arm(host_.options().read_timeout);
  is_delivering_ = true;
  carry_.feed(loop_.blocks(), {}, [this](std::string_view view) { return deliver(view); });
  if (phase_ == Phase::Ready && !is_paused_) {
    stream_->resume_reading();
  }
  after_delivery();
}

}  // namespace kvferry::pool
