#include "protocol/memcache/value_scanner.h"

#include <algorithm>

#include "base/check.h"
#include "protocol/memcache/reply_parser.h"
#include "protocol/memcache/request.h"

namespace kvferry::memcache {
namespace {

std::string_view take_front(std::string_view& bytes, std::uint64_t size_max) {
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(size_max, bytes.size()));
  const std::string_view front = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return front;
}

}  // namespace

void ValueScanner::feed(std::string_view chunk) noexcept {
  KVF_DCHECK(rest_.empty());
  rest_ = chunk;
}

ScanEvent ValueScanner::next() noexcept {
  ScanEvent event;
  if (rest_.empty()) {
    return event;
  }
  if (left_bytes_ != 0) {
    event.kind = ScanEvent::Kind::ItemRest;
    event.bytes = take_front(rest_, left_bytes_);
    left_bytes_ -= event.bytes.size();
    event.is_item_complete = left_bytes_ == 0;
    return event;
  }
  // A chunk never ends inside of a line, so a missing line end can only be our own mistake.
  const std::size_t newline = rest_.find('\n');
  KVF_DCHECK(newline != std::string_view::npos);
  const std::string_view line = rest_.substr(0, newline);
  const std::uint64_t line_bytes = line.size() + 1;
  const ReplyCode code = find_reply_code(line);
  ValueHeader header;
  if (code != ReplyCode::Value || !read_value_header(line, header)) {
    event.kind = code == ReplyCode::End ? ScanEvent::Kind::End : ScanEvent::Kind::Error;
    event.bytes = take_front(rest_, line_bytes);
    return event;
  }
  event.kind = ScanEvent::Kind::Item;
  event.key = header.key;
  event.total_bytes = line_bytes + header.value_bytes + kValueEndBytes;
  event.bytes = take_front(rest_, event.total_bytes);
  left_bytes_ = event.total_bytes - event.bytes.size();
  event.is_item_complete = left_bytes_ == 0;
  return event;
}

}  // namespace kvferry::memcache
