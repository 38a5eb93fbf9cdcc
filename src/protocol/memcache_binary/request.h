// A request of memcached's binary protocol, cut into views.
//
// The caller gives all bytes of the current packet that it holds, from the first one; they may lie
// elsewhere at each call. Nothing is kept between calls.
//
// Lifetime:  views point into the caller's bytes and die when those bytes are consumed or moved.
// Errors:    ParseFailure. The caller consumes size_bytes, swallows skip_bytes, answers with
//            status_of(), and goes on unless closes_connection().
// Threads:   pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/parsed.h"
#include "protocol/memcache/request.h"
#include "protocol/memcache_binary/packet.h"

namespace kvferry::memcache_binary {

/// Longest value of the opcodes of SASL: an authorisation identity, a name, a password.
inline constexpr std::size_t kAuthValueBytesMax = 1024;

enum class RequestError : std::uint8_t {
  NoRequest,     // It does not begin as a request does: close without a word.
  BadLengths,    // Key and extras are longer than the body.
  BadArguments,  // Not what a request of this opcode is made of, or a key that is too long.
  UnknownOpcode,
  TooLarge,  // The value is over memcache::ParserLimits::value_bytes_max.
};

/// What memcached answers to it. Not for NoRequest, to which nothing is answered.
Status status_of(RequestError error) noexcept;

/// memcached closes after an error for which none of its programs is known, since what a client
/// means that does not know the lengths of a request cannot be known.
inline bool closes_connection(RequestError error) noexcept {
  return error <= RequestError::BadArguments;
}

struct Request {
  Opcode opcode{};
  Order order;
  std::uint32_t opaque = 0;
  std::uint64_t cas = 0;
  std::string_view extras{};  // As long as the opcode wants it.
  std::string_view key{};
  std::string_view value{};       // When it is complete.
  std::uint64_t value_bytes = 0;  // Announced.
  /// False: only what stands before the value has come, and the value is above the streaming
  /// threshold.
  bool has_complete_value = true;
  /// Bytes of the packet that lie in the buffer.
  std::size_t size_bytes = 0;
};

struct ParseFailure {
  RequestError error = RequestError::NoRequest;
  Opcode opcode{};
  std::uint32_t opaque = 0;
  std::string_view key{};      // TooLarge only.
  std::size_t size_bytes = 0;  // Bytes of the buffer that belong to the refused packet.
  std::uint64_t skip_bytes = 0;
};

/// Parses the request at the front of `bytes`. After need_more call again with at least one byte
/// more. Never reads outside of `bytes`, never allocates.
base::Parsed<Request, ParseFailure> parse_request(std::string_view bytes,
                                                  const memcache::ParserLimits& limits) noexcept;

}  // namespace kvferry::memcache_binary
