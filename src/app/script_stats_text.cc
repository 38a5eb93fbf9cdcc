#include "app/script_stats_text.h"

#include <array>
#include <map>

namespace kvferry::app {

using memcache::Command;

namespace {

constexpr std::array kCounted = {
    Command::Mg,    Command::Ms,     Command::Md,      Command::Mn,     Command::Ma,
    Command::Me,    Command::Get,    Command::Gat,     Command::Set,    Command::Add,
    Command::Cas,   Command::Gets,   Command::Gats,    Command::Incr,   Command::Decr,
    Command::Touch, Command::Append, Command::Prepend, Command::Delete, Command::Replace};

void add_row(std::string& out, std::string_view name, std::uint64_t value) {
  out.append("STAT ").append(name).append(" ").append(std::to_string(value)).append("\r\n");
}

template <typename Read>
std::uint64_t sum(const ScriptControl& scripts, Read read) {
  std::uint64_t total = 0;
  for (const auto& figures : scripts.shared().figures) {
    total += read(*figures);
  }
  return total;
}

void compose_proxy(const ScriptControl& scripts, std::string& out) {
  for (const auto& [name, value] : scripts.user_counters()) {
    add_row(out, "user_" + name, value);
  }
  add_row(out, "active_req_limit", scripts.active_request_limit());
  add_row(out, "buffer_memory_limit", scripts.buffer_memory_limit());
  add_row(out, "buffer_memory_used",
          sum(scripts, [](const ScriptFigures& each) { return each.stats.buffer_bytes.get(); }));
  add_row(out, "vm_gc_runs",
          sum(scripts, [](const ScriptFigures& each) { return each.stats.gc_runs.get(); }));
  add_row(out, "vm_memory_kb", sum(scripts, [](const ScriptFigures& each) {
                                 return each.stats.memory_bytes.get();
                               }) / 1024);
  for (const Command command : kCounted) {
    add_row(out, "cmd_" + std::string(memcache::command_name(command)),
            sum(scripts, [command](const ScriptFigures& each) {
              return each.stats.commands[static_cast<std::size_t>(command)].get();
            }));
  }
}

void compose_functions(const ScriptControl& scripts, std::string& out) {
  const lua::NameCounts::Counts slots = scripts.shared().names.slots();
  for (const auto& [name, count] : scripts.shared().names.generators()) {
    if (count <= 0) {
      continue;
    }
    add_row(out, "funcs_" + name, static_cast<std::uint64_t>(count));
    const auto found = slots.find(name);
    const std::int64_t live = found == slots.end() ? 0 : found->second;
    add_row(out, "slots_" + name, static_cast<std::uint64_t>(live));
  }
}

void compose_backends(const ScriptControl& scripts, std::string& out) {
  std::map<std::string, std::uint64_t> bad;
  for (const auto& figures : scripts.shared().figures) {
    for (const auto& [label, count] : figures->backends->bad_links()) {
      bad[label] += count;
    }
  }
  for (const auto& [label, count] : bad) {
    add_row(out, "bad_" + label, count);
  }
}

}  // namespace

bool compose_script_stats(const ScriptControl& scripts, std::string_view words, std::string& out) {
  if (words == "proxy") {
    compose_proxy(scripts, out);
  } else if (words == "proxyfuncs") {
    compose_functions(scripts, out);
  } else if (words == "proxybe") {
    compose_backends(scripts, out);
  } else {
    return false;
  }
  out += "END\r\n";
  return true;
}

std::string compose_script_rows(const ScriptControl& scripts, std::uint64_t front_errors) {
  const ScriptControl::Counts counts = scripts.counts();
  std::string out;
  add_row(out, "proxy_conn_requests",
          sum(scripts, [](const ScriptFigures& each) { return each.stats.requests.get(); }));
  add_row(out, "proxy_conn_errors", front_errors);
  add_row(out, "proxy_conn_oom", 0);
  add_row(out, "proxy_req_active",
          sum(scripts, [](const ScriptFigures& each) { return each.stats.active.get(); }));
  add_row(out, "proxy_config_reloads", counts.reloads);
  add_row(out, "proxy_config_reload_fails", counts.reload_fails);
  add_row(out, "proxy_config_cron_runs", counts.cron_runs);
  add_row(out, "proxy_config_cron_fails", counts.cron_fails);
  add_row(out, "proxy_backend_total",
          sum(scripts, [](const ScriptFigures& each) { return each.backends->backends.get(); }));
  add_row(out, "proxy_backend_marked_bad",
          sum(scripts, [](const ScriptFigures& each) { return each.backends->marked_bad.get(); }));
  add_row(out, "proxy_backend_failed",
          sum(scripts, [](const ScriptFigures& each) { return each.backends->failed.get(); }));
  add_row(out, "proxy_request_failed_depth", sum(scripts, [](const ScriptFigures& each) {
            return each.backends->failed_depth.get();
          }));
  return out;
}

}  // namespace kvferry::app
