#include "pool/resp_reader.h"

#include <algorithm>

#include "call/redis_target.h"

namespace kvferry::pool {

namespace {

/// Lines up to this are looked for without the scanner.
constexpr std::size_t kShortLineBytesMax = 256;
/// Digits of the length of bulk strings that are.
constexpr std::size_t kShortDigitsMax = 6;
constexpr std::string_view kNullBulk = "$-1\r\n";

std::size_t short_line_size(std::string_view bytes) noexcept {
  const std::size_t end = bytes.substr(0, kShortLineBytesMax).find('\n');
  return end == std::string_view::npos || bytes[end - 1] != '\r' ? 0 : end + 1;
}

std::size_t short_bulk_size(std::string_view bytes) noexcept {
  std::size_t length = 0;
  std::size_t at = 1;
  while (at < bytes.size() && at <= kShortDigitsMax && bytes[at] >= '0' && bytes[at] <= '9') {
    length = length * 10 + static_cast<std::size_t>(bytes[at] - '0');
    ++at;
  }
  if (at == 1) {
    return bytes.starts_with(kNullBulk) ? kNullBulk.size() : 0;
  }
  const bool has_zero_in_front = bytes[1] == '0' && at > 2;
  const std::size_t size = at + 2 + length + 2;
  if (has_zero_in_front || bytes.size() < size || bytes[at] != '\r' || bytes[at + 1] != '\n' ||
      bytes[size - 2] != '\r' || bytes[size - 1] != '\n') {
    return 0;
  }
  return size;
}

bool is_line(char type) noexcept {
  return std::string_view("+-:_,#(").find(type) != std::string_view::npos;
}

}  // namespace

std::size_t RespReader::short_reply_size(std::string_view bytes) noexcept {
  switch (bytes[0]) {
    case '$':
      return short_bulk_size(bytes);
    case '+':
    case '-':
    case ':':
      return short_line_size(bytes);
    default:
      return 0;
  }
}

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
