#include "app/metrics.h"

#include <algorithm>
#include <map>
#include <utility>

#include "protocol/redis_commands/command_table.h"

namespace kvferry::app {
namespace {

admin::FrontMetrics& front_of(std::vector<admin::FrontMetrics>& fronts,
                              const StatsRegistry::ServiceEntry& entry) {
  // Listeners of one pool are shown together, under the address of the first.
  const std::string name = entry.pool.empty() ? "store" : entry.pool;
  const auto found =
      std::find_if(fronts.begin(), fronts.end(),
                   [&](const admin::FrontMetrics& front) { return front.name == name; });
  if (found != fronts.end()) {
    return *found;
  }
  admin::FrontMetrics front;
  front.name = name;
  front.address = entry.address;
  for (std::size_t i = 0; i < memcache::kCommandCount; ++i) {
    admin::CommandMetrics command;
    command.command = memcache::command_name(static_cast<memcache::Command>(i));
    front.commands.push_back(std::move(command));
  }
  // Behind them those of Redis, of which many have the same names.
  for (std::size_t id = 0; id <= redis::command_count(); ++id) {
    admin::CommandMetrics command;
    command.command = "redis:";
    command.command += id == redis::command_count()
                           ? std::string_view("unknown")
                           : redis::command(static_cast<redis::CommandId>(id)).name;
    front.commands.push_back(std::move(command));
  }
  front.errors = {{"error", 0},  {"client_error", 0},   {"server_error", 0}, {"parse", 0},
                  {"memory", 0}, {"stalled_client", 0}, {"stalled_body", 0}};
  fronts.push_back(std::move(front));
  return fronts.back();
}

void add(admin::FrontMetrics& front, const front::ServiceStats& stats) {
  const auto replies = [&](memcache::ReplyCode code) {
    return stats.replies[static_cast<std::size_t>(code)].get();
  };
  front.connections += stats.connections.get();
  front.connections_total += stats.connections_accepted.get();
  front.connections_rejected += stats.connections_rejected.get();
  front.bytes_in += stats.bytes_received.get();
  front.bytes_out += stats.bytes_sent.get();
  for (std::size_t i = 0; i < memcache::kCommandCount; ++i) {
    front.commands[i].requests += stats.requests[i].get();
    if (const base::Histogram* latency = stats.latencies.find(static_cast<memcache::Command>(i))) {
      front.commands[i].latency.add(*latency);
    }
  }
  for (std::size_t id = 0; id <= redis::command_count(); ++id) {
    if (const auto* row = stats.resp.find(static_cast<redis::CommandId>(id)); row != nullptr) {
      front.commands[memcache::kCommandCount + id].requests +=
          row->calls.get() + row->rejected.get();
    }
  }
  front.errors[0].value += replies(memcache::ReplyCode::Error);
  front.errors[1].value += replies(memcache::ReplyCode::ClientError);
  front.errors[2].value += replies(memcache::ReplyCode::ServerError);
  front.errors[3].value += stats.parse_errors.get();
  front.errors[4].value += stats.memory_refusals.get();
  front.errors[5].value += stats.clients_stalled.get();
  front.errors[6].value += stats.bodies_stalled.get();
}

admin::BackendMetrics& backend_of(std::vector<admin::BackendMetrics>& backends,
                                  const StatsRegistry::BackendEntry& entry) {
  const auto found =
      std::find_if(backends.begin(), backends.end(), [&](const admin::BackendMetrics& backend) {
        return backend.pool == entry.pool && backend.label == entry.label;
      });
  if (found != backends.end()) {
    return *found;
  }
  admin::BackendMetrics backend;
  backend.pool = entry.pool;
  backend.label = entry.label;
  backend.address = entry.address;
  if (entry.health->is_down()) {
    backend.state = entry.is_ejecting ? admin::BackendState::Ejected : admin::BackendState::Down;
  }
  for (std::size_t i = 0; i < pool::kFailureKinds; ++i) {
    backend.errors.push_back(
        {std::string(pool::failure_name(static_cast<pool::FailureKind>(i))), 0});
  }
  backends.push_back(std::move(backend));
  return backends.back();
}

void add(admin::BackendMetrics& backend, const pool::BackendStats& stats) {
  backend.links += stats.links_up.get();
  backend.inflight += stats.inflight.get();
  backend.queue_bytes += stats.queue_bytes.get();
  backend.requests += stats.requests.get();
  backend.bytes_in += stats.bytes_received.get();
  backend.bytes_out += stats.bytes_sent.get();
  backend.connects += stats.connects.get();
  for (std::size_t i = 0; i < pool::kFailureKinds; ++i) {
    backend.errors[i].value += stats.failures[i].get();
  }
  backend.latency.add(stats.latency);
}

}  // namespace

admin::MetricsModel collect_metrics(StatsRegistry& registry, store::Store& store) {
  admin::MetricsModel model;
  bool serves_store = false;
  for (const auto& entry : registry.services()) {
    serves_store = serves_store || entry.pool.empty();
    add(front_of(model.fronts, entry), *entry.stats);
  }
  for (admin::FrontMetrics& front : model.fronts) {
    std::erase_if(front.commands,
                  [](const admin::CommandMetrics& command) { return command.requests == 0; });
  }
  for (const auto& entry : registry.backends()) {
    add(backend_of(model.backends, entry), *entry.stats);
  }
  if (serves_store) {
    for (const route::StatLine& stat :
         route::store_stat_lines(registry.store_totals(), store.snapshot())) {
      model.store.push_back({std::string(stat.name), stat.value});
    }
  }
  return model;
}

}  // namespace kvferry::app
