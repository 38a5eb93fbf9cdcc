#include "protocol/resp/reply_scanner.h"

#include <algorithm>

#include "protocol/resp/integer.h"

namespace kvferry::resp {

namespace {

constexpr std::string_view kLineTypes = "+-:_,#(";
constexpr std::string_view kBulkTypes = "$!=";
constexpr std::string_view kAggregateTypes = "*%~|>";
constexpr std::uint64_t kLineEndBytes = 2;

}  // namespace

ReplyScanner::Scan ReplyScanner::scan(std::string_view bytes) noexcept {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const Step step = take(bytes, at);
    if (step != Step::Go) {
      return {.state = step == Step::End ? State::End : State::Bad, .taken_bytes = at};
    }
  }
  return {.state = State::More, .taken_bytes = at};
}

ReplyScanner::Step ReplyScanner::take(std::string_view bytes, std::size_t& at) noexcept {
  switch (phase_) {
    case Phase::Type:
      return take_type(bytes[at++]);
    case Phase::Line:
      return take_line(bytes, at);
    case Phase::Number:
      return take_number(bytes[at++]);
    case Phase::Bulk:
      take_bulk(bytes, at);
      return Step::Go;
    case Phase::BulkEnd:
      return take_bulk_end(bytes[at++]);
  }
  return Step::Bad;
}

void ReplyScanner::take_bulk(std::string_view bytes, std::size_t& at) noexcept {
  const std::uint64_t size = std::min<std::uint64_t>(bulk_left_, bytes.size() - at);
  at += static_cast<std::size_t>(size);
  expect_bulk(bulk_left_ - size);
}

/// So many bytes of a bulk string, and its line end, are to come.
void ReplyScanner::expect_bulk(std::uint64_t bytes) noexcept {
  phase_ = bytes == 0 ? Phase::BulkEnd : Phase::Bulk;
  bulk_left_ = bytes == 0 ? kLineEndBytes : bytes;
}

ReplyScanner::Step ReplyScanner::take_bulk_end(char byte) noexcept {
  if (byte != (bulk_left_ == kLineEndBytes ? '\r' : '\n')) {
    return Step::Bad;
  }
  return --bulk_left_ == 0 ? on_element() : Step::Go;
}

ReplyScanner::Step ReplyScanner::take_type(char byte) noexcept {
  is_between_ = false;
  element_type_ = byte;
  if (depth_ == 0) {
    type_ = byte;
  } else if (byte == '>') {
    return Step::Bad;
  }
  if (kLineTypes.find(byte) != std::string_view::npos) {
    phase_ = Phase::Line;
    line_bytes_ = 0;
    last_byte_ = 0;
    return Step::Go;
  }
  if (kBulkTypes.find(byte) != std::string_view::npos ||
      kAggregateTypes.find(byte) != std::string_view::npos) {
    phase_ = Phase::Number;
    number_bytes_ = 0;
    return Step::Go;
  }
  return Step::Bad;
}

ReplyScanner::Step ReplyScanner::take_line(std::string_view bytes, std::size_t& at) noexcept {
  const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
  line_bytes_ += end - at;
  if (line_bytes_ > kReplyLineBytesMax) {
    return Step::Bad;
  }
  if (end > at) {
    last_byte_ = bytes[end - 1];
  }
  if (end == bytes.size()) {
    at = end;
    return Step::Go;
  }
  at = end + 1;
  return last_byte_ == '\r' ? on_element() : Step::Bad;
}

ReplyScanner::Step ReplyScanner::take_number(char byte) noexcept {
  if (byte == '\n') {
    return on_number();
  }
  if (number_bytes_ == number_.size()) {
    return Step::Bad;
  }
  number_[number_bytes_++] = byte;
  return Step::Go;
}

ReplyScanner::Step ReplyScanner::on_number() noexcept {
  std::string_view text(number_.data(), number_bytes_);
  if (!text.ends_with('\r')) {
    return Step::Bad;
  }
  text.remove_suffix(1);
  std::int64_t number = 0;
  if (!read_integer(text, number)) {
    return Step::Bad;
  }
  return kBulkTypes.find(element_type_) != std::string_view::npos ? on_bulk_length(number)
                                                                  : on_count(number);
}

ReplyScanner::Step ReplyScanner::on_bulk_length(std::int64_t length) noexcept {
  if (length < 0) {
    return length == -1 && element_type_ == '$' ? on_element() : Step::Bad;
  }
  expect_bulk(static_cast<std::uint64_t>(length));
  return Step::Go;
}

ReplyScanner::Step ReplyScanner::on_count(std::int64_t count) noexcept {
  const bool is_attribute = element_type_ == '|';
  if (count < 0) {
    return count == -1 && element_type_ == '*' ? on_element() : Step::Bad;
  }
  const std::int64_t factor = is_attribute || element_type_ == '%' ? 2 : 1;
  if (count > kElementsMax / factor) {
    return Step::Bad;
  }
  phase_ = Phase::Type;
  if (count == 0) {
    return is_attribute ? Step::Go : on_element();
  }
  if (depth_ == levels_.size()) {
    return Step::Bad;
  }
  levels_[depth_++] = Level{.left = count * factor, .is_attribute = is_attribute};
  return Step::Go;
}

ReplyScanner::Step ReplyScanner::on_element() noexcept {
  phase_ = Phase::Type;
  while (depth_ != 0) {
    Level& level = levels_[depth_ - 1];
    if (--level.left != 0) {
      return Step::Go;
    }
    --depth_;
    if (level.is_attribute) {
      return Step::Go;  // What it describes follows.
    }
  }
  is_between_ = true;
  return Step::End;
}

}  // namespace kvferry::resp
