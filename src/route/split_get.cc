#include "route/split_get.h"

#include "protocol/memcache/token_walker.h"

namespace kvferry::route {

using call::Call;
using call::Flow;
using call::ReplyPart;
using memcache::ReplyCode;

namespace {

constexpr std::string_view kEndLine = "END\r\n";
/// In place of a reply that a backend has not sent to its end.
constexpr std::string_view kCutLine = "SERVER_ERROR backend failure\r\n";
constexpr std::string_view kKeyTooLongLine = "CLIENT_ERROR key too long\r\n";
constexpr std::string_view kMalformedLine = "CLIENT_ERROR malformed request\r\n";

}  // namespace

void SplitGet::start(call::CallPool& calls, Call& call, const memcache::Request& request,
                     call::Target& target) {
  const auto head_bytes = static_cast<std::size_t>(request.keys.data() - request.line.data());
  if (head_bytes > kHeadBytesMax) {
    call::answer(call, kMalformedLine, ReplyCode::ClientError);
    return;
  }
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): it owns itself until the last answer.
  auto* split = new SplitGet(calls, call);
  split->send(request, target);
}

void SplitGet::send(const memcache::Request& request, call::Target& target) {
  const std::string_view head =
      request.line.substr(0, static_cast<std::size_t>(request.keys.data() - request.line.data()));
  parts_.resize(request.key_count);
  left_ = request.key_count + 1;  // One more until all are sent.
  lines_.reserve(request.keys.size() + request.key_count * (head.size() + 2));
  memcache::KeyWalker keys(request.keys);
  for (std::uint32_t i = 0; i < request.key_count; ++i) {
    const std::string_view key = keys.next();
    if (key.size() > memcache::kKeyBytesMax) {
      parts_[i].bytes = kKeyTooLongLine;
      --left_;
      continue;
    }
    const std::size_t begin = lines_.size();
    lines_.append(head).append(key).append("\r\n");
    memcache::Request part = request;
    part.key_count = 1;
    part.line = std::string_view(lines_).substr(begin);
    part.key = part.line.substr(head.size(), key.size());
    part.keys = part.key;
    part.size_bytes = part.line.size();
    Call& call = calls_.acquire();
    call.sink = this;
    call.started = call_.started;
    call.lane = call_.lane;
    call.client_fd = call_.client_fd;
    call.command = call_.command;
    call.reply_kind = call_.reply_kind;
    call.owner_index = i;
    target.send(call, part);
  }
  if (--left_ == 0) {
    finish();
  }
}

Flow SplitGet::on_reply(Call& call, const ReplyPart& reply) {
  Part& part = parts_[call.owner_index];
  if (reply.is_broken) {
    part.bytes = kCutLine;
  } else {
    part.bytes.append(reply.bytes);
  }
  part.code = reply.code;
  part.origin = reply.origin;
  if (reply.is_last) {
    calls_.release(call);
    if (--left_ == 0) {
      finish();
    }
  }
  return Flow::Continue;
}

void SplitGet::finish() {
  std::size_t bytes = kEndLine.size();
  for (const Part& part : parts_) {
    bytes += part.bytes.size();
  }
  std::string whole;
  whole.reserve(bytes);
  for (const Part& part : parts_) {
    std::string_view text = part.bytes;
    if (text.ends_with(kEndLine)) {
      text.remove_suffix(kEndLine.size());
    }
    whole.append(text);
  }
  whole.append(kEndLine);
  const ReplyCode code = whole.size() == kEndLine.size() ? ReplyCode::End : ReplyCode::Value;
  Call& call = call_;
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): see start().
  delete this;
  call::answer(call, whole, code);
}

}  // namespace kvferry::route
