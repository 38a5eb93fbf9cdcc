// Replies to `stats`, under the names that memcached's tools read.
//
// Threads: workers call it; it only reads counters, under the registry's lock.
#pragma once

#include <string>
#include <string_view>

#include "app/memcached_options.h"
#include "app/stats_registry.h"
#include "base/memory_budget.h"
#include "front/service.h"
#include "route/prefix_stats.h"
#include "store/store.h"
#include "watch/hub.h"

namespace kvferry::app {

struct StatsSources {
  StatsRegistry& registry;
  store::Store& store;
  const base::MemoryBudget& budget;
  std::size_t threads = 0;
  const front::ClientLimit& clients;
  const MemcachedOptions& options;  // The defaults where there is no memcached command line.
  route::PrefixStats& prefixes;
  watch::Hub& watch;
  store::Instant now;
};

/// Appends STAT lines and the last line. `words` is what follows `stats`: nothing, or the name of a
/// list or its beginning. False when it is none of them.
bool compose_stats(const StatsSources& sources, std::string_view words, std::string& out);

}  // namespace kvferry::app
