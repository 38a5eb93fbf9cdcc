// Reads `kvferry: routes:`: listeners whose requests native routes decide on.
//
// A route is the name of a pool, or a mapping with one key, its kind, whose value holds its
// arguments. Each kind has a table of keys, which drives reading, error texts and
// docs/configuration.md.
// Threads: one reader, one thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/key_table.h"
#include "config/pool_draft.h"
#include "config/reader.h"
#include "config/rules.h"
#include "config/yaml_tree.h"

namespace kvferry::config {

inline constexpr std::size_t kRouteEntriesMax = 64;
/// Children of one route, and entries of one map.
inline constexpr std::size_t kRouteChildrenMax = 1024;
/// Routes and names of pools in one entry of `routes`.
inline constexpr std::size_t kRouteNodesMax = 10000;
inline constexpr std::size_t kRoutePrefixBytesMax = 250;  // The longest key.

/// One entry of `routes` while its keys are being read.
struct RouteEntryDraft {
  RouteConfig config;
  std::vector<ListenerDraft> listeners;
  std::uint32_t backlog = 512;
  std::uint32_t max_clients = 0;
  bool reuse_port = false;
  const Node* map = nullptr;
  const Node* fallback = nullptr;
};

/// One route while its arguments are being read.
struct RouteDraft {
  route::RouteSpec spec{};
  const Node* node = nullptr;         // The arguments.
  std::string* label = nullptr;       // What it is called where it counts.
  std::size_t* nodes_left = nullptr;  // Of kRouteNodesMax.
  std::string zone{};                 // Empty: none was given.
  const Node* zone_node = nullptr;
  std::optional<route::RouteSpec> child_a{};
  std::optional<route::RouteSpec> child_b{};
  bool counts = true;
};

/// A kind of route: its word, what it takes, what it must have.
struct RouteKindInfo {
  std::string_view word;
  route::RouteKind kind = route::RouteKind::Null;
  std::span<const Key<RouteDraft>> keys;
  std::span<const std::string_view> required;
  std::string_view doc;
};
std::span<const RouteKindInfo> route_kinds();
/// The word of a kind, for whoever writes a configuration.
std::string_view route_kind_word(route::RouteKind kind);

/// Keys of an entry of `routes`.
std::span<const Key<RouteEntryDraft>> route_entry_keys();

/// Reads one route into what `draft` says of its place; none after an error.
std::optional<route::RouteSpec> read_route(const Node& node, const RouteDraft& draft,
                                           Reader& reader);

/// Reads all entries of `list` and adds those without errors to `out`.
void read_routes(const Node& list, Reader& reader, TakenNames& taken,
                 std::vector<RouteConfig>& out);

}  // namespace kvferry::config
