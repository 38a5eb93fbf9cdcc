// The vocabulary of memcached replies: shapes, codes, and why a reply is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "protocol/memcache/command.h"

namespace kvferry::memcache {

/// Longest line of a reply that is accepted, its line end included.
inline constexpr std::size_t kReplyLineBytesMax = 2048;

/// What shape of reply a request is answered with.
enum class ReplyKind : std::uint8_t {
  Line,       // One line: STORED, 42, VERSION ...
  Retrieval,  // Any number of VALUE blocks, then END; or one error line.
  Meta,       // One line; VA is followed by a value.
};
ReplyKind reply_kind_of(Command command) noexcept;

/// First word of a reply. Retrieval: Value when there is at least one hit, whatever follows, End
/// for a miss.
enum class ReplyCode : std::uint8_t {
  None,
  Value,
  End,
  Stored,
  NotStored,
  Exists,
  NotFound,
  Deleted,
  Touched,
  Ok,
  Number,
  Version,
  MetaHd,
  MetaVa,
  MetaEn,
  MetaNs,
  MetaEx,
  MetaNf,
  MetaMn,
  MetaMe,
  Error,
  ClientError,
  ServerError,
  Other,
};
inline bool is_error(ReplyCode code) noexcept {
  return code >= ReplyCode::Error && code <= ReplyCode::ServerError;
}
inline bool is_meta(ReplyCode code) noexcept {
  return code >= ReplyCode::MetaHd && code <= ReplyCode::MetaMe;
}

/// Code of a reply line by its first word; None when it begins as no reply of memcached does.
/// `line` may hold its line end.
ReplyCode find_reply_code(std::string_view line) noexcept;

/// Why the bytes of a backend cannot be its reply; the connection is out of step.
enum class ReplyError : std::uint8_t {
  None,
  Unexpected,   // A word that does not answer this kind of request.
  BadLength,    // The length of a value is missing, no number, or out of range.
  BadValueEnd,  // The value does not end in "\r\n".
  LineTooLong,
};
/// Some words for logs.
std::string_view reply_error_text(ReplyError error) noexcept;

/// A run of bytes of one reply.
struct ReplyChunk {
  std::size_t size_bytes = 0;
  ReplyCode code = ReplyCode::None;  // Of the whole reply; the same in all its chunks.
  bool is_first = false;
  bool is_last = false;
};

}  // namespace kvferry::memcache
