// KeySpec: one rule that tells where keys of a command are, as COMMAND INFO shows it.
//
//   begin   Index 2                    argument 2 is the first one
//           Keyword "STREAMS", 1       the one behind that word, which is searched from argument 1
//           on; negative: from the end
//                                      backwards
//   find    Range last, step, limit    up to `last` arguments further (negative: from the end, -1
//   is the last one), every
//                                      step-th; limit 2: only the first half of what is left
//           KeyNum at, first, step     `at` arguments further stands how many keys there are; they
//           begin `first` further
//   Unknown                            cannot be told by such a rule; find_keys() has one in code
//
// Source:    redis.io, "Command key specifications".
// Lifetime:  constants of the program.
// Threads:   any.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvferry::redis {

/// What a command does with a key. The bits are in the order in which COMMAND INFO names them.
enum KeyAccess : std::uint16_t {
  kAccessRo = 1U << 0,      // Reads.
  kAccessRw = 1U << 1,      // Reads and changes.
  kAccessOw = 1U << 2,      // Writes, whatever was there.
  kAccessRm = 1U << 3,      // Removes.
  kAccessAccess = 1U << 4,  // Gives away the value, or a part of it.
  kAccessUpdate = 1U << 5,
  kAccessInsert = 1U << 6,
  kAccessDelete = 1U << 7,
  kAccessNotKey = 1U << 8,      // Is routed as a key, but names a channel.
  kAccessIncomplete = 1U << 9,  // There may be keys that the rule does not find.
  kAccessVariable = 1U << 10,   // Depends on other arguments; find_keys() tells what it is.
};

/// The value, or a part of it, is given away, so a permission to read is needed. Keys of which only
/// the existence, the type or the size is told count as neither read nor written.
constexpr bool is_read(std::uint16_t access) noexcept {
  return (access & kAccessAccess) != 0;
}
/// A permission to write is needed.
constexpr bool is_written(std::uint16_t access) noexcept {
  return (access & (kAccessUpdate | kAccessInsert | kAccessDelete)) != 0;
}

struct KeySpec {
  enum class Begin : std::uint8_t { Unknown, Index, Keyword };
  enum class Find : std::uint8_t { Unknown, Range, KeyNum };

  Begin begin = Begin::Unknown;
  Find find = Find::Unknown;
  std::int8_t begin_at = 0;  // The index, or where the search for the word begins.
  std::int8_t last = 0;      // Range: the last key; KeyNum: where the number is.
  std::int8_t step = 1;
  std::int8_t limit = 0;  // Range: divides what is left; KeyNum: where the first key is.
  std::uint16_t access = 0;
  std::string_view keyword{};
};

}  // namespace kvferry::redis
