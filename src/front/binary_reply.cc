#include "front/binary_reply.h"

#include <algorithm>

namespace kvferry::front {

using call::Call;
using call::Flow;
using call::ReplyPart;
using memcache_binary::MetaReply;
using memcache_binary::Opcode;
using memcache_binary::ResponseHead;
using memcache_binary::Status;

namespace {

/// Said in place of a reply that was cut off before any of it was passed on.
constexpr std::string_view kCutText = "kvferry: connection to backend lost";
/// A request that is longer than this is not kept room for.
constexpr std::size_t kRequestTextKept = 2 * call::kStreamBytesMin;

bool is_arith(Opcode plain) {
  return plain == Opcode::Increment || plain == Opcode::Decrement;
}

bool is_read(Opcode plain) {
  return plain == Opcode::Get || plain == Opcode::Gat || plain == Opcode::Touch;
}

}  // namespace

void compose_binary_text(std::string& out, Opcode opcode, std::uint32_t opaque, Status status,
                         std::string_view text) {
  out.assign(memcache_binary::view_of(memcache_binary::compose_header(ResponseHead{
      .opcode = opcode, .status = status, .opaque = opaque, .value_bytes = text.size()})));
  out += text;
}

void BinaryDesk::shrink_request_text() noexcept {
  if (request_text_.capacity() > kRequestTextKept) {
    std::string().swap(request_text_);
  }
}

// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): `key_` is filled as far as it is used
BinaryReply::BinaryReply(BinaryDesk& desk, call::ReplySink& session,
                         const memcache_binary::Request& packet) noexcept
    : desk_(desk),
      session_(session),
      opaque_(packet.opaque),
      opcode_(packet.opcode),
      order_(packet.order) {
  if (order_.returns_key) {
    key_bytes_ = static_cast<std::uint8_t>(packet.key.copy(key_.data(), key_.size()));
  }
}

Flow BinaryReply::on_reply(Call& call, const ReplyPart& part) {
  if (part.is_broken) {
    return pass_broken(call, part);
  }
  const bool is_opening = phase_ == Phase::Line;
  const std::string_view bytes = is_opening ? read_line(part) : part.bytes;
  switch (phase_) {
    case Phase::Value:
      return pass_value(call, part, bytes);
    case Phase::Number:
      take_digits(bytes);
      return part.is_last ? pass_number(call, part) : Flow::Continue;
    case Phase::Line:
    case Phase::End:
      break;
  }
  if (is_opening) {
    return pass(call, part, desk_.reply_text());
  }
  return part.is_last ? pass(call, part, {}) : Flow::Continue;
}

/// Hands `bytes` on as the next part; after the last one this object is gone.
Flow BinaryReply::pass(Call& call, const ReplyPart& like, std::string_view bytes) {
  ReplyPart next = like;
  next.bytes = bytes;
  next.is_first = !has_begun_;
  has_begun_ = true;
  call::ReplySink& session = session_;
  if (next.is_last) {
    desk_.close_reply(*this);
  }
  return session.on_reply(call, next);
}

/// Takes the line at the front of the first part, which is whole, and composes what is known by it.
/// Returns what follows it.
std::string_view BinaryReply::read_line(const ReplyPart& part) {
  const std::size_t newline = part.bytes.find('\n');
  std::string_view line = part.bytes.substr(0, newline);
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  const MetaReply reply = memcache_binary::read_meta_reply(order_.plain, part.code, line);
  compose_head(reply);
  return newline == std::string_view::npos ? std::string_view{} : part.bytes.substr(newline + 1);
}

void BinaryReply::compose_head(const MetaReply& reply) {
  std::string& text = desk_.reply_text();
  const bool is_ok = reply.status == Status::Ok;
  phase_ = Phase::End;
  if (is_ok && is_arith(order_.plain)) {
    phase_ = Phase::Number;
    value_left_ = reply.value_bytes;
    cas_ = reply.cas;
    return;
  }
  ResponseHead head{.opcode = opcode_, .status = reply.status, .opaque = opaque_, .cas = reply.cas};
  const bool is_keyed_miss = reply.status == Status::NotFound && order_.returns_key;
  const std::string_view key(key_.data(), key_bytes_);
  head.key_bytes = is_ok || is_keyed_miss ? key.size() : 0;
  head.extras_bytes = is_ok && is_read(order_.plain) ? memcache_binary::kFlagsBytes : 0;
  const std::string_view words = is_ok || is_keyed_miss ? std::string_view{} : reply.text;
  head.value_bytes = is_ok ? static_cast<std::size_t>(reply.value_bytes) : words.size();
  text.assign(memcache_binary::view_of(memcache_binary::compose_header(head)));
  if (head.extras_bytes != 0) {
    text += memcache_binary::view_of(memcache_binary::big_endian(reply.client_flags));
  }
  text += key.substr(0, head.key_bytes);
  text += words;
  if (is_ok && reply.value_bytes != 0) {
    phase_ = Phase::Value;
    value_left_ = reply.value_bytes;
  }
}

/// `bytes` are those of the part that belong to the value, or follow it. Of the first part, the
/// head of the response is still in the desk's text.
Flow BinaryReply::pass_value(Call& call, const ReplyPart& part, std::string_view bytes) {
  const std::string_view value =
      bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(value_left_, bytes.size())));
  value_left_ -= value.size();
  ReplyPart next = part;
  // A reply that ends before its value does cannot be made good.
  next.is_broken = part.is_last && value_left_ != 0;
  Flow flow = Flow::Continue;
  if (!has_begun_) {
    std::string& text = desk_.reply_text();
    if (part.is_last && !next.is_broken && value.size() <= call::kStreamBytesMin) {
      text += value;
      return pass(call, next, text);
    }
    ReplyPart head = part;
    head.is_last = false;
    flow = pass(call, head, text);
  }
  if (value.empty() && !part.is_last) {
    return flow;
  }
  return pass(call, next, value) == Flow::Pause ? Flow::Pause : flow;
}

void BinaryReply::take_digits(std::string_view bytes) {
  for (const char byte : bytes) {
    if (value_left_ == 0) {
      return;
    }
    --value_left_;
    if (byte >= '0' && byte <= '9') {
      number_ = number_ * 10 + static_cast<unsigned>(byte - '0');
    }
  }
}

Flow BinaryReply::pass_number(Call& call, const ReplyPart& part) {
  std::string& text = desk_.reply_text();
  const auto number = memcache_binary::big_endian(number_);
  text.assign(memcache_binary::view_of(memcache_binary::compose_header(ResponseHead{
      .opcode = opcode_, .opaque = opaque_, .cas = cas_, .value_bytes = number.size()})));
  text += memcache_binary::view_of(number);
  return pass(call, part, text);
}

Flow BinaryReply::pass_broken(Call& call, const ReplyPart& part) {
  std::string& text = desk_.reply_text();
  compose_binary_text(text, opcode_, opaque_, Status::InternalError, kCutText);
  return pass(call, part, text);
}

}  // namespace kvferry::front
