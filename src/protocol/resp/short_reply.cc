#include "protocol/resp/short_reply.h"

namespace kvferry::resp {

namespace {

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

}  // namespace

std::size_t short_reply_size(std::string_view bytes) noexcept {
  switch (bytes.front()) {
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

}  // namespace kvferry::resp
