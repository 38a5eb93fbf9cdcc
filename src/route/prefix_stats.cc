#include "route/prefix_stats.h"

namespace kvferry::route {

PrefixStats::Counts* PrefixStats::find(std::string_view key) {
  const std::size_t end = key.find(delimiter_);
  if (end == std::string_view::npos || end == 0) {
    return nullptr;
  }
  const std::string_view prefix = key.substr(0, end);
  if (const auto found = counts_.find(prefix); found != counts_.end()) {
    return &found->second;
  }
  return counts_.size() < kPrefixesMax ? &counts_[std::string(prefix)] : nullptr;
}

void PrefixStats::count_get(std::string_view key, bool is_hit) {
  const std::lock_guard lock(mutex_);
  if (Counts* counts = find(key); counts != nullptr) {
    ++counts->gets;
    counts->hits += is_hit ? 1 : 0;
  }
}

void PrefixStats::count_set(std::string_view key) {
  const std::lock_guard lock(mutex_);
  if (Counts* counts = find(key); counts != nullptr) {
    ++counts->sets;
  }
}

void PrefixStats::count_delete(std::string_view key) {
  const std::lock_guard lock(mutex_);
  if (Counts* counts = find(key); counts != nullptr) {
    ++counts->deletes;
  }
}

void PrefixStats::reset() {
  const std::lock_guard lock(mutex_);
  counts_.clear();
}

void PrefixStats::dump(std::string& out) {
  const std::lock_guard lock(mutex_);
  for (const auto& [prefix, counts] : counts_) {
    out += "PREFIX " + prefix + " get " + std::to_string(counts.gets) + " hit " +
           std::to_string(counts.hits) + " set " + std::to_string(counts.sets) + " del " +
           std::to_string(counts.deletes) + "\r\n";
  }
}

}  // namespace kvferry::route
