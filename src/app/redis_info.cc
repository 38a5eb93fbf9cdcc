#include "app/redis_info.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <unistd.h>

#include "app/front_sums.h"
#include "app/version.h"
#include "base/process_usage.h"
#include "protocol/redis_commands/command_table.h"
#include "protocol/resp/words.h"

namespace kvferry::app {
namespace {

using Sources = RedisInfoSources;

const std::chrono::steady_clock::time_point kStarted = std::chrono::steady_clock::now();

/// What clients of both protocols have asked for, and the errors of those of Redis.
struct Asked {
  std::uint64_t commands = 0;
  std::uint64_t errors = 0;
};

/// Calls `use(name, calls, microseconds, rejected, failed)` for each command that was ever asked
/// for.
template <typename Use>
void for_each_command(StatsRegistry& registry, Use use) {
  const auto services = registry.services();
  for (std::size_t id = 0; id <= redis::command_count(); ++id) {
    std::uint64_t calls = 0;
    std::uint64_t microseconds = 0;
    std::uint64_t rejected = 0;
    std::uint64_t failed = 0;
    for (const StatsRegistry::ServiceEntry& service : services) {
      if (const auto* const row = service.stats->resp.find(static_cast<redis::CommandId>(id));
          row != nullptr) {
        calls += row->calls.get();
        microseconds += row->microseconds.get();
        rejected += row->rejected.get();
        failed += row->failed.get();
      }
    }
    if (calls + rejected != 0) {
      use(id == redis::command_count() ? std::string_view("unknown")
                                       : redis::command(static_cast<redis::CommandId>(id)).name,
          calls, microseconds, rejected, failed);
    }
  }
}

Asked sum_asked(StatsRegistry& registry, const FrontSums& fronts) {
  Asked sums;
  for (const std::uint64_t requests : fronts.requests) {
    sums.commands += requests;
  }
  for_each_command(registry, [&](std::string_view, std::uint64_t calls, std::uint64_t,
                                 std::uint64_t rejected, std::uint64_t failed) {
    sums.commands += calls;
    sums.errors += rejected + failed;
  });
  return sums;
}

template <typename Value>
void line(std::string& out, std::string_view name, const Value& value) {
  fmt::format_to(std::back_inserter(out), "{}:{}\r\n", name, value);
}

void server(const Sources& sources, std::string& out) {
  const auto uptime =
      std::chrono::duration_cast<base::Seconds>(std::chrono::steady_clock::now() - kStarted)
          .count();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  line(out, "redis_version", kRedisVersion);
  line(out, "redis_mode", "standalone");
  line(out, "kvferry_version", kVersion);
  line(out, "os", "Linux");
  line(out, "arch_bits", sizeof(void*) * 8);
  line(out, "multiplexing_api", sources.io_engine);
  line(out, "process_id", getpid());
  line(out, "server_time_usec", std::chrono::duration_cast<base::Micros>(now).count());
  line(out, "uptime_in_seconds", uptime);
  line(out, "uptime_in_days", uptime / 86400);
  line(out, "io_threads_active", sources.workers);
}

void clients(const Sources& sources, std::string& out) {
  line(out, "connected_clients", sum_fronts(sources.registry).connections);
  line(out, "cluster_connections", 0);
  line(out, "maxclients", sources.clients.max());
  line(out, "blocked_clients", 0);
  line(out, "tracking_clients", 0);
}

void memory(const Sources& sources, std::string& out) {
  const store::StoreStats store = sources.store.snapshot();
  const std::uint64_t used = store.allocated_bytes + sources.budget.used_bytes();
  line(out, "used_memory", used);
  line(out, "used_memory_rss", base::read_process_usage().resident_bytes);
  line(out, "used_memory_dataset", store.bytes);
  line(out, "maxmemory", sources.serves_store ? store.limit_maxbytes : 0);
  line(out, "maxmemory_policy", sources.serves_store ? "allkeys-lru" : "noeviction");
  line(out, "mem_clients_normal", sources.budget.used_bytes());
}

void persistence(const Sources& /*sources*/, std::string& out) {
  line(out, "loading", 0);
  line(out, "async_loading", 0);
  line(out, "rdb_bgsave_in_progress", 0);
  line(out, "aof_enabled", 0);
}

void stats(const Sources& sources, std::string& out) {
  const FrontSums fronts = sum_fronts(sources.registry);
  const Asked asked = sum_asked(sources.registry, fronts);
  const store::StoreStats store = sources.store.snapshot();
  line(out, "total_connections_received", fronts.accepted);
  line(out, "total_commands_processed", asked.commands);
  line(out, "total_net_input_bytes", fronts.bytes_received);
  line(out, "total_net_output_bytes", fronts.bytes_sent);
  line(out, "rejected_connections", fronts.rejected);
  line(out, "evicted_keys", store.evictions);
  line(out, "pubsub_channels", 0);
  line(out, "pubsub_patterns", 0);
  line(out, "total_error_replies", asked.errors);
}

void replication(const Sources& /*sources*/, std::string& out) {
  line(out, "role", "master");
  line(out, "connected_slaves", 0);
  line(out, "master_repl_offset", 0);
}

void cpu(const Sources& /*sources*/, std::string& out) {
  const base::ProcessUsage usage = base::read_process_usage();
  const auto seconds = [](base::Micros micros) {
    return fmt::format("{:.6f}", static_cast<double>(micros.count()) / 1e6);
  };
  line(out, "used_cpu_sys", seconds(usage.cpu_system));
  line(out, "used_cpu_user", seconds(usage.cpu_user));
}

void cluster(const Sources& /*sources*/, std::string& out) {
  line(out, "cluster_enabled", 0);
}

void keyspace(const Sources& sources, std::string& out) {
  if (sources.serves_store) {
    line(out, "db0",
         fmt::format("keys={},expires=0,avg_ttl=0", sources.store.snapshot().curr_items));
  }
}

void command_stats(const Sources& sources, std::string& out) {
  for_each_command(
      sources.registry, [&](std::string_view name, std::uint64_t calls, std::uint64_t microseconds,
                            std::uint64_t rejected, std::uint64_t failed) {
        const double per_call =
            calls == 0 ? 0 : static_cast<double>(microseconds) / static_cast<double>(calls);
        line(out, fmt::format("cmdstat_{}", name),
             fmt::format("calls={},usec={},usec_per_call={:.2f},rejected_calls={},failed_calls={}",
                         calls, microseconds, per_call, rejected, failed));
      });
}

void backends(const Sources& sources, std::string& out) {
  struct Sum {
    std::string address;
    bool is_down = false;
    std::uint64_t requests = 0;
    std::uint64_t inflight = 0;
  };
  std::map<std::string, Sum> sums;  // Over the workers, by pool and label.
  for (const StatsRegistry::BackendEntry& entry : sources.registry.backends()) {
    Sum& sum = sums[entry.pool + "/" + entry.label];
    sum.address = entry.address;
    sum.is_down = entry.health->is_down();
    sum.requests += entry.stats->requests.get();
    sum.inflight += entry.stats->inflight.get();
  }
  for (const auto& [name, sum] : sums) {
    line(out, "backend_" + name,
         fmt::format("address={},state={},requests={},inflight={}", sum.address,
                     sum.is_down ? "down" : "up", sum.requests, sum.inflight));
  }
}

struct Section {
  std::string_view name;  // In small letters.
  std::string_view title;
  void (*compose)(const Sources&, std::string&);
  bool is_usual;
};

constexpr Section kSections[] = {
    {"server", "Server", server, true},
    {"clients", "Clients", clients, true},
    {"memory", "Memory", memory, true},
    {"persistence", "Persistence", persistence, true},
    {"stats", "Stats", stats, true},
    {"replication", "Replication", replication, true},
    {"cpu", "CPU", cpu, true},
    {"commandstats", "Commandstats", command_stats, false},
    {"cluster", "Cluster", cluster, true},
    {"keyspace", "Keyspace", keyspace, true},
    {"backends", "Backends", backends, false},
};

bool is_wanted(const Section& section, std::span<const std::string_view> names) {
  if (names.empty()) {
    return section.is_usual;
  }
  return std::ranges::any_of(names, [&](std::string_view name) {
    return resp::is_word(name, section.name) ||
           (section.is_usual && resp::is_word(name, "default")) || resp::is_word(name, "all") ||
           resp::is_word(name, "everything");
  });
}

}  // namespace

void compose_redis_info(const RedisInfoSources& sources, std::span<const std::string_view> names,
                        std::string& out) {
  const std::size_t begin = out.size();
  for (const Section& section : kSections) {
    if (is_wanted(section, names)) {
      out.append(out.size() == begin ? "# " : "\r\n# ").append(section.title).append("\r\n");
      section.compose(sources, out);
    }
  }
}

std::vector<std::pair<std::string, std::string>> redis_settings(const RedisInfoSources& sources) {
  const std::uint64_t maxmemory =
      sources.serves_store ? sources.store.snapshot().limit_maxbytes : 0;
  return {
      {"appendonly", "no"},
      {"databases", "16"},
      {"maxclients", fmt::format("{}", sources.clients.max())},
      {"maxmemory", fmt::format("{}", maxmemory)},
      {"maxmemory-policy", sources.serves_store ? "allkeys-lru" : "noeviction"},
      {"notify-keyspace-events", ""},
      {"proto-max-bulk-len", "536870912"},
      {"save", ""},
      {"timeout", "0"},
  };
}

}  // namespace kvferry::app
