// Counters of scripts: what the statistics of memcached's proxy show.
//
// Threads: ScriptStats is written by one worker and read by any thread; NameCounts is for all.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/counter.h"
#include "protocol/memcache/command.h"

namespace kvferry::lua {

struct ScriptStats {
  base::Counter requests;      // Handed to a hook; parts of a wide get one by one.
  base::Counter active;        // Slots in use, until the last of their sub-requests has ended.
  base::Counter buffer_bytes;  // Of request values and replies that are held.
  base::Counter memory_bytes;  // Of the state.
  base::Counter gc_runs;
  std::array<base::Counter, memcache::kCommandCount> commands;
};

/// Counters that a script names and counts in: one set a worker, read by control. Indexes are the
/// script's, from 1.
class UserCounters {
 public:
  explicit UserCounters(std::size_t count) : counters_(count) {}
  std::size_t size() const { return counters_.size(); }
  /// Owning worker.
  void add(std::size_t index, std::int64_t change) {
    counters_[index].add(static_cast<std::uint64_t>(change));
  }
  void reset(std::size_t index) { counters_[index].set(0); }
  /// Any thread.
  std::uint64_t get(std::size_t index) const { return counters_[index].get(); }
  /// Before anybody else knows this set.
  void copy_from(const UserCounters& other) {
    for (std::size_t i = 0; i < std::min(size(), other.size()); ++i) {
      counters_[i].set(other.get(i));
    }
  }

 private:
  std::vector<base::Counter> counters_;
};

/// Live function generators and slots by name, over all workers. Changed when either is made or
/// dropped, not per request.
class NameCounts {
 public:
  void add_generators(const std::string& name, int change) { add(generators_, name, change); }
  void add_slots(const std::string& name, int change) { add(slots_, name, change); }

  using Counts = std::map<std::string, std::int64_t>;
  Counts generators() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return generators_;
  }
  Counts slots() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return slots_;
  }

 private:
  void add(Counts& counts, const std::string& name, int change) {
    const std::lock_guard<std::mutex> guard(mutex_);
    counts[name] += change;
  }

  mutable std::mutex mutex_;
  Counts generators_;
  Counts slots_;
};

}  // namespace kvferry::lua
