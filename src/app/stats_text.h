// Replies to `stats`, under the names that memcached's tools read.
//
// Threads: workers call it; it only reads counters, under the registry's lock.
#pragma once

#include <string>
#include <string_view>

#include "app/stats_registry.h"
#include "base/memory_budget.h"
#include "front/service.h"
#include "store/store.h"

namespace kvferry::app {

struct StatsSources {
  StatsRegistry& registry;
  store::Store& store;
  const base::MemoryBudget& budget;
  std::size_t threads;
  const front::ClientLimit& clients;
};

/// Appends STAT lines and the last line. `words` is what follows `stats`: nothing, "proxy",
/// "proxybe", "settings". False when it is none of them.
bool compose_stats(const StatsSources& sources, std::string_view words, std::string& out);

/// Seconds of the store's clock.
store::Instant store_now();

}  // namespace kvferry::app
