// Command: what the command table tells of a command of Redis or Valkey: its name, how many
// arguments it takes, where its keys are, and how a proxy treats it.
//
// Source:    commands.csv beside this file: the facts as redis-server 7.0 tells them (COMMAND), a
// few later commands, and our own columns about routing. The table is made from it when the program
// is built (README.md). Lifetime:  commands are constants of the program. Threads:   any.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace kvferry::redis {

/// Where a proxy sends a command.
enum class Routing : std::uint8_t {
  SingleKey,     // To the shard of its key.
  SplitKeys,     // One part for each shard of its keys; the replies are merged.
  SameSlotKeys,  // To the one shard that all its keys must have.
  Keyless,       // To any one shard.
  Broadcast,     // To all shards; the replies are merged.
  Local,         // Answered by the proxy.
  Session,       // Changes what the session is: transactions, subscriptions.
  Blocked,       // Waits at the shard of its keys.
  Refused,       // Never passed on.
};

/// How the replies of the parts become one.
enum class Merge : std::uint8_t {
  One,           // There is one reply, and it is passed on.
  Local,         // The proxy makes the reply.
  Sum,           // Integers are added.
  Minimum,       // The smallest of the integers.
  AllOk,         // OK when every part says so.
  FirstOfAll,    // The first one when every part succeeded.
  FirstSuccess,  // The first one that is no error.
  KeyedArray,    // Elements return to the places of their keys.
  Concatenated,  // Arrays, one behind the other.
  Union,         // Arrays, each element once.
  SumByName,     // Arrays of names and integers.
  LogicalAnd,    // Arrays of 0 and 1, place by place.
  FirstRunning,  // The first one that tells of a running script.
  Cursor,        // One shard at a time.
};

/// Whether a command may be sent again when nobody knows whether it has run.
enum class Retry : std::uint8_t { No, Read, Idempotent };

/// What becomes of a command between MULTI and EXEC.
enum class InMulti : std::uint8_t {
  Queued,
  Refused,   // An error, and the transaction fails.
  Ends,      // EXEC, DISCARD.
  Nested,    // MULTI: an error, the transaction goes on.
  NoWatch,   // WATCH: an error, the transaction goes on.
  NoEffect,  // UNWATCH.
};

/// Where the keys of a command are.
enum class KeyRule : std::uint8_t {
  None,
  One,       // One, always the same argument.
  Specs,     // As key_specs say.
  Set,       // One; what becomes of it depends on the word GET.
  Bitfield,  // One; what becomes of it depends on the operations.
  Sort,      // Its key, and what STORE names.
  GeoStore,  // Its key, and what STORE and STOREDIST name.
  Streams,   // The first half of what is behind STREAMS.
  Script,    // As key_specs say; a wrong number of keys has errors of its own.
  Migrate,   // Its key, or those behind KEYS.
};

/// Flags as COMMAND shows them, in that order (kFlagNames).
enum CommandFlag : std::uint32_t {
  kWrite = 1U << 0,
  kReadonly = 1U << 1,
  kDenyOom = 1U << 2,
  kAdmin = 1U << 3,
  kPubSub = 1U << 4,
  kNoScript = 1U << 5,
  kBlocking = 1U << 6,
  kLoading = 1U << 7,
  kStale = 1U << 8,
  kSkipMonitor = 1U << 9,
  kSkipSlowlog = 1U << 10,
  kAsking = 1U << 11,
  kFast = 1U << 12,
  kNoAuth = 1U << 13,
  kSentinel = 1U << 14,
  kNoMandatoryKeys = 1U << 15,
  kNoAsyncLoading = 1U << 16,
  kNoMulti = 1U << 17,
  kMovableKeys = 1U << 18,
  kAllowBusy = 1U << 19,
};

/// Place of a command in the table.
using CommandId = std::uint16_t;

struct KeySpec;

struct Command {
  std::string_view name;  // Small letters; "client|list" for a subcommand.
  CommandId id = 0;
  /// Arguments with the name (and the subcommand); negative: at least so many. 0: not known, any
  /// count is passed on.
  std::int16_t arity = 0;
  std::uint32_t flags = 0;       // CommandFlag
  std::uint32_t categories = 0;  // Bits; kCategoryNames has their names.
  // The old way to tell keys, as COMMAND shows it; find_keys() is what routing uses.
  std::int16_t first_key = 0;
  std::int16_t last_key = 0;
  std::int16_t key_step = 0;
  std::span<const KeySpec> key_specs{};  // As COMMAND shows them; find_keys() goes by key_rule.
  Routing routing = Routing::SingleKey;
  Merge merge = Merge::One;
  Retry retry = Retry::No;
  InMulti in_multi = InMulti::Queued;
  KeyRule key_rule = KeyRule::None;
  std::uint8_t sole_key = 0;  // Not 0: this argument is the one key of the command.
  bool may_ask_replica = false;
  bool is_gated = false;                     // Only for administrators.
  std::span<const CommandId> subcommands{};  // Not empty: a container.

  bool is_write() const noexcept { return (flags & kWrite) != 0; }
  bool is_container() const noexcept { return !subcommands.empty(); }
};

// What routing needs is in the first 64 bytes.
static_assert(sizeof(Command) <= 80);

}  // namespace kvferry::redis
