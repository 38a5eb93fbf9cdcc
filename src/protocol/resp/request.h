// A request of a Redis client, and what can be wrong with its bytes.
//
// Source:    redis.io, "Redis serialization protocol specification"; error texts as redis-server
// 7.0 sends them. Units:     lengths are in bytes.
// Threads:   values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kvferry::resp {

/// A line that tells a count or a length, and an inline request.
inline constexpr std::size_t kLineBytesMax = std::size_t{64} * 1024;
inline constexpr std::uint64_t kBulkBytesMaxDefault = std::uint64_t{512} * 1024 * 1024;
inline constexpr std::uint32_t kArgsMaxDefault = 1024 * 1024;
/// Before a client has authenticated itself.
inline constexpr std::uint64_t kBulkBytesMaxUnknown = 16384;
inline constexpr std::uint32_t kArgsMaxUnknown = 10;

/// The arguments of a request that have come, the name of the command being the first one. Mostly
/// all of them; when one is longer than ParserLimits::stream_bytes_min, those before it come in one
/// run and those behind it in another.
struct RequestRun {
  /// Views of the parsed bytes; those of an inline request, of the parser.
  std::span<const std::string_view> args;
  std::uint32_t first_index = 0;  // That of args.front() in the request.
  std::uint32_t arg_count = 0;    // Of the whole request.
  /// Not 0: the next argument has so many bytes. They and a line end follow, and do not go through
  /// the parser.
  std::uint64_t streamed_bytes = 0;
  bool is_inline = false;
  std::size_t size_bytes = 0;  // What the run takes of the bytes.

  bool is_first() const noexcept { return first_index == 0; }
  /// No other run of the same request follows, though a streamed argument may.
  bool is_last() const noexcept {
    return first_index + args.size() + (streamed_bytes != 0 ? 1 : 0) == arg_count;
  }
};

enum class RequestError : std::uint8_t {
  None,
  BadCount,
  BadLength,
  NoBulk,  // An element that is no bulk string.
  CountLineTooLong,
  LengthLineTooLong,
  InlineTooLong,
  UnbalancedQuotes,
  UnknownClientCount,   // More arguments than a client may send before it has authenticated.
  UnknownClientLength,  // A longer argument than it may.
  NoLineEnd,            // Other bytes behind a bulk string; redis-server does not look.
  Browser,              // An HTTP request: closed without a word.
};

/// After any of them the place of the next request is unknown: the connection ends.
struct ParseFailure {
  RequestError error = RequestError::None;
  char found = 0;  // NoBulk: the byte that stood there.
};

/// Appends the line that the client is told, its "\r\n" included; nothing for Browser.
void append_error_line(const ParseFailure& failure, std::string& line);

}  // namespace kvferry::resp
