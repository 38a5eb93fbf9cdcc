// The commands of the memcached text and meta protocol.
//
// Source: memcached protocol.txt.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvferry::memcache {

enum class Command : std::uint8_t {
  Unknown,
  // Meta.
  Mg,
  Ms,
  Md,
  Mn,
  Ma,
  Me,
  // Classic retrieval.
  Get,
  Gets,
  Gat,
  Gats,
  // Classic storage; their lines announce a value.
  Set,
  Add,
  Replace,
  Append,
  Prepend,
  Cas,
  // Classic, one key, no value.
  Incr,
  Decr,
  Touch,
  Delete,
  // Without a key: answered by the server that reads them.
  Version,
  Quit,
  Stats,
  Watch,
  FlushAll,
  Verbosity,
  Slabs,
  Lru,
  LruCrawler,
  CacheMemlimit,
  Shutdown,
  Extstore,
  RefreshCerts,
  Debugtime,
  Debugitem,
  Misbehave,
};
inline constexpr std::size_t kCommandCount = static_cast<std::size_t>(Command::Misbehave) + 1;

/// The word on the wire; "?" for Unknown.
std::string_view command_name(Command command) noexcept;
/// Unknown when `word` is none (commands are lower case only).
Command find_command(std::string_view word) noexcept;

inline bool is_retrieval(Command command) noexcept {
  return command >= Command::Get && command <= Command::Gats;
}
inline bool is_storage(Command command) noexcept {
  return command >= Command::Set && command <= Command::Cas;
}
inline bool is_meta(Command command) noexcept {
  return command >= Command::Mg && command <= Command::Me;
}
/// Carries a value behind its line.
inline bool has_value(Command command) noexcept {
  return is_storage(command) || command == Command::Ms;
}
/// Has at least one key, so a pool can place it.
inline bool has_key(Command command) noexcept {
  return command >= Command::Mg && command <= Command::Delete && command != Command::Mn;
}

}  // namespace kvferry::memcache
