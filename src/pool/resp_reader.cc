#include "pool/resp_reader.h"

#include "call/redis_target.h"

namespace kvferry::pool {

namespace {

bool is_line(char type) noexcept {
  return std::string_view("+-:_,#(").find(type) != std::string_view::npos;
}

}  // namespace

memcache::ReplyCode RespReader::code_of(char first, char second) noexcept {
  return call::redis_reply_code(first, second);
}

/// A line is looked at as a whole by those who get it, so it stays in one piece.
bool RespReader::may_pass_on(std::size_t bytes) const noexcept {
  return is_begun_ || (bytes >= kReplyPartBytesMin && !is_line(scanner_.type()));
}

RespReader::Outcome RespReader::scan(std::string_view bytes) noexcept {
  const resp::ReplyScanner::Scan scan = scanner_.scan(bytes.substr(seen_bytes_));
  if (scan.state == resp::ReplyScanner::State::Bad) {
    return Outcome::failed(true);
  }
  const std::size_t size = seen_bytes_ + scan.taken_bytes;
  const bool is_last = scan.state == resp::ReplyScanner::State::End;
  if (!is_last && !may_pass_on(size)) {
    seen_bytes_ = size;
    return Outcome::need_more();
  }
  const bool is_first = !is_begun_;
  if (is_first) {
    // Behind an attribute stands the reply that it describes.
    const bool has_attribute = bytes[0] == '|';
    is_push_ = bytes[0] == '>';
    code_ = has_attribute ? code_of(scanner_.type(), 0) : code_of(bytes[0], bytes[1]);
  }
  seen_bytes_ = 0;
  is_begun_ = !is_last;
  return Outcome::done(RespChunk{.size_bytes = size,
                                 .code = code_,
                                 .is_first = is_first,
                                 .is_last = is_last,
                                 .is_push = is_push_});
}

}  // namespace kvferry::pool
