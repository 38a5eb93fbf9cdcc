#include "config/route_reader.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "config/suggest.h"

namespace kvferry::config {
namespace {

using route::RouteKind;
using route::RouteSpec;

constexpr std::string_view kShapeHint =
    "such as pool_a, or {failover: {children: [pool_a, pool_b]}}";
constexpr std::string_view kOthers = "all";
/// Kinds that the Lua library or a later version has, and that are not built yet.
constexpr std::string_view kLaterKinds[] = {"readwrite", "mirror", "bridge"};

bool is_later_kind(std::string_view word) {
  return std::find(std::begin(kLaterKinds), std::end(kLaterKinds), word) != std::end(kLaterKinds);
}

std::vector<std::string_view> kind_words() {
  std::vector<std::string_view> words;
  for (const RouteKindInfo& info : route_kinds()) {
    words.push_back(info.word);
  }
  return words;
}

const RouteKindInfo* find_kind(const Node& node, Reader& reader) {
  for (const RouteKindInfo& info : route_kinds()) {
    if (info.word == node.text) {
      return &info;
    }
  }
  if (is_later_kind(node.text)) {
    reader.fail(node, "E-unsupported", "routes",
                fmt::format("route '{}' is not available yet in this version; there are {}",
                            node.text, join(kind_words())));
    return nullptr;
  }
  const std::string_view near = suggest(node.text, kind_words());
  reader.fail(node, "E-enum", "routes",
              fmt::format("there is no route '{}'{}", printable(node.text, kRoutePrefixBytesMax),
                          near.empty() ? "; there are " + join(kind_words())
                                       : fmt::format("; did you mean '{}'?", near)));
  return nullptr;
}

/// Puts the child of the local zone first.
void put_zone_first(RouteDraft& draft, Reader& reader) {
  if (draft.zone_node == nullptr) {
    return;
  }
  const auto found = std::find(draft.spec.zones.begin(), draft.spec.zones.end(), draft.zone);
  if (found == draft.spec.zones.end()) {
    std::vector<std::string_view> zones(draft.spec.zones.begin(), draft.spec.zones.end());
    reader.fail(*draft.zone_node, "E-range", "local_zone",
                draft.spec.zones.empty()
                    ? "'local_zone' needs children that are named by zone"
                    : fmt::format("'local_zone' must be one of {}, found '{}'", join(zones),
                                  printable(draft.zone, kRoutePrefixBytesMax)),
                draft.spec.zones.empty() ? "such as children: {east: pool_a, west: pool_b}" : "");
    return;
  }
  if (draft.spec.children.size() != draft.spec.zones.size()) {
    return;  // An error of a child has been told.
  }
  const auto child = draft.spec.children.begin() + (found - draft.spec.zones.begin());
  std::rotate(draft.spec.children.begin(), child, child + 1);
  std::rotate(draft.spec.zones.begin(), found, found + 1);
  draft.spec.fixed_children = draft.spec.kind == RouteKind::Failover ? 1 : 0;
}

void settle(RouteDraft& draft, Reader& reader) {
  if (draft.child_a && draft.child_b) {
    draft.spec.children = {*std::move(draft.child_a), *std::move(draft.child_b)};
  }
  put_zone_first(draft, reader);
  const bool has_counter =
      draft.spec.kind == RouteKind::Failover || draft.spec.kind == RouteKind::ZoneFailover ||
      draft.spec.kind == RouteKind::RateLimit || draft.spec.kind == RouteKind::NearCache ||
      draft.spec.kind == RouteKind::Coalesce;
  if (!has_counter || !draft.counts) {
    draft.spec.counter.clear();
  } else if (draft.spec.counter.empty()) {
    draft.spec.counter = *draft.label;
  }
}

void read_commands(const Node& arguments, RouteDraft& draft, Reader& reader) {
  std::set<std::string_view> seen;
  std::optional<RouteSpec> others;
  for (const Node::Entry& entry : arguments.entries) {
    const std::string_view word = entry.key->text;
    const memcache::Command command = memcache::find_command(word);
    if (!seen.insert(word).second) {
      reader.fail(*entry.key, "E-dup", "commands", fmt::format("'{}' is there twice", word));
    } else if (word != kOthers && !memcache::has_key(command)) {
      reader.fail(*entry.key, "E-enum", "commands",
                  fmt::format("'{}' is no command with a key", printable(word, 80)),
                  "such as get, gets, set, add, delete, mg, ms, md, ma; 'all' is for the others");
    } else if (auto child = read_route(*entry.value, draft, reader)) {
      if (word == kOthers) {
        others = std::move(child);
      } else {
        draft.spec.commands.push_back(command);
        draft.spec.children.push_back(*std::move(child));
      }
    }
  }
  if (arguments.entries.empty()) {
    reader.fail(arguments, "E-missing", "commands", "'commands' names no command");
  }
  if (others) {
    draft.spec.children.push_back(*std::move(others));
  }
}

void check_required(const RouteKindInfo& kind, const Node& kind_node, const Node& arguments,
                    Reader& reader) {
  for (const std::string_view key : kind.required) {
    if (arguments.find(key) == nullptr) {
      reader.fail(kind_node, "E-missing", key,
                  fmt::format("'{}' is missing in '{}'", key, kind.word));
    }
  }
}

std::optional<RouteSpec> read_kind(const Node::Entry& entry, const RouteDraft& outer,
                                   Reader& reader) {
  const RouteKindInfo* kind = find_kind(*entry.key, reader);
  if (kind == nullptr) {
    return std::nullopt;
  }
  const Node& arguments = *entry.value;
  if (!arguments.is_mapping() &&
      !(arguments.is_absent() && kind->required.empty() && kind->kind != RouteKind::Commands)) {
    reader.fail(arguments.is_absent() ? *entry.key : arguments, "E-type", kind->word,
                fmt::format("'{}' must be a mapping of its arguments, found {}", kind->word,
                            arguments.is_absent() ? "nothing" : arguments.kind_text()));
    return std::nullopt;
  }
  RouteDraft draft{.node = &arguments, .label = outer.label, .nodes_left = outer.nodes_left};
  draft.spec.kind = kind->kind;
  draft.spec.goes_on_after_miss = kind->kind == RouteKind::ZoneFailover;
  draft.spec.bucket.tick = base::Millis(1000);
  const std::size_t errors_before = reader.error_count();
  if (kind->kind == RouteKind::Commands) {
    read_commands(arguments, draft, reader);
  } else if (arguments.is_mapping()) {
    const std::string noun = fmt::format("'{}'", kind->word);
    reader.read_mapping(arguments, kind->keys, {.noun = noun, .path = {}}, draft);
    check_required(*kind, *entry.key, arguments, reader);
  }
  if (kind->kind != RouteKind::RateLimit) {
    draft.spec.bucket = {};
  }
  settle(draft, reader);
  if (reader.error_count() != errors_before) {
    return std::nullopt;
  }
  return std::move(draft.spec);
}

std::optional<RouteSpec> read_map(const RouteEntryDraft& entry, RouteDraft& draft, Reader& reader) {
  RouteSpec spec;
  spec.kind = RouteKind::Prefixes;
  const std::string name = *draft.label;
  if (entry.map != nullptr) {
    if (entry.map->entries.empty() || entry.map->entries.size() > kRouteChildrenMax) {
      reader.fail(*entry.map, "E-range", "map",
                  fmt::format("'map' must have 1 to {} entries, found {}", kRouteChildrenMax,
                              entry.map->entries.size()));
      return std::nullopt;
    }
    std::set<std::string_view> seen;
    for (const Node::Entry& each : entry.map->entries) {
      const std::string& prefix = each.key->text;
      if (prefix.empty() || prefix.size() > kRoutePrefixBytesMax) {
        reader.fail(*each.key, "E-range", "map",
                    fmt::format("the beginning of a key must have 1 to {} bytes, found {}",
                                kRoutePrefixBytesMax, prefix.size()),
                    "the route for all other keys is called default, beside 'map'");
        continue;
      }
      if (!seen.insert(prefix).second) {
        reader.fail(*each.key, "E-dup", "map", fmt::format("'{}' is there twice", prefix));
        continue;
      }
      *draft.label = fmt::format("{}/{}", name, prefix);
      if (auto child = read_route(*each.value, draft, reader)) {
        spec.prefixes.push_back(prefix);
        spec.children.push_back(*std::move(child));
      }
    }
  }
  if (entry.fallback != nullptr) {
    *draft.label = name + "/default";
    auto child = read_route(*entry.fallback, draft, reader);
    if (!child) {
      return std::nullopt;
    }
    spec.children.push_back(*std::move(child));
  }
  return spec;
}

void read_entry(const Node& node, Reader& reader, TakenNames& taken,
                std::vector<RouteConfig>& out) {
  if (!node.is_mapping()) {
    reader.fail(node, "E-type", "routes",
                fmt::format("an entry of 'routes' must be a mapping, found {}", node.kind_text()),
                "with keys such as listen, map and default");
    return;
  }
  const std::size_t errors_before = reader.error_count();
  RouteEntryDraft entry;
  entry.config.name = "routes";
  entry.config.where = reader.position(node);
  reader.read_mapping(node, route_entry_keys(), {.noun = "an entry of 'routes'", .path = {}},
                      entry);
  if (node.find("listen") == nullptr) {
    reader.fail(node, "E-missing", "listen", "'listen' is missing in an entry of 'routes'",
                "add the address for clients, such as listen: 127.0.0.1:11211");
  }
  if (entry.map == nullptr && entry.fallback == nullptr) {
    reader.fail(node, "E-missing", "default",
                "an entry of 'routes' needs 'map', 'default' or both");
  }
  const auto same_name = [&](const RouteConfig& other) { return other.name == entry.config.name; };
  if (const auto first = std::find_if(out.begin(), out.end(), same_name); first != out.end()) {
    reader.fail(node, "E-dup", "name",
                fmt::format("two entries of 'routes' are called '{}'; first at {}",
                            printable(entry.config.name, 80), first->where.to_string()),
                "give them different names: name: front");
  }
  check_addresses(entry.listeners, fmt::format("routes '{}'", entry.config.name), reader, taken);
  check_protocols(entry.listeners, PoolProtocol::Memcache, reader);
  std::string label = entry.config.name;
  std::size_t nodes_left = kRouteNodesMax;
  RouteDraft draft{.label = &label, .nodes_left = &nodes_left};
  auto spec = read_map(entry, draft, reader);
  if (!spec || reader.error_count() != errors_before) {
    return;
  }
  entry.config.spec = *std::move(spec);
  for (ListenerDraft& listener : entry.listeners) {
    entry.config.listeners.push_back(settle_listener(listener,
                                                     {.backlog = entry.backlog,
                                                      .max_clients = entry.max_clients,
                                                      .reuse_port = entry.reuse_port},
                                                     reader));
  }
  out.push_back(std::move(entry.config));
}

}  // namespace

std::optional<RouteSpec> read_route(const Node& node, const RouteDraft& draft, Reader& reader) {
  if (*draft.nodes_left == 0) {
    return std::nullopt;  // It was told.
  }
  if (--*draft.nodes_left == 0) {
    reader.fail(node, "E-range", "routes",
                fmt::format("an entry of 'routes' may have up to {} routes and names of pools",
                            kRouteNodesMax - 1));
    return std::nullopt;
  }
  if (node.is_scalar() && !node.text.empty()) {
    reader.refer_to_pool(node);
    RouteSpec spec;
    spec.text = node.text;
    return spec;
  }
  if (!node.is_mapping() || node.entries.size() != 1) {
    reader.fail(node, node.is_absent() ? "E-empty" : "E-type", "routes",
                fmt::format("a route must be the name of a pool, or a mapping with one key, the "
                            "kind of the route; found {}",
                            node.is_absent()    ? "nothing"
                            : node.is_mapping() ? fmt::format("{} keys", node.entries.size())
                                                : std::string(node.kind_text())),
                kShapeHint);
    return std::nullopt;
  }
  return read_kind(node.entries.front(), draft, reader);
}

void read_routes(const Node& list, Reader& reader, TakenNames& taken,
                 std::vector<RouteConfig>& out) {
  if (list.items.empty() || list.items.size() > kRouteEntriesMax) {
    reader.fail(list, "E-range", "routes",
                fmt::format("'routes' must have 1 to {} entries, found {}", kRouteEntriesMax,
                            list.items.size()));
    return;
  }
  for (const Node* item : list.items) {
    if (reader.is_full()) {
      return;
    }
    read_entry(*item, reader, taken, out);
  }
}

}  // namespace kvferry::config
