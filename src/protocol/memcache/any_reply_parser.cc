#include "protocol/memcache/any_reply_parser.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "protocol/memcache/number.h"
#include "protocol/memcache/request.h"
#include "protocol/memcache/token_walker.h"

namespace kvferry::memcache {
namespace {

constexpr std::string_view kEndLine = "END\r\n";
constexpr std::string_view kStatWord = "STAT ";
/// Any length that a number can say: one that is too large is told from one that is none.
constexpr std::uint64_t kAnyLength = std::numeric_limits<std::uint64_t>::max() / 16;

std::string_view without_line_end(std::string_view line) {
  line.remove_suffix(1);
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  return line;
}

bool is_letter(char byte) {
  return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
}

bool is_two_letter_word(std::string_view text) {
  return text.size() >= 2 && is_letter(text[0]) && is_letter(text[1]) &&
         (text.size() == 2 || text[2] == ' ');
}

/// Reads "VALUE <key> <flags> <bytes> [<cas unique>]" or "VA <bytes> ...".
bool read_length(std::string_view text, bool is_meta, std::uint64_t& length) {
  TokenWalker words(text);
  words.next();
  if (is_meta) {
    return read_value_length(words.next_short(), kAnyLength, length);
  }
  std::uint64_t number = 0;
  if (words.next().empty() || !read_number(words.next_short(), number) ||
      !read_value_length(words.next_short(), kAnyLength, length)) {
    return false;
  }
  const std::string_view cas_unique = words.next();
  return cas_unique.empty() || read_number(cas_unique, number);
}

}  // namespace

void AnyReplyParser::start(bool is_wide) noexcept {
  *this = AnyReplyParser();
  phase_ = Phase::Line;
  is_wide_ = is_wide;
}

base::Parsed<ReplyChunk, AnyReplyError> AnyReplyParser::next(std::string_view bytes) noexcept {
  KVF_DCHECK(phase_ != Phase::Idle);
  std::size_t at = 0;
  bool goes_on = true;
  while (goes_on) {
    switch (phase_) {
      case Phase::Line:
        goes_on = take_line(bytes, at);
        break;
      case Phase::Value:
        goes_on = take_value(bytes, at);
        break;
      case Phase::End:
        goes_on = take_end(bytes, at);
        break;
      case Phase::Idle:
        return chunk(at, true);
    }
  }
  if (error_ != AnyReplyError::None) {
    failed_at_ = at;
    phase_ = Phase::Idle;
    return Outcome::failed(error_);
  }
  return at == 0 ? Outcome::need_more() : chunk(at, false);
}

bool AnyReplyParser::take_line(std::string_view bytes, std::size_t& at) noexcept {
  const std::string_view window = bytes.substr(at, kReplyLineBytesMax);
  const std::size_t newline = window.find('\n', searched_bytes_);
  if (newline == std::string_view::npos) {
    searched_bytes_ = window.size();
    if (window.size() == kReplyLineBytesMax) {
      error_ = AnyReplyError::NoReply;
    }
    return false;
  }
  const std::string_view line = window.substr(0, newline + 1);
  searched_bytes_ = 0;
  phase_ = code_ == ReplyCode::Value ? phase_between(line) : phase_after(line);
  if (error_ != AnyReplyError::None) {
    return false;
  }
  at += line.size();
  return true;
}

AnyReplyParser::Phase AnyReplyParser::phase_after(std::string_view line) noexcept {
  const std::string_view text = without_line_end(line);
  code_ = find_reply_code(line);
  switch (code_) {
    case ReplyCode::Value:
    case ReplyCode::MetaVa:
      return value_phase(text);
    case ReplyCode::Version:
      error_ = AnyReplyError::Unhandled;
      break;
    case ReplyCode::None:
    case ReplyCode::Other:
      if (text.starts_with(kStatWord)) {
        error_ = AnyReplyError::Unhandled;
      } else if (!is_two_letter_word(text)) {
        error_ = AnyReplyError::NoReply;
      }
      code_ = ReplyCode::Other;
      break;
    default:
      break;
  }
  return Phase::Idle;
}

/// After a value of a wide reply. An error line ends it too.
AnyReplyParser::Phase AnyReplyParser::phase_between(std::string_view line) noexcept {
  const ReplyCode code = find_reply_code(line);
  if (code == ReplyCode::Value) {
    return value_phase(without_line_end(line));
  }
  if (code != ReplyCode::End && !is_error(code)) {
    error_ = AnyReplyError::MissingEnd;
  }
  return Phase::Idle;
}

AnyReplyParser::Phase AnyReplyParser::value_phase(std::string_view line) noexcept {
  std::uint64_t length = 0;
  if (!read_length(line, code_ == ReplyCode::MetaVa, length)) {
    error_ = AnyReplyError::NoReply;
  } else if (length > kAnyReplyValueBytesMax) {
    error_ = AnyReplyError::TooLarge;
  }
  left_bytes_ = length + kValueEndBytes;
  return Phase::Value;
}

bool AnyReplyParser::take_value(std::string_view bytes, std::size_t& at) noexcept {
  const std::string_view here = bytes.substr(at);
  const std::uint64_t taken = std::min<std::uint64_t>(left_bytes_, here.size());
  const auto differs = [&](std::uint64_t from_end, char wanted) {
    return left_bytes_ >= from_end && left_bytes_ - from_end < taken &&
           here[static_cast<std::size_t>(left_bytes_ - from_end)] != wanted;
  };
  if (differs(2, '\r') || differs(1, '\n')) {
    // The length and the value disagree: passing it on would put the client out of step too.
    error_ = AnyReplyError::NoReply;
    return false;
  }
  left_bytes_ -= taken;
  at += static_cast<std::size_t>(taken);
  if (left_bytes_ != 0) {
    return false;
  }
  if (code_ != ReplyCode::Value) {
    phase_ = Phase::Idle;
  } else {
    phase_ = is_wide_ ? Phase::Line : Phase::End;
  }
  return true;
}

bool AnyReplyParser::take_end(std::string_view bytes, std::size_t& at) noexcept {
  const std::string_view here = bytes.substr(at, kEndLine.size());
  if (!kEndLine.starts_with(here)) {
    error_ = AnyReplyError::MissingEnd;
    return false;
  }
  if (here.size() != kEndLine.size()) {
    return false;  // Chunks do not end inside of a line.
  }
  at += here.size();
  phase_ = Phase::Idle;
  return true;
}

AnyReplyParser::Outcome AnyReplyParser::chunk(std::size_t size_bytes, bool is_last) noexcept {
  const bool is_first = is_first_chunk_;
  is_first_chunk_ = false;
  return Outcome::done(ReplyChunk{
      .size_bytes = size_bytes, .code = code_, .is_first = is_first, .is_last = is_last});
}

}  // namespace kvferry::memcache
