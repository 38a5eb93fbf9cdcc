// A memcached text or meta request, cut into views.
//
// Source:    memcached protocol.txt; error texts and limits: docs/protocols.md.
// Units:     every length is in bytes; a line length includes its line end ("\r\n" or a bare "\n").
// Lifetime:  views point into the caller's bytes and die when those bytes are consumed or moved.
// Errors:    RequestError, each with the exact line that is answered (error_line); most leave the
//            stream in step (see ParseFailure).
// Threads:   values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "protocol/memcache/command.h"

namespace kvferry::memcache {

inline constexpr std::size_t kKeyBytesMax = 250;
inline constexpr std::size_t kLineBytesMax = 2048;
/// Lines of get, gets, gat, gats may be longer: any number of keys.
inline constexpr std::size_t kGetLineBytesMax = std::size_t{8} * 1024 * 1024;
/// Words of a meta line, the command and the key included.
inline constexpr std::size_t kMetaTokensMax = 20;
inline constexpr std::uint64_t kValueBytesMax = (std::uint64_t{1} << 31) - 3;
inline constexpr std::size_t kValueEndBytes = 2;
/// The word of gat and gats before the keys, which may be longer than a number needs for zeros in
/// front only.
inline constexpr std::size_t kExptimeBytesMax = 250;
static_assert(kKeyBytesMax < kLineBytesMax);
static_assert(kLineBytesMax < kGetLineBytesMax);

enum class RequestError : std::uint8_t {
  None,            // No answer: bytes of an over-long line that was answered before.
  UnknownCommand,  // ERROR
  BadLine,         // Too few words, or a value length that cannot be read.
  KeyTooLong,
  LineTooLong,
  BadDataChunk,   // The value does not end in "\r\n".
  TooManyTokens,  // More than kMetaTokensMax words in a meta line.
  BadFlag,        // A meta flag that begins with a byte that no flag begins with.
  TooLarge,       // The announced value is over ParserLimits::value_bytes_max.
  NotText,        // First byte 0x80 (binary protocol) or an HTTP request: close.
  Unterminated,   // No line end within the limit, where ParserLimits says so: close.
};

/// Whose words an error is told in: the store speaks as a plain memcached server, the proxy as
/// memcached's own proxy front.
enum class ErrorWords : std::uint8_t { Store, Proxy };

/// The line to answer with, its "\r\n" included; empty where nothing is to be answered.
std::string_view error_line(RequestError error, ErrorWords words) noexcept;

/// Whether the connection is closed after `error`, because the stream is out of step.
inline bool closes_connection(RequestError error) noexcept {
  return error == RequestError::NotText || error == RequestError::Unterminated;
}

struct Request {
  Command command = Command::Unknown;
  bool noreply = false;     // Classic `noreply` as the last word.
  bool quiet = false;       // Meta flag q.
  bool base64_key = false;  // Meta flag b.
  /// False: only the head has come and the value is above the streaming threshold.
  bool has_complete_value = true;
  /// More than 1 only for get, gets, gat, gats. 0 for commands without a key.
  std::uint32_t key_count = 0;
  std::string_view line;  // The whole line, its line end included.
  std::string_view key;   // First key, as on the wire.
  /// Retrieval: from the first key up to the line end, all keys with their blanks. Other commands
  /// with a key: the key. Walk it with KeyWalker.
  std::string_view keys;
  std::string_view value;         // The value without its line end, when it is complete.
  std::uint64_t value_bytes = 0;  // Announced length, without the line end behind the value.
  /// Bytes of the request that lie in the buffer: line, and value with line end when complete.
  std::size_t size_bytes = 0;

  /// The line without its line end, as TokenWalker and token_at take it.
  std::string_view line_text() const noexcept {
    std::string_view text = line;
    if (text.ends_with('\n')) {
      text.remove_suffix(1);
    }
    if (text.ends_with('\r')) {
      text.remove_suffix(1);
    }
    return text;
  }
};
// The parser returns it by value; words are found on demand (TokenWalker), never kept in an array.
static_assert(std::is_trivially_copyable_v<Request> && sizeof(Request) <= 104);

struct ParserLimits {
  /// Larger values are skipped and answered with "object too large for cache".
  std::uint64_t value_bytes_max = kValueBytesMax;
  /// Larger values are reported with has_complete_value = false.
  std::uint64_t stream_bytes_min = std::uint64_t{64} * 1024;
  /// A line over its limit closes the connection without an answer, as the plain server does it;
  /// otherwise it is answered, skipped up to its end, and the connection stays.
  bool close_on_long_line = false;
};

struct ParseFailure {
  RequestError error = RequestError::None;
  Command command = Command::Unknown;
  bool noreply = false;        // The broken line ended in noreply.
  std::string_view key;        // Where it could be read; a store drops the old item when TooLarge.
  std::size_t size_bytes = 0;  // Bytes of the buffer that belong to the failed request.
  /// Bytes to swallow after those, before the next request begins (an announced value).
  std::uint64_t skip_bytes = 0;
};

}  // namespace kvferry::memcache
