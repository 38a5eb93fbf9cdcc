// The flags of a meta request, read and validated, for whoever executes it (a proxy passes them on
// unread).
//
// Source:    memcached protocol.txt, "Meta Commands".
// Lifetime:  views point into the request line.
// Errors:    MetaError, with the exact line that memcached answers; the first bad flag counts.
// Threads:   pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "protocol/memcache/request.h"

namespace kvferry::memcache {

/// The letter O and its text together.
inline constexpr std::size_t kOpaqueTokenBytesMax = 32;

enum class MetaError : std::uint8_t {
  None,
  InvalidFlag,
  DuplicateFlag,
  InvalidOrDuplicateFlag,  // What ma says for any bad flag.
  TooManyTokens,
  BadLine,   // F
  BadToken,  // T, N, R, C, E
  BadInitialValue,
  BadDelta,
  OpaqueTooLong,
  BadKey,  // Not base64 although b is there; found by whoever decodes the key.
  BadSetMode,
  BadArithMode,
};
/// The line to answer with, its "\r\n" included.
std::string_view meta_error_line(MetaError error) noexcept;

/// All flags of one request. All letters are known to all commands; a command ignores those that
/// mean nothing to it.
struct MetaFlags {
  MetaError error = MetaError::None;
  char mode = 0;  // Text of M; 0 when absent.
  std::uint8_t letter_count = 0;
  std::uint32_t client_flags = 0;    // F
  std::int32_t exptime = 0;          // T
  std::int32_t vivify_exptime = 0;   // N
  std::int32_t recache_exptime = 0;  // R
  std::uint64_t compare_cas = 0;     // C
  std::uint64_t new_cas = 0;         // E
  std::uint64_t initial = 0;         // J
  std::uint64_t delta = 1;           // D
  std::string_view opaque;           // O, the letter included, as it is echoed.
  std::array<char, kMetaTokensMax> letter_list{};

  /// Whether flag `letter` was given.
  bool has(char letter) const noexcept { return (present & bit_of(letter)) != 0; }
  /// The letters in the order of the request, which is the order of the echoes.
  std::span<const char> letters() const noexcept { return {letter_list.data(), letter_count}; }

  /// `letter` is one of 'A' to 'z'.
  static constexpr std::uint64_t bit_of(char letter) noexcept {
    return std::uint64_t{1} << static_cast<unsigned>(letter - 'A');
  }
  std::uint64_t present = 0;  // Bits of bit_of().
};

/// Reads the flags of mg, ms, md, ma or me. Look at `error` first.
MetaFlags parse_meta_flags(const Request& request) noexcept;

}  // namespace kvferry::memcache
