// Replies of memcached backends, cut into parts as their bytes arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/parsed.h"
#include "protocol/memcache/command.h"

namespace kvferry::memcache {

/// What shape of reply a request is answered with.
enum class ReplyKind : std::uint8_t {
  Line,       // One line: STORED, 42, HD ..., VERSION ...
  Retrieval,  // Any number of VALUE blocks, then END; or one error line.
  Meta,       // One line; VA is followed by a value.
};
ReplyKind reply_kind_of(Command command) noexcept;

/// First word of a reply, of its last line for Retrieval (End for a miss, Value for a hit).
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

}  // namespace kvferry::memcache
