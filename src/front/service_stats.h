// What one listener has done on one worker; summed over workers when somebody looks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

#include "base/counter.h"
#include "base/histogram.h"
#include "front/resp_stats.h"
#include "protocol/memcache/command.h"
#include "protocol/memcache/reply.h"

namespace kvferry::front {

inline constexpr std::size_t kReplyCodeCount =
    static_cast<std::size_t>(memcache::ReplyCode::Other) + 1;

/// One histogram a command, made when the command is first seen: most listeners see few.
class CommandLatencies {
 public:
  CommandLatencies() = default;
  CommandLatencies(const CommandLatencies&) = delete;
  CommandLatencies& operator=(const CommandLatencies&) = delete;
  ~CommandLatencies() {
    for (auto& histogram : histograms_) {
      delete histogram.load(std::memory_order_relaxed);  // NOLINT(cppcoreguidelines-owning-memory):
                                                         // published once by an atomic pointer
    }
  }
  /// Owning thread.
  void record(memcache::Command command, base::Nanos latency) noexcept {
    std::atomic<base::Histogram*>& place = histograms_[static_cast<std::size_t>(command)];
    base::Histogram* histogram = place.load(std::memory_order_relaxed);
    if (histogram == nullptr) [[unlikely]] {
      // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): see the destructor
      histogram = new base::Histogram;
      place.store(histogram, std::memory_order_release);
    }
    histogram->record(latency);
  }
  /// Any thread; null while the command was not seen.
  const base::Histogram* find(memcache::Command command) const noexcept {
    return histograms_[static_cast<std::size_t>(command)].load(std::memory_order_acquire);
  }

 private:
  std::array<std::atomic<base::Histogram*>, memcache::kCommandCount> histograms_{};
};

struct ServiceStats {
  base::Counter connections;  // Gauge.
  base::Counter connections_accepted;
  base::Counter connections_rejected;  // Over a limit of clients.
  base::Counter clients_stalled;       // Closed because they did not read.
  base::Counter bodies_stalled;        // Streamed values given up because the rest did not come.
  base::Counter bytes_received;
  base::Counter bytes_sent;
  base::Counter authentications;
  base::Counter authentications_failed;
  base::Counter parse_errors;
  base::Counter memory_refusals;  // Requests refused because the memory limit was reached.
  base::Counter inflight;         // Gauge.
  std::array<base::Counter, memcache::kCommandCount> requests;
  std::array<base::Counter, kReplyCodeCount> replies;  // By code, hidden ones included.
  CommandLatencies latencies;
  RespStats resp;  // Of clients of Redis.
};

}  // namespace kvferry::front
