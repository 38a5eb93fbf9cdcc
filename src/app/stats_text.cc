#include "app/stats_text.h"

#include <array>
#include <chrono>
#include <initializer_list>
#include <sys/resource.h>
#include <unistd.h>

#include "app/front_sums.h"
#include "app/stats_lists.h"
#include "app/version.h"

namespace kvferry::app {

using memcache::Command;

namespace {

/// When this process began; what uptime counts from.
const std::chrono::steady_clock::time_point kStarted = std::chrono::steady_clock::now();

void line(std::string& out, std::string_view name, std::string_view value) {
  out.append("STAT ").append(name).append(" ").append(value).append("\r\n");
}
void line(std::string& out, std::string_view name, std::uint64_t value) {
  line(out, name, std::to_string(value));
}

std::string seconds_of(const timeval& time) {
  std::string micros = std::to_string(time.tv_usec);
  micros.insert(0, 6 - micros.size(), '0');
  return std::to_string(time.tv_sec) + "." + micros;
}

void general(const StatsSources& sources, std::string& out) {
  const FrontSums sums = sum_fronts(sources.registry);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto uptime =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - kStarted);
  line(out, "pid", static_cast<std::uint64_t>(getpid()));
  line(out, "uptime", static_cast<std::uint64_t>(uptime.count()));
  line(out, "time",
       static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count()));
  line(out, "version", kProtocolVersion);
  line(out, "pointer_size", sizeof(void*) * 8);
  line(out, "rusage_user", seconds_of(usage.ru_utime));
  line(out, "rusage_system", seconds_of(usage.ru_stime));
  line(out, "max_connections", sources.clients.max());
  line(out, "curr_connections", sums.connections);
  line(out, "total_connections", sums.accepted);
  line(out, "rejected_connections", sums.rejected);
  line(out, "auth_cmds", sums.authentications);
  line(out, "auth_errors", sums.authentications_failed);
  line(out, "bytes_read", sums.bytes_received);
  line(out, "bytes_written", sums.bytes_sent);
  line(out, "accepting_conns", 1);
  line(out, "threads", sources.threads);
  const watch::HubStats watched = sources.watch.stats();
  line(out, "log_worker_written", watched.written);
  line(out, "log_watcher_skipped", watched.skipped);
  line(out, "log_watcher_sent", watched.sent);
  line(out, "log_watchers", watched.watchers);
  line(out, "proxy_conn_requests",
       sums.of({Command::Get, Command::Gets, Command::Gat, Command::Gats, Command::Set,
                Command::Add, Command::Replace, Command::Append, Command::Prepend, Command::Cas,
                Command::Incr, Command::Decr, Command::Touch, Command::Delete, Command::Mg,
                Command::Ms, Command::Md, Command::Ma, Command::Me}));
  line(out, "proxy_conn_errors", sums.parse_errors);
  line(out, "proxy_conn_oom", sums.memory_refusals);
  line(out, "proxy_req_active", sums.inflight);
}

void proxy(const StatsSources& sources, std::string& out) {
  const FrontSums sums = sum_fronts(sources.registry);
  line(out, "buffer_memory_limit", sources.budget.limit_bytes());
  line(out, "buffer_memory_used", sources.budget.used_bytes());
  for (std::size_t i = 1; i <= static_cast<std::size_t>(Command::Delete); ++i) {
    line(out, "cmd_" + std::string(memcache::command_name(static_cast<Command>(i))),
         sums.requests[i]);
  }
}

/// Names that monitoring reads and that have no counterpart here.
void idle(std::string& out) {
  constexpr std::array kNames = {"connection_structures",
                                 "response_obj_oom",
                                 "response_obj_count",
                                 "response_obj_bytes",
                                 "read_buf_count",
                                 "read_buf_bytes",
                                 "read_buf_bytes_free",
                                 "read_buf_oom",
                                 "reserved_fds",
                                 "listen_disabled_num",
                                 "time_in_listen_disabled_us",
                                 "conn_yields",
                                 "slab_reassign_rescues",
                                 "slab_reassign_chunk_rescues",
                                 "slab_reassign_inline_reclaim",
                                 "slab_reassign_busy_items",
                                 "slab_reassign_busy_deletes",
                                 "slab_reassign_busy_nomem",
                                 "slab_reassign_last_busy_status",
                                 "slab_reassign_running",
                                 "slabs_moved",
                                 "lru_crawler_running",
                                 "lru_crawler_starts",
                                 "lru_maintainer_juggles",
                                 "malloc_fails",
                                 "log_worker_dropped",
                                 "unexpected_napi_ids",
                                 "round_robin_fallback",
                                 "slab_global_page_pool",
                                 "lrutail_reflocked",
                                 "moves_to_cold",
                                 "direct_reclaims",
                                 "lru_bumps_dropped"};
  for (const char* name : kNames) {
    line(out, name, 0);
  }
}

void backends(const StatsSources& sources, std::string& out) {
  for (const auto& entry : sources.registry.backends()) {
    const std::string prefix = entry.pool + ":" + entry.label + ":";
    const pool::BackendStats& stats = *entry.stats;
    line(out, prefix + "address", entry.address);
    line(out, prefix + "state",
         entry.health->is_down() ? (entry.is_ejecting ? "ejected" : "down") : "up");
    line(out, prefix + "links", stats.links_up.get());
    line(out, prefix + "inflight", stats.inflight.get());
    line(out, prefix + "requests", stats.requests.get());
    line(out, prefix + "bytes_sent", stats.bytes_sent.get());
    line(out, prefix + "bytes_received", stats.bytes_received.get());
    for (std::size_t i = 0; i < pool::kFailureKinds; ++i) {
      line(out,
           prefix + "failed_" + std::string(pool::failure_name(static_cast<pool::FailureKind>(i))),
           stats.failures[i].get());
    }
  }
}

}  // namespace

bool compose_stats(const StatsSources& sources, std::string_view words, std::string& out) {
  const std::string_view word = words.substr(0, words.find(' '));
  const std::string_view list = find_stats_list(word);
  if (word.empty()) {
    general(sources, out);
    for (const route::StatLine& stat :
         route::store_stat_lines(sources.registry.store_totals(), sources.store.snapshot())) {
      line(out, stat.name, stat.value);
    }
    idle(out);
  } else if (list == "proxy") {
    proxy(sources, out);
  } else if (list == "reset") {
    sources.registry.reset_store_totals();
    sources.store.reset_counters();
    sources.prefixes.reset();
    out += "RESET\r\n";
    return true;
  } else if (list == "settings") {
    append_settings(sources, out);
  } else if (list == "proxybe") {
    backends(sources, out);
  } else if (list == "items") {
    append_items(sources, out);
  } else if (list == "slabs") {
    append_slabs(sources, out);
  } else if (list == "sizes") {
    line(out, "sizes_status", std::string_view("disabled"));
  } else if (list == "conns") {
    append_connections(sources, out);
  } else if (list == "detail") {
    answer_detail(sources, words, out);
    return true;
  } else if (list == "cachedump") {
    answer_cachedump(sources, words, out);
    return true;
  } else {
    return false;
  }
  out += "END\r\n";
  return true;
}

}  // namespace kvferry::app
