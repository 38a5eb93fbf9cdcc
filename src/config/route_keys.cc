// The tables of `routes:`: its entries, and what each kind of route takes.
#include <algorithm>
#include <cstdint>
#include <fmt/format.h>

#include "config/choices.h"
#include "config/pool_reader.h"
#include "config/route_reader.h"

namespace kvferry::config {
namespace {

using Entry = RouteEntryDraft;
using Draft = RouteDraft;
using route::RouteKind;

constexpr std::int64_t kIntMax = 2147483647;
constexpr std::int64_t kHourMillis = 3600000;
constexpr std::int64_t kMegabyte = std::int64_t{1} << 20;
constexpr std::int64_t kGigabyte = std::int64_t{1} << 30;

std::uint32_t to_u32(const Value& value) {
  return static_cast<std::uint32_t>(value.number);
}

constexpr std::array<std::string_view, 1> kRouteProtocolWords = {"memcache"};
constexpr std::array<std::string_view, 2> kLaterRouteProtocolWords = {"redis", "auto"};

constexpr Key<Entry> kEntryKeys[] = {
    {{.name = "name",
      .type = ValueType::Text,
      .default_text = "routes",
      .doc = "What messages and metrics call it."},
     [](Entry& entry, const Value& value, Reader&) { entry.config.name = value.text; }},
    {{.name = "listen",
      .type = ValueType::Listen,
      .doc = "Where clients connect, as in a pool. Required."},
     [](Entry& entry, const Value& value, Reader& reader) {
       read_listen(value, reader, entry.listeners);
     }},
    {{.name = "protocol",
      .type = ValueType::Enum,
      .default_text = "memcache",
      .doc = "What clients speak.",
      .choices = kRouteProtocolWords,
      .later_choices = kLaterRouteProtocolWords},
     [](Entry&, const Value&, Reader&) {}},
    {{.name = "map",
      .type = ValueType::Mapping,
      .doc = "How a key begins, and the route for such keys; of several that fit, the longest "
             "decides."},
     [](Entry& entry, const Value& value, Reader&) { entry.map = value.node; }},
    {{.name = "default",
      .type = ValueType::Route,
      .doc = "The route for all other keys; without it they get an error."},
     [](Entry& entry, const Value& value, Reader&) { entry.fallback = value.node; }},
    {{.name = "backlog",
      .type = ValueType::Int,
      .least = 1,
      .most = 65535,
      .default_text = "512",
      .doc = "As the key of a pool."},
     [](Entry& entry, const Value& value, Reader&) { entry.backlog = to_u32(value); }},
    {{.name = "client_connections",
      .type = ValueType::Int,
      .most = 1000000,
      .default_text = "0",
      .doc = "As the key of a pool."},
     [](Entry& entry, const Value& value, Reader&) { entry.max_clients = to_u32(value); }},
    {{.name = "reuseport",
      .type = ValueType::Bool,
      .default_text = "false",
      .doc = "As the key of a pool."},
     [](Entry& entry, const Value& value, Reader&) { entry.reuse_port = value.flag; }},
    {{.name = "client_idle_timeout",
      .type = ValueType::Duration,
      .most = 24 * kHourMillis,
      .default_text = "0s",
      .doc = "As the key of a pool."},
     [](Entry& entry, const Value& value, Reader&) {
       entry.config.client_idle_timeout = base::Millis(value.number);
     }},
};

// Arguments of routes.

void set_child(Draft& draft, const Value& value, Reader& reader) {
  if (auto child = read_route(*value.node, draft, reader)) {
    draft.spec.children.push_back(*std::move(child));
  }
}

/// A list of routes, or a mapping that names them by zone.
void set_children(Draft& draft, const Value& value, Reader& reader) {
  const Node& node = *value.node;
  const std::size_t count = node.is_sequence() ? node.items.size() : node.entries.size();
  if (node.is_scalar() || count == 0 || count > kRouteChildrenMax) {
    reader.fail(node, "E-list", "children",
                fmt::format("'children' must be a list of 1 to {} routes, or a mapping of routes "
                            "by zone",
                            kRouteChildrenMax),
                "such as children: [pool_a, pool_b]");
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Node& each = node.is_sequence() ? *node.items[i] : *node.entries[i].value;
    if (node.is_mapping()) {
      const std::string& zone = node.entries[i].key->text;
      if (std::find(draft.spec.zones.begin(), draft.spec.zones.end(), zone) !=
          draft.spec.zones.end()) {
        reader.fail(*node.entries[i].key, "E-dup", "children",
                    fmt::format("zone '{}' is there twice", zone));
        return;
      }
      draft.spec.zones.push_back(zone);
    }
    if (auto child = read_route(each, draft, reader)) {
      draft.spec.children.push_back(*std::move(child));
    }
  }
}

constexpr Key<Draft> kChild = {
    {.name = "child", .type = ValueType::Route, .doc = "Where requests go. Required."}, set_child};
constexpr Key<Draft> kChildren = {
    {.name = "children",
     .type = ValueType::Routes,
     .doc = "Where requests go: a list, or a mapping of routes by zone. Required."},
    set_children};
constexpr Key<Draft> kMiss = {
    {.name = "miss",
     .type = ValueType::Bool,
     .default_text = "false",
     .doc = "With true a miss of a read is no reason to stop: other children are tried, or waited "
            "for."},
    [](Draft& draft, const Value& value, Reader&) { draft.spec.goes_on_after_miss = value.flag; }};
constexpr Key<Draft> kZoneMiss = {{.name = "miss",
                                   .type = ValueType::Bool,
                                   .default_text = "true",
                                   .doc = "With false a miss in the local zone is the answer."},
                                  kMiss.set};
constexpr Key<Draft> kWait = {
    {.name = "wait",
     .type = ValueType::Duration,
     .least = 1,
     .most = kHourMillis,
     .doc = "How long a child is waited for (`failover`), or all of them (`allfastest`)."},
    [](Draft& draft, const Value& value, Reader&) {
      draft.spec.wait = base::Millis(value.number);
    }};
constexpr Key<Draft> kZone = {{.name = "local_zone",
                               .type = ValueType::Text,
                               .doc = "The name of the child that comes first."},
                              [](Draft& draft, const Value& value, Reader&) {
                                draft.zone = value.text;
                                draft.zone_node = value.node;
                              }};
constexpr Key<Draft> kStats = {
    {.name = "stats",
     .type = ValueType::Bool,
     .default_text = "true",
     .doc =
         "Counts further tries, refused requests, hits and misses, or joined reads, in the metric "
         "`kvferry_route_events_total` and in `stats routes`."},
    [](Draft& draft, const Value& value, Reader&) { draft.counts = value.flag; }};
constexpr Key<Draft> kStatsName = {
    {.name = "stats_name",
     .type = ValueType::Text,
     .doc = "The label of the metric; without it the name of the entry and the beginning of the "
            "key."},
    [](Draft& draft, const Value& value, Reader&) { draft.spec.counter = value.text; }};

constexpr Key<Draft> kDirectKeys[] = {kChild};
constexpr Key<Draft> kChildrenKeys[] = {kChildren};
constexpr Key<Draft> kFastestKeys[] = {kChildren, kMiss, kWait};
constexpr Key<Draft> kFailoverKeys[] = {
    kChildren,
    kMiss,
    {{.name = "failover_count",
      .type = ValueType::Int,
      .least = 1,
      .most = static_cast<std::int64_t>(kRouteChildrenMax),
      .doc = "Most children that one request is sent to; all of them unless given."},
     [](Draft& draft, const Value& value, Reader&) { draft.spec.tries_max = to_u32(value); }},
    {{.name = "shuffle",
      .type = ValueType::Bool,
      .default_text = "false",
      .doc = "Each request tries the children in an order of its own, the local zone before the "
             "others."},
     [](Draft& draft, const Value& value, Reader&) { draft.spec.shuffles = value.flag; }},
    kWait,
    kZone,
    kStats,
    kStatsName,
};
constexpr Key<Draft> kZoneFailoverKeys[] = {kChildren, kZoneMiss, kZone, kStats, kStatsName};
constexpr Key<Draft> kSplitKeys[] = {
    {{.name = "child_a", .type = ValueType::Route, .doc = "Its answer counts. Required."},
     [](Draft& draft, const Value& value, Reader& reader) {
       draft.child_a = read_route(*value.node, draft, reader);
     }},
    {{.name = "child_b", .type = ValueType::Route, .doc = "Its answer does not. Required."},
     [](Draft& draft, const Value& value, Reader& reader) {
       draft.child_b = read_route(*value.node, draft, reader);
     }},
};
constexpr Key<Draft> kTtlKeys[] = {
    kChild,
    {{.name = "ttl",
      .type = ValueType::Int,
      .least = -1,
      .most = kIntMax,
      .doc = "Seconds, or a Unix time, as memcached takes them. Required."},
     [](Draft& draft, const Value& value, Reader&) { draft.spec.text = value.text; }},
};
constexpr Key<Draft> kRateLimitKeys[] = {
    kChild,
    {{.name = "limit",
      .type = ValueType::Int,
      .least = 1,
      .most = kIntMax,
      .doc = "Tokens in a full bucket; a request takes one, and the last one stays. Required."},
     [](Draft& draft, const Value& value, Reader&) { draft.spec.bucket.limit = to_u32(value); }},
    {{.name = "fillrate",
      .type = ValueType::Int,
      .least = 1,
      .most = kIntMax,
      .default_text = "1",
      .doc = "Tokens that come in each tick."},
     [](Draft& draft, const Value& value, Reader&) {
       draft.spec.bucket.fill_rate = to_u32(value);
     }},
    {{.name = "tickrate",
      .type = ValueType::Millis,
      .least = 1,
      .most = kHourMillis,
      .default_text = "1000",
      .doc = "Length of a tick."},
     [](Draft& draft, const Value& value, Reader&) {
       draft.spec.bucket.tick = base::Millis(value.number);
     }},
    {{.name = "global",
      .type = ValueType::Bool,
      .default_text = "false",
      .doc = "One bucket for all workers; else each has one of this size."},
     [](Draft& draft, const Value& value, Reader&) { draft.spec.is_bucket_shared = value.flag; }},
    {{.name = "fail_until_limit",
      .type = ValueType::Bool,
      .default_text = "false",
      .doc = "Turns it round: only what is above the limit is forwarded."},
     [](Draft& draft, const Value& value, Reader&) { draft.spec.fails_until_limit = value.flag; }},
    kStats,
    kStatsName,
};
constexpr Key<Draft> kNearKeys[] = {
    kChild,
    {{.name = "ttl",
      .type = ValueType::Duration,
      .least = 1,
      .most = kHourMillis,
      .doc = "How old what is served may be, counted from when it was asked for. Required."},
     [](Draft& draft, const Value& value, Reader&) {
       draft.spec.near_ttl = base::Millis(value.number);
     }},
    {{.name = "max_value",
      .type = ValueType::Bytes,
      .least = 1,
      .most = kGigabyte,
      .default_text = "64kb",
      .doc =
          "Larger values are passed on and not kept; nor are those that the store does not take."},
     [](Draft& draft, const Value& value, Reader&) {
       draft.spec.near_value_bytes_max = static_cast<std::size_t>(value.number);
     }},
    {{.name = "memory",
      .type = ValueType::Bytes,
      .least = kMegabyte,
      .most = 1024 * kGigabyte,
      .default_text = "64mb",
      .doc = "Memory for copies, beside that of the embedded store. When it is full, old ones go."},
     [](Draft& draft, const Value& value, Reader&) {
       draft.spec.near_memory_bytes = static_cast<std::uint64_t>(value.number);
     }},
    kStats,
    kStatsName,
};
constexpr Key<Draft> kCoalesceKeys[] = {kChild, kStats, kStatsName};
constexpr Key<Draft> kErrorKeys[] = {
    {{.name = "text",
      .type = ValueType::Text,
      .doc = "What stands behind `SERVER_ERROR `. Required."},
     [](Draft& draft, const Value& value, Reader&) { draft.spec.text = value.text; }},
};

constexpr std::string_view kNeedsChild[] = {"child"};
constexpr std::string_view kNeedsChildren[] = {"children"};
constexpr std::string_view kNeedsZone[] = {"children", "local_zone"};
constexpr std::string_view kNeedsBoth[] = {"child_a", "child_b"};
constexpr std::string_view kNeedsTtl[] = {"child", "ttl"};
constexpr std::string_view kNeedsLimit[] = {"child", "limit"};
constexpr std::string_view kNeedsText[] = {"text"};

constexpr RouteKindInfo kKinds[] = {
    {"direct", RouteKind::Direct, kDirectKeys, kNeedsChild, "Forwards to its child."},
    {"failover", RouteKind::Failover, kFailoverKeys, kNeedsChildren,
     "Tries one child after the other until one gives a good answer. Children that are named by "
     "zone may begin with the local one."},
    {"zfailover", RouteKind::ZoneFailover, kZoneFailoverKeys, kNeedsZone,
     "Asks the child of the local zone; when that gives no good answer, all others at once."},
    {"allfastest", RouteKind::AllFastest, kFastestKeys, kNeedsChildren,
     "Asks all; the first good answer is the answer."},
    {"allsync", RouteKind::AllSync, kChildrenKeys, kNeedsChildren,
     "Asks all and waits for all; the first error in order answers, else the last child."},
    {"allasync", RouteKind::AllAsync, kChildrenKeys, kNeedsChildren,
     "Asks all and waits for none; answers as `null` does."},
    {"split", RouteKind::Split, kSplitKeys, kNeedsBoth, "Asks both; the first one answers."},
    {"random", RouteKind::Random, kChildrenKeys, kNeedsChildren,
     "Forwards to one of its children, by lot."},
    {"ttl", RouteKind::Ttl, kTtlKeys, kNeedsTtl,
     "Forwards `ms`, `set`, `add` and `cas` with another time to live; refuses other commands."},
    {"ratelim", RouteKind::RateLimit, kRateLimitKeys, kNeedsLimit,
     "Forwards as long as there are tokens; answers the rest as `null` does."},
    {"nearcache", RouteKind::NearCache, kNearKeys, kNeedsTtl,
     "Keeps what its child has answered to reads for a short time, and answers the next reads "
     "itself. What is written through it is dropped."},
    {"coalesce", RouteKind::Coalesce, kCoalesceKeys, kNeedsChild,
     "Forwards one of several identical reads that are under way at once; its answer is that of "
     "all."},
    {"null", RouteKind::Null, {}, {}, "Answers as a server without items does, and asks nobody."},
    {"error", RouteKind::Error, kErrorKeys, kNeedsText, "Answers with an error."},
    {"commands",
     RouteKind::Commands,
     {},
     {},
     "Picks by the command: a mapping from commands (`get`, `set`, `mg`, ...) to routes, and "
     "`all` for the others."},
};

}  // namespace

std::span<const RouteKindInfo> route_kinds() {
  return kKinds;
}

std::string_view route_kind_word(RouteKind kind) {
  for (const RouteKindInfo& info : kKinds) {
    if (info.kind == kind) {
      return info.word;
    }
  }
  return {};
}

std::span<const Key<RouteEntryDraft>> route_entry_keys() {
  return kEntryKeys;
}

}  // namespace kvferry::config
