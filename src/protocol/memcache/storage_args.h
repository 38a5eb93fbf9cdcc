// The numbers of classic commands, for whoever executes them (a proxy passes them on unread).
//
// Source:    memcached protocol.txt; all numbers are decimal and checked for their range.
// Errors:    ArgsError, with the exact line that memcached answers. A value that belongs to the
//            request has been read by then.
// Threads:   pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "protocol/memcache/request.h"

namespace kvferry::memcache {

enum class ArgsError : std::uint8_t { None, BadLine, BadExptime, BadDelta };
/// The line to answer with, its "\r\n" included.
std::string_view args_error_line(ArgsError error) noexcept;

/// Of set, add, replace, append, prepend, cas.
struct StorageArgs {
  ArgsError error = ArgsError::None;
  std::uint32_t client_flags = 0;
  std::int32_t exptime = 0;      // As sent: seconds or an instant; the store knows which.
  std::uint64_t cas_unique = 0;  // Of cas only.
};
StorageArgs parse_storage_args(const Request& request) noexcept;
/// Whether a storage line has words beyond its arguments and one `noreply`. Servers differ over
/// such lines.
bool has_surplus_words(const Request& request) noexcept;

/// Of incr, decr.
struct ArithArgs {
  ArgsError error = ArgsError::None;
  std::uint64_t delta = 0;
};
ArithArgs parse_arith_args(const Request& request) noexcept;

/// Of touch, gat, gats.
struct TouchArgs {
  ArgsError error = ArgsError::None;
  std::int32_t exptime = 0;
};
TouchArgs parse_touch_args(const Request& request) noexcept;

}  // namespace kvferry::memcache
