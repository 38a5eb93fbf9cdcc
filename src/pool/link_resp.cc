// Link: what it does for Redis servers: the greeting, and replies of their protocol.
#include <utility>

#include "base/check.h"
#include "pool/link.h"

namespace kvferry::pool {

using call::Call;

/// A connection has begun: its first bytes are those of the greeting, if there is one.
void Link::greet() {
  const Greeting& greeting = host_.greeting();
  if (greeting.empty()) {
    output_ = &stream_->output();
    return;
  }
  KVF_CHECK(resp_ != nullptr);
  resp_->steps = greeting.steps;
  resp_->step_count = greeting.step_count;
  resp_->step = 0;
  stream_->write(greeting.bytes);
}

void Link::take_greeting_reply(const RespChunk& chunk, std::string_view bytes) {
  if (chunk.is_first) {
    const std::string_view refusal = greeting_refusal(resp_->steps[resp_->step], bytes);
    if (!refusal.empty()) {
      fail(Failure{.kind = FailureKind::Handshake,
                   .error = 0,
                   .may_have_run = false,
                   .evidence = bytes,
                   .detail = refusal});
      return;
    }
  }
  if (chunk.is_last && ++resp_->step == resp_->step_count) {
    stream_->output().splice(stream_->blocks(), held_);
    stream_->mark_dirty();
    output_ = &stream_->output();
    on_up();
  }
}

std::size_t Link::deliver_resp(std::string_view bytes) {
  RespReader& reader = resp_->reader;
  std::size_t taken = 0;
  while (taken < bytes.size()) {
    if (is_cut_) {
      return bytes.size();  // Failed meanwhile: the rest belongs to nobody.
    }
    if (is_paused_) {
      break;
    }
    const std::string_view rest = bytes.substr(taken);
    Call* call = calls_.front();
    const bool is_for_nobody = call == nullptr && !is_greeting();
    if (is_for_nobody && reader.is_between() && rest.front() != '>') [[unlikely]] {
      // At its first byte already: the rest of it must not answer a call that comes meanwhile.
      fail_as_stray(rest);
      return bytes.size();
    }
    const RespReader::Outcome parsed = reader.next(rest);
    if (parsed.is_need_more()) {
      break;
    }
    if (parsed.is_failed()) {
      fail(Failure{.kind = FailureKind::BadReply,
                   .error = 0,
                   .may_have_run = phase_ == Phase::Up,
                   .evidence = rest});
      return bytes.size();
    }
    const RespChunk& chunk = parsed.value();
    taken += chunk.size_bytes;
    if (chunk.is_push) [[unlikely]] {
      continue;
    }
    if (is_greeting()) [[unlikely]] {
      take_greeting_reply(chunk, rest.substr(0, chunk.size_bytes));
      continue;
    }
    KVF_CHECK(call != nullptr);  // Without one only pushes begin.
    if (chunk.is_first) {
      is_in_reply_ = true;
      is_passed_on_ = false;
    }
    memcache::ReplyChunk handed{.size_bytes = chunk.size_bytes,
                                .code = chunk.code,
                                .is_first = chunk.is_first,
                                .is_last = chunk.is_last};
    const bool is_end_of_one = chunk.is_last && call->reply_count != 1;
    if (is_end_of_one) [[unlikely]] {
      // More replies to the same call follow; its sink sees by the count which one has ended.
      handed.is_last = false;
      --call->reply_count;
    }
    hand_over(*call, handed, rest.substr(0, chunk.size_bytes));
    if (is_end_of_one) [[unlikely]] {
      is_in_reply_ = false;
    }
  }
  return taken;
}

}  // namespace kvferry::pool
