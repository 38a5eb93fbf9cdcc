// Finds the end of a memcached reply in bytes that arrive in any pieces, and passes on early what
// already belongs to it, so that a large value is never held as a whole.
//
//   Idle --start--> Line --line with a value--> Value --its line end--> Line (Retrieval) or Idle
//                     \--last line--> Idle
//
// Chunks end at line ends or inside of a value; a line that is not complete stays with the caller.
//
// Errors:    ReplyError. The backend connection is out of step; close it. Chunks of the same reply
//            may have been passed on before.
// Threads:   one parser a backend connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/parsed.h"
#include "protocol/memcache/reply.h"

namespace kvferry::memcache {

class ReplyParser {
 public:
  /// Begins a reply of shape `kind`; what was begun before is forgotten.
  void start(ReplyKind kind) noexcept;

  /// Takes the longest prefix of `bytes` that belongs to the reply. `bytes` begins where the last
  /// chunk ended and may lie elsewhere at each call. After the last chunk, or a failure, call
  /// start() first.
  base::Parsed<ReplyChunk, ReplyError> next(std::string_view bytes) noexcept;

  /// Bytes that the value in progress still needs, its line end included; 0 outside of values.
  std::uint64_t value_bytes_left() const noexcept { return left_bytes_; }

  /// How many bytes of lines were looked at since the parser was made: a measure of work for tests.
  std::uint64_t scanned_bytes_for_test() const noexcept { return scanned_bytes_; }

 private:
  using Outcome = base::Parsed<ReplyChunk, ReplyError>;
  enum class Phase : std::uint8_t { Idle, Line, Value };
  enum class Verdict : std::uint8_t { Last, ValueFollows, Failed };

  std::string_view take_line(std::string_view bytes) noexcept;
  Verdict on_line(std::string_view line) noexcept;
  Verdict on_retrieval_line(std::string_view line, ReplyCode code) noexcept;
  Verdict fail(ReplyError error) noexcept;
  bool take_value(std::string_view bytes, std::size_t& at) noexcept;
  Outcome chunk(std::size_t size_bytes, bool is_last) noexcept;
  Outcome failed() noexcept;

  std::uint64_t left_bytes_ = 0;    // Of the value in progress, its line end included.
  std::size_t searched_bytes_ = 0;  // Of the line in progress: these hold no line end.
  std::uint64_t scanned_bytes_ = 0;
  Phase phase_ = Phase::Idle;
  ReplyKind kind_ = ReplyKind::Line;
  ReplyCode code_ = ReplyCode::None;
  ReplyError error_ = ReplyError::None;
  bool is_first_chunk_ = true;
};

/// Reads the header line of a value: "VALUE <key> <flags> <bytes> ..." or "VA <bytes> ...".
struct ValueHeader {
  std::string_view key;  // Empty for VA.
  std::uint64_t value_bytes = 0;
};
/// False when the key is missing or the length cannot be read. `line` may hold its line end.
bool read_value_header(std::string_view line, ValueHeader& header) noexcept;

}  // namespace kvferry::memcache
