// RouteReply: one answer as a route holds it: received, read in parts, edited a little, passed on.
//
// Lifetime:  views it returns die with keep(), an edit, or reset().
// Source:    docs/lua.md, "Responses"; memcached protocol.txt.
// Threads:   values; one worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "call/call.h"
#include "protocol/memcache/reply.h"
#include "route/route_request.h"

namespace kvferry::route {

/// A buffer that has grown beyond this is given back by reset(); smaller ones are used again.
inline constexpr std::size_t kReplyBytesKept = std::size_t{4} * 1024;

/// How good an answer is, as waiting counts it. The numbers are part of the Lua API.
enum class ResultClass : std::uint8_t {
  None = 0,
  Good = 8,  // A definite answer.
  Ok = 16,   // A miss of a read.
  Any = 32,  // An error, a failure, a script's text.
};

/// Answer codes of the Lua API (docs/lua.md).
enum class AnswerCode : std::uint8_t {
  Unknown = 1,
  Stored = 8,
  Exists = 9,
  Deleted = 10,
  Touched = 11,
  Version = 12,
  NotFound = 13,
  NotStored = 14,
  Ok = 15,
  Nop = 16,
  End = 17,
  Error = 21,
  ClientError = 22,
  ServerError = 23,
};
/// Kinds of answers as log lines number them.
enum class AnswerType : std::uint8_t {
  None = 0,
  Get = 100,
  Meta = 101,
  Stat = 102,
  Generic = 104,
  End = 105,
  Version = 106,
  Number = 107,
  Error = 108,
  Bad = 109,
};

class RouteReply {
 public:
  RouteReply() = default;
  RouteReply(const RouteReply&) = delete;
  RouteReply& operator=(const RouteReply&) = delete;

  /// Takes the next part. A whole reply in one part is borrowed until keep(); others are copied.
  /// Failures leave no bytes.
  void take(const call::ReplyPart& part);
  /// Makes a reply from a line (with "\r\n") and a value (with its line end, or empty) that a
  /// script has composed. False, and nothing has changed, when the line is no answer to a routed
  /// request, when the value is not the one that the line announces, or for VALUE, which scripts
  /// cannot compose. Neither text may be a view of this reply.
  bool assign(std::string_view line, std::string_view value);
  /// Makes the reply that stands for "nobody answered": status error, code 23, no bytes. A call
  /// that failed before is one as well.
  void fail();
  void keep();
  /// Becomes another reply with a copy of its bytes.
  void copy_from(const RouteReply& other);
  void reset();
  /// Frees the bytes now; afterwards it is no usable result.
  void close();

  /// Nothing was taken, assigned or reported as failed, or not all of it yet.
  bool is_empty() const { return !is_complete_; }
  bool is_complete() const;
  bool is_closed() const;
  call::ReplyOrigin origin() const;
  memcache::ReplyCode wire_code() const;
  /// False for error lines, failures, texts of scripts and words that are no answer.
  bool is_ok() const;
  bool is_hit() const;
  AnswerCode code() const;
  AnswerType type() const;
  ResultClass natural_class() const;
  std::size_t value_bytes() const;
  /// The value without its line end.
  std::string_view value() const;
  std::string_view value_with_end() const;
  bool has_value() const;
  /// Meta: what follows the code, and the length of VA; empty when there is nothing, and for other
  /// answers.
  std::string_view meta_line() const;
  bool is_meta() const;
  FlagToken find_flag(char letter) const;
  /// Meta: all flags, as they stand on the line; empty when there are none.
  std::string_view flags_text() const;
  /// Overwrites flag and text with blanks; false when absent or not meta.
  bool blank_flag(char letter);
  /// All bytes; empty after a failure.
  std::string_view bytes() const;

  /// From dispatch to arrival; 0 for the local cache.
  base::Micros elapsed{};
  /// For log lines; null: nobody with a name there.
  const call::Answerer* answerer = nullptr;

 private:
  void classify();
  void classify_other_word(std::string_view line_text);
  /// Finds what a meta line says, and the value behind a VALUE or VA line.
  void find_parts(std::string_view line_text, std::size_t line_bytes);
  void forget_parts();
  /// Where flag `letter` begins in the bytes; npos when there is none.
  std::size_t find_flag_token(char letter, std::string_view& token) const;

  std::string_view bytes_;  // Of own_bytes_ when is_own_.
  std::size_t value_at_ = 0;
  std::size_t value_bytes_ = 0;
  std::uint32_t meta_at_ = 0;  // What meta_line() shows lies from here on in the bytes.
  std::uint32_t meta_bytes_ = 0;
  bool is_own_ = false;
  bool is_complete_ = false;
  bool is_closed_ = false;
  bool is_ok_ = false;
  bool has_value_ = false;
  AnswerCode code_ = AnswerCode::Unknown;
  AnswerType type_ = AnswerType::None;
  memcache::ReplyCode wire_code_ = memcache::ReplyCode::None;
  call::ReplyOrigin origin_ = call::ReplyOrigin::Answerer;
  std::string own_bytes_;
};

}  // namespace kvferry::route
