// Finds the end of a memcached reply by the reply's own first word, whatever was asked: the rules
// of memcached's built-in proxy, which passes on any answer that is one.
//
//   Idle --start--> Line --value follows--> Value --of VALUE--> End --"END\r\n"--> Idle
//                     \--one line--> Idle     \--of VA--> Idle
//                                              \--of VALUE, wide--> Line
//
// It differs from ReplyParser, which knows the kind of the request: one value at most, a word of
// two letters that nobody knows is an answer (ReplyCode::Other), STAT and VERSION are none. A wide
// reply, to a get of several keys, may hold any number of values.
//
// Source:    docs/lua.md, "Responses".
// Errors:    AnyReplyError. The backend connection is out of step; close it. Chunks of the same
// reply
//            may have been passed on before.
// Threads:   one parser a backend connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/parsed.h"
#include "protocol/memcache/reply.h"

namespace kvferry::memcache {

/// Larger values are not taken from a backend.
inline constexpr std::uint64_t kAnyReplyValueBytesMax = std::uint64_t{1} << 30;

enum class AnyReplyError : std::uint8_t {
  None,
  NoReply,     // No word that a server answers with, a bad number, a line that is too long.
  Unhandled,   // STAT or VERSION, which answer no request that is routed.
  MissingEnd,  // What follows a VALUE block is not "END\r\n", nor, in a wide reply, another.
  TooLarge,    // A value over kAnyReplyValueBytesMax.
};

class AnyReplyParser {
 public:
  /// Begins a reply; what was begun before is forgotten.
  void start(bool is_wide = false) noexcept;

  /// Takes the longest prefix of `bytes` that belongs to the reply, without a line that has not
  /// ended. `bytes` begins where the last chunk ended and may lie elsewhere at each call. After the
  /// last chunk, or a failure, call start() first.
  base::Parsed<ReplyChunk, AnyReplyError> next(std::string_view bytes) noexcept;

  /// After a failure: where in the bytes of that call lies what could not be read.
  std::size_t failed_at() const noexcept { return failed_at_; }

 private:
  using Outcome = base::Parsed<ReplyChunk, AnyReplyError>;
  enum class Phase : std::uint8_t { Idle, Line, Value, End };

  /// Whether the phase is over; otherwise bytes are missing, or error_ is set.
  bool take_line(std::string_view bytes, std::size_t& at) noexcept;
  bool take_value(std::string_view bytes, std::size_t& at) noexcept;
  bool take_end(std::string_view bytes, std::size_t& at) noexcept;
  Phase phase_after(std::string_view line) noexcept;
  Phase phase_between(std::string_view line) noexcept;
  Phase value_phase(std::string_view line) noexcept;
  Outcome chunk(std::size_t size_bytes, bool is_last) noexcept;

  std::uint64_t left_bytes_ = 0;    // Of the value in progress, its line end included.
  std::size_t searched_bytes_ = 0;  // Of the line in progress: these hold no line end.
  std::size_t failed_at_ = 0;
  Phase phase_ = Phase::Idle;
  ReplyCode code_ = ReplyCode::None;
  AnyReplyError error_ = AnyReplyError::None;
  bool is_first_chunk_ = true;
  bool is_wide_ = false;
};

}  // namespace kvferry::memcache
