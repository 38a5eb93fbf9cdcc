// The words for flags, categories and the like: those of COMMAND INFO and ACL, and our own of
// commands.csv.
//
// Source:    redis-server 7.0: COMMAND INFO, ACL CAT.
// Threads:   constants and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kvferry::redis {

/// Bit n of Command::flags has the name n.
inline constexpr std::array<std::string_view, 20> kFlagNames{"write",
                                                             "readonly",
                                                             "denyoom",
                                                             "admin",
                                                             "pubsub",
                                                             "noscript",
                                                             "blocking",
                                                             "loading",
                                                             "stale",
                                                             "skip_monitor",
                                                             "skip_slowlog",
                                                             "asking",
                                                             "fast",
                                                             "no_auth",
                                                             "sentinel",
                                                             "no_mandatory_keys",
                                                             "no_async_loading",
                                                             "no_multi",
                                                             "movablekeys",
                                                             "allow_busy"};
/// Bit n of Command::categories has the name n; clients write an @ before it.
inline constexpr std::array<std::string_view, 21> kCategoryNames{
    "keyspace", "read",   "write",       "set",       "sortedset",  "list",        "hash",
    "string",   "bitmap", "hyperloglog", "geo",       "stream",     "pubsub",      "admin",
    "fast",     "slow",   "blocking",    "dangerous", "connection", "transaction", "scripting"};
/// Bit n of KeySpec::access has the name n.
inline constexpr std::array<std::string_view, 11> kAccessNames{
    "RO",     "RW",     "OW",      "RM",         "access",        "update",
    "insert", "delete", "not_key", "incomplete", "variable_flags"};
/// In the order of Routing.
inline constexpr std::array<std::string_view, 9> kRoutingNames{
    "single-key",  "multi-key-split", "multi-key-same-slot",
    "keyless-any", "broadcast",       "local",
    "session",     "blocked",         "refused"};
/// In the order of Merge.
inline constexpr std::array<std::string_view, 14> kMergeNames{
    "one",          "local",         "sum",           "minimum",      "all-ok",
    "first-of-all", "first-success", "keyed-array",   "concatenated", "union",
    "sum-by-name",  "logical-and",   "first-running", "cursor"};
/// In the order of Retry.
inline constexpr std::array<std::string_view, 3> kRetryNames{"no", "read", "idempotent"};
/// In the order of InMulti.
inline constexpr std::array<std::string_view, 6> kInMultiNames{"queued", "refused",  "ends",
                                                               "nested", "no-watch", "no-effect"};

/// In the order of KeyRule.
inline constexpr std::array<std::string_view, 10> kKeyRuleNames{
    "-", "one", "specs", "set", "bitfield", "sort", "geo-store", "streams", "script", "migrate"};

/// The place of `name` among `names`; nothing when it is not there.
constexpr std::optional<std::size_t> find_name(std::span<const std::string_view> names,
                                               std::string_view name) noexcept {
  for (std::size_t at = 0; at < names.size(); ++at) {
    if (names[at] == name) {
      return at;
    }
  }
  return std::nullopt;
}

/// The bit of the category `name`, which has no @ and is in small letters; 0 when there is no such
/// category.
constexpr std::uint32_t category_bit(std::string_view name) noexcept {
  const std::optional<std::size_t> at = find_name(kCategoryNames, name);
  return at ? std::uint32_t{1} << *at : 0;
}

}  // namespace kvferry::redis
