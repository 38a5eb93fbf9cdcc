// What clients asked of the embedded store and how it went, counted as memcached counts it.
//
// Threads: one StoreCommandStats a worker, written by it, read by any; totals are plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/counter.h"
#include "store/store_stats.h"

namespace kvferry::route {

enum class StoreCount : std::uint8_t {
  CmdGet,
  CmdSet,
  CmdFlush,
  CmdTouch,
  CmdMeta,
  GetHits,
  GetMisses,
  GetExpired,
  GetFlushed,
  DeleteMisses,
  DeleteHits,
  IncrMisses,
  IncrHits,
  DecrMisses,
  DecrHits,
  CasMisses,
  CasHits,
  CasBadval,
  TouchHits,
  TouchMisses,
  TooLarge,
  NoMemory,
};
inline constexpr std::size_t kStoreCounts = static_cast<std::size_t>(StoreCount::NoMemory) + 1;

/// Sums over workers.
using StoreCommandTotals = std::array<std::uint64_t, kStoreCounts>;

class StoreCommandStats {
 public:
  void count(StoreCount what) noexcept { counters_[static_cast<std::size_t>(what)].add(1); }
  std::uint64_t get(StoreCount what) const noexcept {
    return counters_[static_cast<std::size_t>(what)].get();
  }
  void add_to(StoreCommandTotals& totals) const noexcept;
  /// On the owning worker.
  void reset() noexcept;

 private:
  std::array<base::Counter, kStoreCounts> counters_;
};

/// One `STAT name value` line.
struct StatLine {
  std::string_view name;
  std::uint64_t value;
};

/// The lines of `stats` that the store answers for, in memcached's words.
std::vector<StatLine> store_stat_lines(const StoreCommandTotals& totals,
                                       const store::StoreStats& stats);

}  // namespace kvferry::route
