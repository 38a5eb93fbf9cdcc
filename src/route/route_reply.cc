#include "route/route_reply.h"

#include <algorithm>

#include "base/check.h"
#include "protocol/memcache/reply_parser.h"
#include "protocol/memcache/request.h"
#include "protocol/memcache/token_walker.h"

namespace kvferry::route {
namespace {

using memcache::ReplyCode;

struct Meaning {
  AnswerType type;
  AnswerCode code;
};

/// What a reply with a known first word is. Words that answer no routed request are left to
/// classify_other_word().
constexpr Meaning meaning_of(ReplyCode code) {
  switch (code) {
    case ReplyCode::Value:
      return {AnswerType::Get, AnswerCode::Ok};
    case ReplyCode::End:
      return {AnswerType::End, AnswerCode::End};
    case ReplyCode::Stored:
      return {AnswerType::Generic, AnswerCode::Stored};
    case ReplyCode::NotStored:
      return {AnswerType::Generic, AnswerCode::NotStored};
    case ReplyCode::Exists:
      return {AnswerType::Generic, AnswerCode::Exists};
    case ReplyCode::NotFound:
      return {AnswerType::Generic, AnswerCode::NotFound};
    case ReplyCode::Deleted:
      return {AnswerType::Generic, AnswerCode::Deleted};
    case ReplyCode::Touched:
      return {AnswerType::Generic, AnswerCode::Touched};
    case ReplyCode::Ok:
      return {AnswerType::Generic, AnswerCode::Ok};
    case ReplyCode::Number:
      return {AnswerType::Number, AnswerCode::Ok};
    case ReplyCode::MetaHd:
    case ReplyCode::MetaVa:
    case ReplyCode::MetaMe:
      return {AnswerType::Meta, AnswerCode::Ok};
    case ReplyCode::MetaEn:
      return {AnswerType::Meta, AnswerCode::End};
    case ReplyCode::MetaNs:
      return {AnswerType::Meta, AnswerCode::NotStored};
    case ReplyCode::MetaEx:
      return {AnswerType::Meta, AnswerCode::Exists};
    case ReplyCode::MetaNf:
      return {AnswerType::Meta, AnswerCode::NotFound};
    case ReplyCode::MetaMn:
      return {AnswerType::Meta, AnswerCode::Nop};
    case ReplyCode::Error:
      return {AnswerType::Error, AnswerCode::Error};
    case ReplyCode::ClientError:
      return {AnswerType::Error, AnswerCode::ClientError};
    case ReplyCode::ServerError:
      return {AnswerType::Error, AnswerCode::ServerError};
    case ReplyCode::Version:
      return {AnswerType::Version, AnswerCode::ServerError};
    case ReplyCode::None:
    case ReplyCode::Other:
      break;
  }
  return {AnswerType::Bad, AnswerCode::ServerError};
}

constexpr bool is_ok_type(AnswerType type) {
  return type == AnswerType::Get || type == AnswerType::Meta || type == AnswerType::Generic ||
         type == AnswerType::End || type == AnswerType::Number;
}

std::string_view without_line_end(std::string_view line) {
  if (line.ends_with('\n')) {
    line.remove_suffix(1);
  }
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  return line;
}

bool is_two_letters(std::string_view word) {
  return word.size() == 2 && std::ranges::all_of(word, [](char byte) {
           return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
         });
}

constexpr std::string_view kLineEnd = "\r\n";

/// Whether `value` with its line end is what `line` announces.
bool fits(std::string_view line, ReplyCode code, std::string_view value) {
  if (code != ReplyCode::MetaVa) {
    return value.empty();
  }
  memcache::ValueHeader header;
  return memcache::read_value_header(line, header) &&
         value.size() == header.value_bytes + kLineEnd.size() && value.ends_with(kLineEnd);
}

}  // namespace

void RouteReply::take(const call::ReplyPart& part) {
  if (part.is_first) {
    reset();
  }
  KVF_DCHECK(!is_complete_);
  if (part.is_broken || part.origin == call::ReplyOrigin::Failure) {
    origin_ = call::ReplyOrigin::Failure;
    if (part.is_last) {
      fail();
    }
    return;
  }
  if (origin_ == call::ReplyOrigin::Failure) {
    return;
  }
  origin_ = part.origin;
  wire_code_ = part.code;
  if (part.is_first && part.is_last) {
    bytes_ = part.bytes;
  } else {
    own_bytes_.append(part.bytes);
    bytes_ = own_bytes_;
    is_own_ = true;
  }
  if (part.is_last) {
    is_complete_ = true;
    classify();
  }
}

bool RouteReply::assign(std::string_view line, std::string_view value) {
  const ReplyCode code = memcache::find_reply_code(line);
  const AnswerType type = meaning_of(code).type;
  const bool is_answer =
      (type != AnswerType::Bad && type != AnswerType::Version && type != AnswerType::Get) ||
      is_two_letters(memcache::token_at(without_line_end(line), 0));
  if (!is_answer || line.size() > memcache::kReplyLineBytesMax || !line.ends_with(kLineEnd) ||
      line.find('\n') != line.size() - 1 || !fits(line, code, value)) {
    return false;
  }
  reset();
  own_bytes_.assign(line);
  own_bytes_.append(value);
  bytes_ = own_bytes_;
  is_own_ = true;
  is_complete_ = true;
  wire_code_ = code;
  classify();
  return true;
}

void RouteReply::fail() {
  reset();
  is_complete_ = true;
  origin_ = call::ReplyOrigin::Failure;
  wire_code_ = ReplyCode::ServerError;
  code_ = AnswerCode::ServerError;
}

void RouteReply::keep() {
  if (is_own_ || bytes_.empty()) {
    return;
  }
  own_bytes_.assign(bytes_);
  bytes_ = own_bytes_;
  is_own_ = true;
}

void RouteReply::copy_from(const RouteReply& other) {
  KVF_DCHECK(this != &other);
  elapsed = other.elapsed;
  answerer = other.answerer;
  own_bytes_.assign(other.bytes_);
  bytes_ = own_bytes_;
  is_own_ = true;
  value_at_ = other.value_at_;
  value_bytes_ = other.value_bytes_;
  meta_at_ = other.meta_at_;
  meta_bytes_ = other.meta_bytes_;
  is_complete_ = other.is_complete_;
  is_closed_ = other.is_closed_;
  is_ok_ = other.is_ok_;
  has_value_ = other.has_value_;
  code_ = other.code_;
  type_ = other.type_;
  wire_code_ = other.wire_code_;
  origin_ = other.origin_;
}

void RouteReply::reset() {
  forget_parts();
  bytes_ = {};
  is_own_ = false;
  is_complete_ = false;
  is_closed_ = false;
  is_ok_ = false;
  code_ = AnswerCode::Unknown;
  type_ = AnswerType::None;
  wire_code_ = ReplyCode::None;
  origin_ = call::ReplyOrigin::Answerer;
  elapsed = {};
  answerer = nullptr;
  own_bytes_.clear();
  if (own_bytes_.capacity() > kReplyBytesKept) {
    std::string().swap(own_bytes_);
  }
}

void RouteReply::close() {
  forget_parts();
  bytes_ = {};
  is_own_ = false;
  is_closed_ = true;
  std::string().swap(own_bytes_);
}

void RouteReply::forget_parts() {
  has_value_ = false;
  value_at_ = 0;
  value_bytes_ = 0;
  meta_at_ = 0;
  meta_bytes_ = 0;
}

void RouteReply::classify() {
  if (origin_ == call::ReplyOrigin::Script) {
    return;
  }
  const std::string_view line = bytes_.substr(0, bytes_.find('\n'));
  const std::string_view text = without_line_end(line);
  if (wire_code_ == ReplyCode::None || wire_code_ == ReplyCode::Other) {
    wire_code_ = memcache::find_reply_code(text);
  }
  const Meaning meaning = meaning_of(wire_code_);
  type_ = meaning.type;
  code_ = meaning.code;
  is_ok_ = is_ok_type(type_);
  if (type_ == AnswerType::Bad) {
    classify_other_word(text);
  } else if (type_ == AnswerType::Meta || type_ == AnswerType::Get) {
    find_parts(text, std::min(line.size() + 1, bytes_.size()));
  }
}

void RouteReply::classify_other_word(std::string_view line_text) {
  const std::string_view word = memcache::token_at(line_text, 0);
  if (is_two_letters(word)) {
    type_ = AnswerType::Meta;
    code_ = AnswerCode::Unknown;
  } else if (word == "STAT") {
    type_ = AnswerType::Stat;
  }
}

void RouteReply::find_parts(std::string_view line_text, std::size_t line_bytes) {
  memcache::ValueHeader header;
  if (wire_code_ == ReplyCode::MetaVa || wire_code_ == ReplyCode::Value) {
    const std::size_t behind = bytes_.size() - line_bytes;
    has_value_ = memcache::read_value_header(line_text, header) && header.value_bytes <= behind;
    if (!has_value_) {
      type_ = AnswerType::Bad;
      code_ = AnswerCode::ServerError;
      is_ok_ = false;
      return;
    }
    value_at_ = line_bytes;
    value_bytes_ = static_cast<std::size_t>(header.value_bytes);
  }
  if (type_ != AnswerType::Meta) {
    return;
  }
  memcache::TokenWalker walker(line_text);
  walker.next_short();
  if (wire_code_ == ReplyCode::MetaVa) {
    walker.next_short();
  }
  std::string_view rest = walker.rest();
  while (rest.starts_with(' ')) {
    rest.remove_prefix(1);
  }
  meta_at_ = static_cast<std::uint32_t>(line_text.size() - rest.size());
  meta_bytes_ = static_cast<std::uint32_t>(rest.size());
}

bool RouteReply::is_complete() const {
  return is_complete_;
}

bool RouteReply::is_closed() const {
  return is_closed_;
}

call::ReplyOrigin RouteReply::origin() const {
  return origin_;
}

ReplyCode RouteReply::wire_code() const {
  return wire_code_;
}

bool RouteReply::is_ok() const {
  return is_ok_;
}

bool RouteReply::is_hit() const {
  return is_ok_ && code_ != AnswerCode::End;
}

AnswerCode RouteReply::code() const {
  return code_;
}

AnswerType RouteReply::type() const {
  return type_;
}

ResultClass RouteReply::natural_class() const {
  if (!is_complete_) {
    return ResultClass::None;
  }
  if (!is_ok_) {
    return ResultClass::Any;
  }
  return code_ == AnswerCode::End ? ResultClass::Ok : ResultClass::Good;
}

std::size_t RouteReply::value_bytes() const {
  return value_bytes_;
}

std::string_view RouteReply::value() const {
  return has_value_ ? bytes_.substr(value_at_, value_bytes_) : std::string_view();
}

std::string_view RouteReply::value_with_end() const {
  return has_value_ ? bytes_.substr(value_at_, value_bytes_ + kLineEnd.size()) : std::string_view();
}

bool RouteReply::has_value() const {
  return has_value_;
}

std::string_view RouteReply::meta_line() const {
  const std::string_view text = bytes_.substr(meta_at_, meta_bytes_);
  // Nothing but blanks is left when the only flags were blanked.
  return text.find_first_not_of(' ') == std::string_view::npos ? std::string_view() : text;
}

bool RouteReply::is_meta() const {
  return type_ == AnswerType::Meta;
}

std::string_view RouteReply::flags_text() const {
  // What ME says about an item are words, no flags.
  return wire_code_ == ReplyCode::MetaMe ? std::string_view() : meta_line();
}

std::size_t RouteReply::find_flag_token(char letter, std::string_view& token) const {
  memcache::TokenWalker walker(flags_text());
  for (token = walker.next_short(); !token.empty(); token = walker.next_short()) {
    if (token.front() == letter) {
      return static_cast<std::size_t>(token.data() - bytes_.data());
    }
  }
  return std::string_view::npos;
}

FlagToken RouteReply::find_flag(char letter) const {
  std::string_view token;
  if (find_flag_token(letter, token) == std::string_view::npos) {
    return {};
  }
  return {.is_found = true, .text = token.substr(1)};
}

bool RouteReply::blank_flag(char letter) {
  std::string_view token;
  const std::size_t at = find_flag_token(letter, token);
  if (at == std::string_view::npos) {
    return false;
  }
  const std::size_t size = token.size();
  keep();
  std::fill_n(own_bytes_.begin() + static_cast<std::ptrdiff_t>(at), size, ' ');
  return true;
}

std::string_view RouteReply::bytes() const {
  return bytes_;
}

}  // namespace kvferry::route
