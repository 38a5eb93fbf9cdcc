// Cuts memcached text and meta requests out of bytes that arrive in any pieces.
//
//   Line --line end, value expected--> Value --value complete--> Line
//    |  \--line end, no value--------------------------------> Line
//    \--over the limit, no line end yet--> LongLine --line end--> Line
//
// The caller gives all bytes of the current request that it holds, from the first one; they may lie
// elsewhere at each call. Bytes that were looked at are not looked at again, except that the head
// line of a request with a value is cut a second time when the value is complete.
//
// Errors:    ParseFailure. The caller consumes size_bytes, swallows skip_bytes, answers with
//            error_line(), and goes on unless closes_connection(). After LineTooLong the rest of
//            the line is reported as failures with RequestError::None, which are only consumed.
// Threads:   one parser a session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/parsed.h"
#include "protocol/memcache/request.h"

namespace kvferry::memcache {

class RequestParser {
 public:
  explicit RequestParser(const ParserLimits& limits) noexcept : limits_(limits) {}

  /// Parses the request at the front of `bytes`. After need_more call again with at least one byte
  /// more; after done or failed the parser is ready for the next request. Never reads outside of
  /// `bytes`, never allocates.
  base::Parsed<Request, ParseFailure> parse(std::string_view bytes) noexcept;

  /// Bytes that the request needs in all, as far as is known: a hint for the size of a buffer.
  /// 0 while the head line is not complete.
  std::size_t needed_bytes() const noexcept { return phase_ == Phase::Value ? needed_bytes_ : 0; }

  /// How many bytes were looked at since the parser was made: a measure of work for tests.
  std::uint64_t scanned_bytes_for_test() const noexcept { return scanned_bytes_; }

 private:
  using Outcome = base::Parsed<Request, ParseFailure>;
  enum class Phase : std::uint8_t { Line, Value, LongLine };

  Outcome on_line(std::string_view bytes, std::size_t line_bytes) noexcept;
  Outcome on_line_without_end(std::string_view bytes) noexcept;
  Outcome on_long_line(std::string_view bytes) noexcept;
  Outcome finish_value(std::string_view bytes, Request& request) noexcept;

  ParserLimits limits_;
  Phase phase_ = Phase::Line;
  std::size_t searched_bytes_ = 0;  // Of the line: these hold no line end.
  std::size_t line_bytes_ = 0;      // In phase Value.
  std::size_t needed_bytes_ = 0;    // In phase Value: line, value, and its line end.
  std::uint64_t scanned_bytes_ = 0;
};

}  // namespace kvferry::memcache
