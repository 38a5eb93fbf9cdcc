#include "protocol/resp/request_parser.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "protocol/resp/integer.h"
#include "protocol/resp/words.h"

namespace kvferry::resp {

namespace {

constexpr std::size_t kLineEndBytes = 2;
/// redis-server takes a larger count for none.
constexpr std::int64_t kCountMax = std::numeric_limits<std::int32_t>::max();

/// How a browser's request begins that some page has made it send here.
bool is_of_browser(std::string_view word) {
  return is_word(word, "post") || is_word(word, "host:");
}

}  // namespace

RequestParser::Outcome RequestParser::parse(std::string_view bytes) {
  if (phase_ == Phase::Begin) {
    if (bytes.empty()) {
      return Outcome::need_more();
    }
    if (inline_bytes_.capacity() > kInlineBytesKept) [[unlikely]] {
      std::string().swap(inline_bytes_);
    }
    if (bytes.front() != '*') {
      return parse_inline(bytes);
    }
    const Step step = read_count(bytes);
    if (step != Step::Go || arg_count_ == 0) {
      return outcome_of(step, bytes);
    }
    phase_ = Phase::Elements;
  }
  return outcome_of(read_elements(bytes), bytes);
}

RequestParser::Outcome RequestParser::outcome_of(Step step, std::string_view bytes) {
  switch (step) {
    case Step::NeedMore:
      return Outcome::need_more();
    case Step::Failed:
      return Outcome::failed(failure_);
    case Step::Go:
    case Step::Stream:
      break;
  }
  return Outcome::done(finish(bytes));
}

RequestParser::Step RequestParser::find_line(std::string_view bytes, RequestError too_long,
                                             std::string_view& line) {
  const std::size_t from = std::max(at_, searched_bytes_);
  const std::size_t end = bytes.substr(0, at_ + kLineBytesMax + 1).find('\n', from);
  if (end == std::string_view::npos) {
    scanned_bytes_ += bytes.size() - from;
    searched_bytes_ = bytes.size();
    return bytes.size() - at_ > kLineBytesMax ? fail(too_long) : Step::NeedMore;
  }
  scanned_bytes_ += end + 1 - from;
  line = bytes.substr(at_, end - at_);
  at_ = end + 1;
  return Step::Go;
}

RequestParser::Step RequestParser::read_count(std::string_view bytes) {
  std::string_view line;
  const Step step = find_line(bytes, RequestError::CountLineTooLong, line);
  if (step != Step::Go) {
    return step;
  }
  std::int64_t count = 0;
  if (!line.ends_with('\r') || !read_integer(line.substr(1, line.size() - kLineEndBytes), count) ||
      count > std::min<std::int64_t>(limits_.args_max, kCountMax)) {
    return fail(RequestError::BadCount);
  }
  if (!limits_.is_client_known && count > kArgsMaxUnknown) {
    return fail(RequestError::UnknownClientCount);
  }
  arg_count_ = static_cast<std::uint32_t>(std::max<std::int64_t>(count, 0));
  return Step::Go;
}

RequestParser::Step RequestParser::read_elements(std::string_view bytes) {
  while (seen_count_ + places_.size() < arg_count_) {
    if (!has_length_) {
      const Step step = read_length(bytes);
      if (step != Step::Go) {
        return step;
      }
    }
    const Step step = read_element(bytes);
    if (step != Step::Go) {
      return step;
    }
  }
  return Step::Go;
}

RequestParser::Step RequestParser::read_length(std::string_view bytes) {
  if (at_ == bytes.size()) {
    return Step::NeedMore;
  }
  if (bytes[at_] != '$') {
    return fail(RequestError::NoBulk, bytes[at_]);
  }
  std::string_view line;
  const Step step = find_line(bytes, RequestError::LengthLineTooLong, line);
  if (step != Step::Go) {
    return step;
  }
  std::int64_t length = 0;
  if (!line.ends_with('\r') || !read_integer(line.substr(1, line.size() - kLineEndBytes), length) ||
      length < 0 || static_cast<std::uint64_t>(length) > limits_.bulk_bytes_max) {
    return fail(RequestError::BadLength);
  }
  bulk_bytes_ = static_cast<std::uint64_t>(length);
  if (!limits_.is_client_known && bulk_bytes_ > kBulkBytesMaxUnknown) {
    return fail(RequestError::UnknownClientLength);
  }
  if (!is_gathering_ && bulk_bytes_ >= std::max<std::uint64_t>(limits_.stream_bytes_min, 1)) {
    streamed_bytes_ = bulk_bytes_;
    return Step::Stream;
  }
  has_length_ = true;
  return Step::Go;
}

RequestParser::Step RequestParser::read_element(std::string_view bytes) {
  const auto size = static_cast<std::size_t>(bulk_bytes_);
  if (bytes.size() - at_ < size + kLineEndBytes) {
    return Step::NeedMore;
  }
  const std::string_view rest = bytes.substr(at_);
  if (rest[size] != '\r' || rest[size + 1] != '\n') {
    return fail(RequestError::NoLineEnd);
  }
  places_.push_back({.begin = at_, .size = size});
  at_ += size + kLineEndBytes;
  has_length_ = false;
  return Step::Go;
}

RequestParser::Outcome RequestParser::parse_inline(std::string_view bytes) {
  std::string_view line;
  const Step step = find_line(bytes, RequestError::InlineTooLong, line);
  if (step != Step::Go) {
    return outcome_of(step, bytes);
  }
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  inline_bytes_.clear();
  if (!read_inline_words(line, inline_bytes_, places_)) {
    return outcome_of(fail(RequestError::UnbalancedQuotes), bytes);
  }
  arg_count_ = static_cast<std::uint32_t>(places_.size());
  RequestRun run = finish(inline_bytes_);
  run.is_inline = true;
  if (!run.args.empty() && is_of_browser(run.args.front())) {
    return outcome_of(fail(RequestError::Browser), bytes);
  }
  return Outcome::done(run);
}

RequestRun RequestParser::finish(std::string_view bytes) {
  if (args_.capacity() > kArgsKept) [[unlikely]] {
    std::vector<std::string_view>().swap(args_);
  }
  args_.clear();
  for (const WordPlace& place : places_) {
    args_.push_back(bytes.substr(place.begin, place.size));
  }
  const RequestRun run{.args = args_,
                       .first_index = seen_count_,
                       .arg_count = arg_count_,
                       .streamed_bytes = std::exchange(streamed_bytes_, 0),
                       .size_bytes = at_};
  seen_count_ += static_cast<std::uint32_t>(places_.size()) + (run.streamed_bytes != 0 ? 1 : 0);
  places_.clear();
  if (places_.capacity() > kArgsKept) [[unlikely]] {
    std::vector<WordPlace>().swap(places_);
  }
  at_ = 0;
  searched_bytes_ = 0;
  if (seen_count_ == arg_count_) {
    phase_ = Phase::Begin;
    seen_count_ = 0;
    arg_count_ = 0;
    is_gathering_ = false;
  }
  return run;
}

void RequestParser::rewind() noexcept {
  phase_ = Phase::Begin;
  has_length_ = false;
  is_gathering_ = false;
  arg_count_ = 0;
  seen_count_ = 0;
  at_ = 0;
  searched_bytes_ = 0;
  places_.clear();
}

void RequestParser::gather() noexcept {
  rewind();
  is_gathering_ = true;
}

}  // namespace kvferry::resp
