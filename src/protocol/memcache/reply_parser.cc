#include "protocol/memcache/reply_parser.h"

#include <algorithm>

#include "base/check.h"
#include "protocol/memcache/number.h"
#include "protocol/memcache/request.h"
#include "protocol/memcache/token_walker.h"

namespace kvferry::memcache {
namespace {

constexpr std::string_view kValueWord = "VALUE ";
constexpr std::string_view kMetaValueWord = "VA ";

std::string_view without_line_end(std::string_view line) {
  if (line.ends_with('\n')) {
    line.remove_suffix(1);
  }
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  return line;
}

/// Replies of one line that answer classic commands. Words that are not known are let through, as
/// servers invent new ones; words of the other kinds mean that replies have shifted.
bool fits_line_kind(ReplyCode code) {
  return code != ReplyCode::None && code != ReplyCode::Value && code != ReplyCode::End &&
         !is_meta(code);
}

}  // namespace

bool read_value_header(std::string_view line, ValueHeader& header) noexcept {
  line = without_line_end(line);
  std::string_view length;
  if (line.starts_with(kValueWord)) {
    TokenWalker words(line.substr(kValueWord.size()));
    header.key = words.next();
    words.next_short();  // Client flags.
    length = words.next_short();
    if (header.key.empty()) {
      return false;
    }
  } else if (line.starts_with(kMetaValueWord)) {
    TokenWalker words(line.substr(kMetaValueWord.size()));
    length = words.next_short();
  }
  return read_value_length(length, kValueBytesMax, header.value_bytes);
}

void ReplyParser::start(ReplyKind kind) noexcept {
  phase_ = Phase::Line;
  kind_ = kind;
  code_ = ReplyCode::None;
  error_ = ReplyError::None;
  left_bytes_ = 0;
  searched_bytes_ = 0;
  is_first_chunk_ = true;
}

base::Parsed<ReplyChunk, ReplyError> ReplyParser::next(std::string_view bytes) noexcept {
  KVF_DCHECK(phase_ != Phase::Idle);
  std::size_t at = 0;
  while (true) {
    if (phase_ == Phase::Value) {
      if (!take_value(bytes, at)) {
        return failed();
      }
      if (left_bytes_ != 0) {
        return at == 0 ? Outcome::need_more() : chunk(at, false);
      }
      phase_ = Phase::Line;
      if (kind_ == ReplyKind::Meta) {
        return chunk(at, true);
      }
    }
    const std::string_view line = take_line(bytes.substr(at));
    if (error_ != ReplyError::None) {
      return failed();
    }
    if (line.empty()) {
      return at == 0 ? Outcome::need_more() : chunk(at, false);
    }
    at += line.size();
    switch (on_line(line)) {
      case Verdict::Last:
        return chunk(at, true);
      case Verdict::ValueFollows:
        phase_ = Phase::Value;
        break;
      case Verdict::Failed:
        return failed();
    }
  }
}

/// The line at the front of `bytes`, its line end included; empty when it is not complete.
std::string_view ReplyParser::take_line(std::string_view bytes) noexcept {
  const std::string_view window = bytes.substr(0, kReplyLineBytesMax);
  const std::size_t newline = window.find('\n', searched_bytes_);
  if (newline == std::string_view::npos) {
    scanned_bytes_ += window.size() - searched_bytes_;
    searched_bytes_ = window.size();
    if (window.size() == kReplyLineBytesMax) {
      error_ = ReplyError::LineTooLong;
    }
    return {};
  }
  scanned_bytes_ += newline + 1 - searched_bytes_;
  searched_bytes_ = 0;
  return window.substr(0, newline + 1);
}

ReplyParser::Verdict ReplyParser::on_line(std::string_view line) noexcept {
  const ReplyCode code = find_reply_code(line);
  if (code_ == ReplyCode::None) {
    code_ = code;
  }
  if (kind_ == ReplyKind::Retrieval) {
    return on_retrieval_line(line, code);
  }
  if (kind_ == ReplyKind::Line) {
    return fits_line_kind(code) ? Verdict::Last : fail(ReplyError::Unexpected);
  }
  if (code == ReplyCode::MetaVa) {
    return on_retrieval_line(line, code);
  }
  return is_meta(code) || is_error(code) ? Verdict::Last : fail(ReplyError::Unexpected);
}

ReplyParser::Verdict ReplyParser::on_retrieval_line(std::string_view line,
                                                    ReplyCode code) noexcept {
  if (code == ReplyCode::End || is_error(code)) {
    return Verdict::Last;
  }
  const ReplyCode expected = kind_ == ReplyKind::Retrieval ? ReplyCode::Value : ReplyCode::MetaVa;
  if (code != expected) {
    return fail(ReplyError::Unexpected);
  }
  ValueHeader header;
  if (!read_value_header(line, header)) {
    return fail(ReplyError::BadLength);
  }
  left_bytes_ = header.value_bytes + kValueEndBytes;
  return Verdict::ValueFollows;
}

ReplyParser::Verdict ReplyParser::fail(ReplyError error) noexcept {
  error_ = error;
  return Verdict::Failed;
}

/// Moves `at` over the bytes of the value in progress. False when its line end is not "\r\n".
bool ReplyParser::take_value(std::string_view bytes, std::size_t& at) noexcept {
  const std::string_view here = bytes.substr(at);
  const std::uint64_t taken = std::min<std::uint64_t>(left_bytes_, here.size());
  const auto differs = [&](std::uint64_t from_end, char wanted) {
    return left_bytes_ >= from_end && left_bytes_ - from_end < taken &&
           here[static_cast<std::size_t>(left_bytes_ - from_end)] != wanted;
  };
  if (differs(2, '\r') || differs(1, '\n')) {
    error_ = ReplyError::BadValueEnd;
    return false;
  }
  left_bytes_ -= taken;
  at += static_cast<std::size_t>(taken);
  return true;
}

ReplyParser::Outcome ReplyParser::chunk(std::size_t size_bytes, bool is_last) noexcept {
  const bool is_first = is_first_chunk_;
  is_first_chunk_ = false;
  if (is_last) {
    phase_ = Phase::Idle;
  }
  return Outcome::done(ReplyChunk{
      .size_bytes = size_bytes, .code = code_, .is_first = is_first, .is_last = is_last});
}

ReplyParser::Outcome ReplyParser::failed() noexcept {
  phase_ = Phase::Idle;
  return Outcome::failed(error_);
}

}  // namespace kvferry::memcache
