// A memcached text or meta request, cut into views, from bytes that arrive in any pieces.
//
// Source:    memcached protocol.txt; error texts and limits: docs/protocols.md.
// Units:     every length is in bytes; a line length includes its line end ("\r\n" or a bare "\n").
// Lifetime:  views point into the caller's bytes and die when those bytes are consumed or moved.
// Errors:    RequestError, each with the exact line that memcached answers; most leave the stream
// in step (see `skip`). Threads:   pure, one parser a session.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/parsed.h"
#include "protocol/memcache/command.h"

namespace kvferry::memcache {

inline constexpr std::size_t kKeyBytesMax = 250;
inline constexpr std::size_t kLineBytesMax = 2048;
/// Lines of get, gets, gat, gats may be longer: any number of keys.
inline constexpr std::size_t kGetLineBytesMax = std::size_t{8} * 1024 * 1024;
inline constexpr std::size_t kTokensMax = 24;
inline constexpr std::uint64_t kValueBytesMax = (std::uint64_t{1} << 31) - 3;

enum class RequestError : std::uint8_t {
  None,
  UnknownCommand,  // ERROR
  BadLine,         // CLIENT_ERROR bad command line format
  KeyTooLong,      // CLIENT_ERROR key too long (proxy) / bad command line format (store); the front
                   // decides by its style
  LineTooLong,     // CLIENT_ERROR line too long
  BadDataChunk,    // CLIENT_ERROR bad data chunk
  TooManyTokens,   // CLIENT_ERROR options flags are too long
  BadFlag,         // CLIENT_ERROR invalid flag
  NotText,         // First byte 0x80 (binary protocol) or an HTTP request: close.
  Unterminated,    // No line end within the limit: close.
};

struct Request {
  Command command = Command::Unknown;
  bool noreply = false;     // Classic `noreply` as the last word.
  bool quiet = false;       // Meta flag q.
  bool base64_key = false;  // Meta flag b.
  bool has_complete_value =
      true;  // False: only the head has come and the value is above the streaming threshold.
  std::uint32_t key_count = 0;    // More than 1 only for get, gets, gat, gats.
  std::uint32_t token_count = 0;  // Tokens kept in `tokens`, the command included; keys of a
                                  // multi-key get are not all kept.
  std::string_view line;          // The whole line, its line end included.
  std::string_view key;           // First key, as on the wire.
  std::string_view
      keys;  // Retrieval: from the first key up to the line end, all keys with their blanks.
  std::string_view value;         // The value without its line end, when it is complete.
  std::uint64_t value_bytes = 0;  // Announced length, without the line end behind the value.
  std::size_t size_bytes = 0;  // Bytes of the request that lie in the buffer: line, and value with
                               // line end when complete.
  std::array<std::string_view, kTokensMax> tokens;
};

// The parser, its limits and its error texts are completed in this room; see RequestParser below.
struct ParserLimits {
  std::uint64_t value_bytes_max =
      kValueBytesMax;  // Larger values are skipped and answered with "object too large for cache".
  std::uint64_t stream_bytes_min =
      64 * 1024;  // Larger values are reported with has_complete_value = false.
};

struct ParseFailure {
  RequestError error = RequestError::None;
  bool noreply = false;        // The broken line ended in noreply.
  std::size_t size_bytes = 0;  // Bytes of the buffer that belong to the failed request.
  std::uint64_t skip_bytes =
      0;  // Bytes to swallow after those, before the next request begins (an announced value).
};

}  // namespace kvferry::memcache
