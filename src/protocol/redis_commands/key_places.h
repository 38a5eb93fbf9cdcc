// Where the keys of a request are, and what the command does with each of them.
//
// What is found is what redis-server 7.0 touches when it runs the command. Its own COMMAND GETKEYS
// differs where names of options are used as values
// (tests/unit/protocol/redis_commands/command_replies_test.cc has the cases). A destination that is
// named twice (GEORADIUS ... STORE a STORE b) counts twice, though the last one is written.
// Units:     places are indexes of arguments; the name of the command has 0.
// Memory:    KeyPlaces keeps room for kKeysKept keys.
// Threads:   one user at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "protocol/redis_commands/command.h"

namespace kvferry::redis {

/// Room for so many keys is kept from one request to the next.
inline constexpr std::size_t kKeysKept = 256;

struct KeyPlace {
  std::uint32_t index = 0;
  std::uint16_t access = 0;  // KeyAccess (key_spec.h).

  friend bool operator==(const KeyPlace&, const KeyPlace&) = default;
};

/// The keys of one request, in the order of COMMAND GETKEYS; used again for the next one.
class KeyPlaces {
 public:
  void clear();
  void add(std::size_t index, std::uint16_t access) {
    places_.push_back({.index = static_cast<std::uint32_t>(index), .access = access});
  }
  std::span<const KeyPlace> all() const noexcept { return places_; }
  std::size_t size() const noexcept { return places_.size(); }
  bool is_empty() const noexcept { return places_.empty(); }

 private:
  std::vector<KeyPlace> places_;
};

enum class KeyOutcome : std::uint8_t {
  Found,     // These are all keys; maybe none.
  Refused,   // The server refuses the request before it touches a key, with words of its own: ask
             // any one shard.
  BadCount,  // A script: the number of keys is none.
  CountTooLarge,  // A script: more keys than arguments.
  CountNegative,  // A script.
  NotHere,        // A key is, or may be, in the part of the request that has not come.
};

/// Finds the keys of a request that has_good_count(), of which `args` are there and which has
/// `arg_count` arguments. `out` is replaced; unless Found it has those that were found before
/// something was wrong. Time: linear in the number of arguments.
KeyOutcome find_keys(const Command& command, std::span<const std::string_view> args,
                     std::uint32_t arg_count, KeyPlaces& out);
inline KeyOutcome find_keys(const Command& command, std::span<const std::string_view> args,
                            KeyPlaces& out) {
  return find_keys(command, args, static_cast<std::uint32_t>(args.size()), out);
}

/// What a command with a sole_key does with it: what its row says, but for those where other
/// arguments decide.
std::uint16_t sole_key_access(const Command& command, std::span<const std::string_view> args,
                              std::uint32_t arg_count) noexcept;

/// Which other keys SORT and SORT_RO read: they make their names from patterns and the elements, so
/// no shard has them all.
struct SortPatterns {
  bool has_by = false;   // BY with a '*' in it.
  bool has_get = false;  // GET of anything but '#'.
};
SortPatterns find_sort_patterns(std::span<const std::string_view> args) noexcept;

}  // namespace kvferry::redis
