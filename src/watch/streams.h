// The log streams of memcached and how clients name them.
//
// Source: memcache-protocol.md section 12.1. Threads: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvferry::watch {

enum class Stream : std::uint8_t {
  RawCmds,
  Evictions,
  Fetchers,
  Mutations,
  SysEvents,
  ConnEvents,
  ProxyReqs,
  ProxyEvents,
  ProxyUser,
  Deletions,
};

/// A set of streams: bit `Stream`.
using StreamMask = std::uint32_t;

constexpr StreamMask mask_of(Stream stream) noexcept {
  return StreamMask{1} << static_cast<unsigned>(stream);
}

/// The streams that `words` name; each word may be the beginning of a name. No word: fetchers.
/// Nothing when a word is no stream.
std::optional<StreamMask> find_streams(std::string_view words) noexcept;

/// Appends `bytes` with everything but letters, digits and -._~ as %XX, as lines show keys.
void append_uri(std::string& out, std::string_view bytes);

}  // namespace kvferry::watch
