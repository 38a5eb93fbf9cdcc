// Replies to INFO and CONFIG GET of Redis, under the names that its tools read.
//
// Source:    redis.io, INFO; the names of redis-server 7.0.
// Threads:   workers call it; it only reads counters, under the registry's lock.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/stats_registry.h"
#include "base/memory_budget.h"
#include "front/service.h"
#include "store/store.h"

namespace kvferry::app {

/// What a server says of itself to clients of Redis; some libraries choose their commands by it.
inline constexpr std::string_view kRedisVersion = "7.0.15";

struct RedisInfoSources {
  StatsRegistry& registry;
  store::Store& store;
  const base::MemoryBudget& budget;
  const front::ClientLimit& clients;
  std::size_t workers = 0;
  std::string_view io_engine;
  bool serves_store = false;  // Some listener has the embedded store behind it.
};

/// Appends the sections that `names` name, in any case ("default", "all" and "everything" are lists
/// of them); the usual ones for no names. Unknown ones add nothing.
void compose_redis_info(const RedisInfoSources& sources, std::span<const std::string_view> names,
                        std::string& out);

/// Names in small letters, with values.
std::vector<std::pair<std::string, std::string>> redis_settings(const RedisInfoSources& sources);

}  // namespace kvferry::app
