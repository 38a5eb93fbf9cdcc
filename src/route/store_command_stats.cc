#include "route/store_command_stats.h"

#include <bit>

namespace kvferry::route {

namespace {

/// In the order of StoreCount.
constexpr std::array<std::string_view, kStoreCounts> kNames = {
    "cmd_get",         "cmd_set",         "cmd_flush",   "cmd_touch",   "cmd_meta",
    "get_hits",        "get_misses",      "get_expired", "get_flushed", "delete_misses",
    "delete_hits",     "incr_misses",     "incr_hits",   "decr_misses", "decr_hits",
    "cas_misses",      "cas_hits",        "cas_badval",  "touch_hits",  "touch_misses",
    "store_too_large", "store_no_memory",
};
static_assert(kNames.back() == "store_no_memory");

}  // namespace

void StoreCommandStats::add_to(StoreCommandTotals& totals) const noexcept {
  for (std::size_t i = 0; i < kStoreCounts; ++i) {
    totals[i] += counters_[i].get();
  }
}

void StoreCommandStats::reset() noexcept {
  for (base::Counter& counter : counters_) {
    counter.set(0);
  }
}

std::vector<StatLine> store_stat_lines(const StoreCommandTotals& totals,
                                       const store::StoreStats& stats) {
  std::vector<StatLine> lines;
  lines.reserve(kStoreCounts);
  for (std::size_t i = 0; i < kStoreCounts; ++i) {
    lines.push_back({kNames[i], totals[i]});
  }
  const auto hash_power = static_cast<std::uint64_t>(std::bit_width(stats.index_buckets));
  for (const StatLine& line : {
           StatLine{"limit_maxbytes", stats.limit_maxbytes},
           StatLine{"hash_power_level", hash_power},
           StatLine{"hash_bytes", stats.index_bytes},
           StatLine{"hash_is_expanding", 0},
           StatLine{"bytes", stats.bytes},
           StatLine{"curr_items", stats.curr_items},
           StatLine{"total_items", stats.total_items},
           StatLine{"expired_unfetched", stats.expired_unfetched},
           StatLine{"evicted_unfetched", stats.evicted_unfetched},
           StatLine{"evicted_active", stats.evicted_active},
           StatLine{"evictions", stats.evictions},
           StatLine{"reclaimed", stats.reclaimed},
           StatLine{"crawler_reclaimed", stats.crawler_reclaimed},
           StatLine{"crawler_items_checked", stats.crawler_items_checked},
           StatLine{"moves_to_warm", stats.moves_to_main},
           StatLine{"moves_within_lru", stats.moves_within_main},
       }) {
    lines.push_back(line);
  }
  return lines;
}

}  // namespace kvferry::route
