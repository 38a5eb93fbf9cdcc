#include "app/front_sums.h"

namespace kvferry::app {

FrontSums sum_fronts(StatsRegistry& registry) {
  FrontSums sums;
  for (const auto& entry : registry.services()) {
    const front::ServiceStats& stats = *entry.stats;
    sums.connections += stats.connections.get();
    sums.accepted += stats.connections_accepted.get();
    sums.rejected += stats.connections_rejected.get();
    sums.bytes_received += stats.bytes_received.get();
    sums.bytes_sent += stats.bytes_sent.get();
    sums.authentications += stats.authentications.get();
    sums.authentications_failed += stats.authentications_failed.get();
    sums.parse_errors += stats.parse_errors.get();
    sums.memory_refusals += stats.memory_refusals.get();
    sums.inflight += stats.inflight.get();
    for (std::size_t i = 0; i < sums.requests.size(); ++i) {
      sums.requests[i] += stats.requests[i].get();
    }
    for (std::size_t i = 0; i < sums.replies.size(); ++i) {
      sums.replies[i] += stats.replies[i].get();
    }
  }
  return sums;
}

}  // namespace kvferry::app
