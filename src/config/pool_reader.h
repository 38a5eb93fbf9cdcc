// Reads one pool of a file: decides its dialect, sets that dialect's defaults, reads its keys.
//
// Threads: one reader, one thread.
#pragma once

#include <optional>
#include <vector>

#include "config/key_table.h"
#include "config/pool_draft.h"
#include "config/reader.h"
#include "config/yaml_tree.h"

namespace kvferry::config {

inline constexpr std::size_t kServersMax = 4096;
inline constexpr std::size_t kListenersMax = 64;

/// The dialect of the pool `node`, and the key that decided it (null: none did).
struct DialectChoice {
  Dialect dialect = Dialect::Nutcracker;
  const Node* key = nullptr;
};
DialectChoice choose_dialect(const Node& node);

/// Reads the pool named by `name_node`. None when it cannot be used at all (an error was reported).
std::optional<PoolDraft> read_pool(const Node& name_node, const Node& node, Reader& reader);

/// Setters of keys that need more than a line.
void read_listen(const Value& value, Reader& reader, std::vector<ListenerDraft>& listeners);
void read_servers(const Value& value, Reader& reader, PoolDraft& pool);
void note_client_connections(const Value& value, Reader& reader);

}  // namespace kvferry::config
