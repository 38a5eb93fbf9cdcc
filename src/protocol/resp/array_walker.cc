#include "protocol/resp/array_walker.h"

#include "protocol/resp/integer.h"
#include "protocol/resp/short_reply.h"

namespace kvferry::resp {

ArrayWalker::Step ArrayWalker::next(std::string_view bytes) noexcept {
  if (!is_counted_) {
    return take_head(bytes);
  }
  if (left_ == 0) {
    return {.found = Found::Bad, .taken_bytes = 0};
  }
  std::size_t size = scanner_.is_between() ? short_reply_size(bytes) : 0;
  if (size == 0) {
    const ReplyScanner::Scan scan = scanner_.scan(bytes);
    if (scan.state == ReplyScanner::State::Bad || scanner_.type() == '>') {
      return {.found = Found::Bad, .taken_bytes = scan.taken_bytes};
    }
    if (scan.state == ReplyScanner::State::More) {
      return {.found = Found::More, .taken_bytes = scan.taken_bytes};
    }
    size = scan.taken_bytes;
  }
  --left_;
  return {.found = Found::Element, .taken_bytes = size};
}

ArrayWalker::Step ArrayWalker::take_head(std::string_view bytes) noexcept {
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (head_bytes_ == head_.size()) {
      return {.found = Found::Bad, .taken_bytes = at};
    }
    head_[head_bytes_++] = bytes[at];
    if (bytes[at] == '\n') {
      const bool is_good = read_head({head_.data(), head_bytes_});
      return {.found = is_good ? Found::Head : Found::Bad, .taken_bytes = at + 1};
    }
  }
  return {.found = Found::More, .taken_bytes = bytes.size()};
}

bool ArrayWalker::read_head(std::string_view line) noexcept {
  is_counted_ = true;
  if (line == "_\r\n") {
    count_ = -1;
    return true;
  }
  if (!line.ends_with("\r\n") || (line.front() != '*' && line.front() != '~') ||
      !read_integer(line.substr(1, line.size() - 3), count_) || count_ < -1 ||
      count_ > kElementsMax) {
    return false;
  }
  left_ = count_ < 0 ? 0 : count_;
  return true;
}

}  // namespace kvferry::resp
