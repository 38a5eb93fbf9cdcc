#include "pool/mcp_stats.h"

namespace kvferry::pool {

std::shared_ptr<McpLabelStats> McpStats::add_label(std::string label) {
  auto stats = std::make_shared<McpLabelStats>();
  stats->label = std::move(label);
  const std::lock_guard lock(mutex_);
  std::erase_if(labels_, [](const auto& known) { return known.expired(); });
  labels_.push_back(stats);
  return stats;
}

std::vector<std::pair<std::string, std::uint64_t>> McpStats::bad_links() const {
  std::vector<std::pair<std::string, std::uint64_t>> bad;
  const std::lock_guard lock(mutex_);
  for (const auto& known : labels_) {
    const auto stats = known.lock();
    if (stats != nullptr && stats->bad_links.get() != 0) {
      bad.emplace_back(stats->label, stats->bad_links.get());
    }
  }
  return bad;
}

}  // namespace kvferry::pool
