// MetricsModel: everything that admin shows, as plain numbers. The app fills one for each scrape by
// summing the workers' counters; nothing in it points back into the data plane.
//
// Names of the lists (commands, kinds of errors, store values) are those of the rooms they come
// from; each becomes a label value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/process_usage.h"

namespace kvferry::admin {

struct NamedCount {
  std::string name;
  std::uint64_t value = 0;
};

struct ProcessMetrics {
  std::string version = {};
  std::string io_engine = {};  // "io_uring" or "epoll".
  base::Seconds uptime{0};
  std::uint32_t workers = 0;
  bool is_draining = false;
  base::ProcessUsage usage{};
  std::uint64_t memory_used_bytes = 0;   // Of the memory budget.
  std::uint64_t memory_limit_bytes = 0;  // 0: no limit.
  std::uint64_t config_version = 0;      // Counts applied configurations, the first is 1.
  std::uint64_t reloads_ok = 0;
  std::uint64_t reloads_failed = 0;
  std::string last_reload_error = {};  // Empty when the last reload was fine.
  std::uint64_t log_lines_lost = 0;
  std::uint64_t admin_connections_rejected = 0;
};

struct CommandMetrics {
  std::string command = {};
  std::uint64_t requests = 0;
  base::HistogramSum latency{};  // Request parsed to reply queued; empty when not measured.
};

/// One listener with the pool or store behind it.
struct FrontMetrics {
  std::string name = {};
  std::string address = {};
  std::uint64_t connections = 0;
  std::uint64_t connections_total = 0;
  std::uint64_t connections_rejected = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::vector<CommandMetrics> commands = {};
  std::vector<NamedCount> errors = {};  // Error replies by kind.
};

enum class BackendState : std::uint8_t { Up, Down, Ejected };
/// "up", "down" or "ejected".
std::string_view backend_state_name(BackendState state) noexcept;

struct BackendMetrics {
  std::string pool = {};
  std::string label = {};
  std::string address = {};
  BackendState state = BackendState::Up;
  std::uint64_t links = 0;
  std::uint64_t inflight = 0;
  std::uint64_t queue_bytes = 0;
  std::uint64_t requests = 0;
  std::uint64_t bytes_in = 0;   // Received from the backend.
  std::uint64_t bytes_out = 0;  // Sent to it.
  std::uint64_t connects = 0;
  std::uint64_t ejections = 0;
  std::vector<NamedCount> errors = {};  // Failed calls by kind.
  base::HistogramSum latency{};         // Queued to answered.
};

/// TLS connections with one kind of peer.
struct TlsMetrics {
  std::string peer = {};  // "client" or "backend".
  std::uint64_t handshakes = 0;
  std::uint64_t resumed = 0;
  std::vector<NamedCount> failures = {};  // By kind.
};

struct MetricsModel {
  ProcessMetrics process{};
  std::vector<FrontMetrics> fronts = {};
  std::vector<BackendMetrics> backends = {};
  std::vector<NamedCount> routes = {};  // What native routes count, by name.
  std::vector<NamedCount> near_caches =
      {};                            // What their copies take, by name; empty: there are none.
  std::vector<TlsMetrics> tls = {};  // Empty when nobody speaks TLS.
  std::vector<NamedCount> certificates = {};  // Their ends, in seconds since 1970, by place.
  std::vector<NamedCount> store = {};         // Empty when no embedded store is served.
};

/// Text for Prometheus (MetricsWriter's format).
std::string compose_metrics(const MetricsModel& model);

/// The same state as one JSON object, with latency quantiles in microseconds, for people and
/// scripts.
std::string compose_state_json(const MetricsModel& model);

}  // namespace kvferry::admin
