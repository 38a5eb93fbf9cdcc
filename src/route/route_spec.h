// RouteSpec: a tree of native routes as a value: what a configuration says, before anything runs.
//
// Source:  docs/configuration.md, "Routes". The kinds are those of docs/routelib.md.
// Threads: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "protocol/memcache/command.h"
#include "route/route_event.h"
#include "route/token_bucket.h"

namespace kvferry::route {

enum class RouteKind : std::uint8_t {
  Pool,  // No route: the pool of this name.
  Direct,
  Failover,
  ZoneFailover,
  AllFastest,
  AllSync,
  AllAsync,
  Split,
  Random,
  Ttl,
  RateLimit,
  Null,
  Error,
  Commands,
  Prefixes,
  NearCache,
  Coalesce,
};

/// A near cache keeps values up to this unless told otherwise.
inline constexpr std::size_t kNearValueBytesDefault = std::size_t{64} * 1024;
/// All copies of a near cache take this much memory at most, unless told otherwise.
inline constexpr std::uint64_t kNearMemoryBytesDefault = std::uint64_t{64} << 20;

struct RouteSpec {
  RouteKind kind = RouteKind::Pool;
  /// Pool: its name. Ttl: the time to live as a client would write it. Error: the line, without its
  /// end.
  std::string text;
  std::vector<RouteSpec> children;
  std::vector<std::string> zones;  // Names of the children; empty when they have none.

  /// Prefixes: how the keys of each child begin; there is one child more, for all other keys, or
  /// not.
  std::vector<std::string> prefixes;
  /// Commands: of each child; there is one child more, for all other commands, or not.
  std::vector<memcache::Command> commands;

  /// Failover, ZoneFailover, AllFastest: misses of reads are no reason to stop.
  bool goes_on_after_miss = false;
  bool shuffles = false;             // Failover.
  std::uint32_t fixed_children = 0;  // Failover: the first ones that are not shuffled.
  std::uint32_t tries_max = 0;       // Failover; 0: as many as there are children.
  std::optional<base::Micros> wait;  // Failover: for each child. AllFastest: for all.
  TokenBucketOptions bucket;         // RateLimit.
  bool is_bucket_shared = false;     // RateLimit: one for all workers.
  bool fails_until_limit = false;    // RateLimit.
  base::Millis near_ttl{0};          // NearCache: how old what it serves may be.
  std::size_t near_value_bytes_max = kNearValueBytesDefault;  // NearCache.
  std::uint64_t near_memory_bytes = kNearMemoryBytesDefault;  // NearCache: of all its copies.
  std::string counter;  // What it counts is found under this name; empty: nowhere.

  friend bool operator==(const RouteSpec&, const RouteSpec&) = default;
};

/// The name under which `event` of `spec` is counted; empty: it is not.
std::string counter_name(const RouteSpec& spec, RouteEvent event);

/// `visit(spec)` for it and everything below.
template <typename Visit>
void for_each_route(const RouteSpec& spec, const Visit& visit) {
  visit(spec);
  for (const RouteSpec& child : spec.children) {
    for_each_route(child, visit);
  }
}

}  // namespace kvferry::route
