#include "config/show.h"

#include <algorithm>
#include <fmt/format.h>
#include <span>
#include <string_view>
#include <utility>

#include "config/choices.h"
#include "config/key_table.h"
#include "config/route_reader.h"
#include "config/scalar.h"
#include "config/tls_reader.h"

namespace kvferry::config {
namespace {

bool is_plain(char byte) {
  constexpr std::string_view kOthers = "_./-:";
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || kOthers.find(byte) != std::string_view::npos;
}

/// `text` as a YAML scalar: bare when every parser reads it as it stands, else in quotes.
std::string scalar(std::string_view text) {
  const bool is_bare = !text.empty() && std::all_of(text.begin(), text.end(), is_plain) &&
                       text.front() != '-' && text.front() != ':' && text.back() != ':';
  if (is_bare) {
    return std::string(text);
  }
  std::string out = "\"";
  for (const char byte : text) {
    if (byte == '"' || byte == '\\') {
      out.push_back('\\');
    }
    if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    } else {
      out.push_back(byte);
    }
  }
  out.push_back('"');
  return out;
}

std::string_view bool_text(bool flag) {
  return flag ? "true" : "false";
}

template <typename Enum, std::size_t Size>
std::string_view word(const std::array<std::string_view, Size>& words, Enum value) {
  return words[static_cast<std::size_t>(value)];
}

std::string secret_text(const Secret& secret) {
  switch (secret.kind) {
    case Secret::Kind::File:
      return scalar("file:" + secret.text);
    case Secret::Kind::Environment:
      return scalar("env:" + secret.text);
    case Secret::Kind::None:
    case Secret::Kind::Text:
      break;
  }
  return "\"***\"";
}

std::string endpoint_text(const Endpoint& endpoint) {
  return scalar(endpoint.mode ? fmt::format("{} {:04o}", endpoint.path, *endpoint.mode)
                              : endpoint.to_string());
}

std::string server_text(const pool::ServerOptions& server, bool with_weight) {
  std::string out = server.host;
  if (!server.is_unix) {
    const bool is_v6 = server.host.find(':') != std::string::npos;
    out = is_v6 ? fmt::format("[{}]:{}", server.host, server.port)
                : fmt::format("{}:{}", server.host, server.port);
  }
  if (with_weight) {
    out += fmt::format(":{}", server.weight);
  }
  return scalar(server.name.empty() ? out : out + " " + server.name);
}

/// Default of our own dialect, as the table of keys has it.
template <typename Target>
std::string_view default_of(std::span<const Key<Target>> keys, std::string_view name) {
  for (const Key<Target>& key : keys) {
    if (key.info.name == name) {
      return key.info.default_text;
    }
  }
  return {};
}

/// Lines of one mapping; leaves defaults out when only changes are wanted.
template <typename Target>
class Lines {
 public:
  Lines(std::span<const Key<Target>> keys, YamlForm form, std::string_view indent)
      : keys_(keys), form_(form), indent_(indent) {}

  void add(std::string_view key, std::string_view text) {
    if (form_ == YamlForm::Everything || text != default_of(keys_, key)) {
      text_ += fmt::format("{}{}: {}\n", indent_, key, text);
    }
  }
  void add_raw(std::string_view lines) { text_ += lines; }
  const std::string& text() const noexcept { return text_; }

 private:
  std::span<const Key<Target>> keys_;
  YamlForm form_;
  std::string_view indent_;
  std::string text_;
};

/// On one line. Files that are not named are left out, as are the defaults that have no words.
std::string tls_text(const net::TlsOptions& tls) {
  std::string out;
  const auto add = [&out](std::string_view key, std::string_view text) {
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", key, text);
  };
  const std::pair<std::string_view, const std::string*> files[] = {{"cert", &tls.cert},
                                                                   {"key", &tls.key},
                                                                   {"ca", &tls.ca},
                                                                   {"sni", &tls.sni},
                                                                   {"ciphers", &tls.ciphers}};
  for (const auto& [key, text] : files) {
    if (!text->empty()) {
      add(key, scalar(*text));
    }
  }
  add("verify", verify_word(tls));
  add("min_version", tls.min_version == net::TlsVersion::V13 ? "1.3" : "1.2");
  return "{" + out + "}";
}

bool is_ordinary(const ListenerOptions& listener) {
  ListenerOptions ordinary;
  ordinary.endpoint = listener.endpoint;
  ordinary.reuse_port = listener.reuse_port;
  return listener == ordinary;
}

std::string listeners_text(const std::vector<ListenerOptions>& listeners, YamlForm form,
                           std::string_view indent) {
  if (listeners.empty()) {
    return {};
  }
  std::string out = fmt::format("{}listen:\n", indent);
  for (const ListenerOptions& listener : listeners) {
    const std::string address = endpoint_text(listener.endpoint);
    if (form == YamlForm::Changes && is_ordinary(listener)) {
      out += fmt::format("{}  - {}\n", indent, address);
    } else {
      const std::string tls = listener.tls ? ", tls: " + tls_text(*listener.tls) : "";
      const std::string protocol =
          listener.protocol
              ? fmt::format(", protocol: {}", word(kListenerProtocolWords, *listener.protocol))
              : std::string();
      out += fmt::format("{}  - {{address: {}, backlog: {}, max_clients: {}, admin: {}{}{}}}\n",
                         indent, address, listener.backlog, listener.max_clients,
                         bool_text(listener.is_admin), protocol, tls);
    }
  }
  return out;
}

void add_redis(const PoolConfig& pool, Lines<PoolDraft>& lines) {
  const pool::RedisOptions& redis = pool.options.redis;
  if (!pool.is_redis()) {
    return;
  }
  if (!redis.user.empty()) {
    lines.add("redis_user", scalar(redis.user));
  }
  lines.add("databases", fmt::format("{}", redis.databases));
  lines.add("db_base", fmt::format("{}", redis.db_base));
  lines.add("same_slot", word(kSameSlotWords, redis.same_slot));
  lines.add("broadcast_timeout", millis_text(redis.broadcast_timeout.count()));
  lines.add("max_merge_bytes", bytes_text(redis.max_merge_bytes));
}

std::string servers_text(const PoolConfig& pool) {
  std::string out = "  servers:\n";
  for (const pool::ServerOptions& server : pool.options.servers) {
    out += fmt::format("    - {}\n", server_text(server, pool.options.placement.weights_given));
  }
  return out;
}

void add_placement(const pool::PlacementOptions& placement, Lines<PoolDraft>& lines) {
  lines.add("hash", word(kHashWords, placement.hash));
  if (!placement.hash_tag.empty()) {
    lines.add("hash_tag", scalar(placement.hash_tag));
  }
  lines.add("distribution", word(kDistributionWords, placement.distribution));
  lines.add("ketama_naming", word(kNamingWords, placement.naming));
}

void add_times(const pool::PoolOptions& options, Lines<PoolDraft>& lines) {
  // "0" and not "0s": the table of keys has the default of nutcracker files in that form.
  lines.add("timeout", options.timeout ? millis_text(options.timeout->count()) : "0");
  lines.add("connect_timeout", millis_text(options.connect_timeout.count()));
  lines.add("stall_timeout", millis_text(options.stall_timeout.count()));
  lines.add("body_timeout", millis_text(options.body_timeout.count()));
  lines.add("server_retry_timeout", millis_text(options.retry_timeout.count()));
  lines.add("backoff_min", millis_text(options.backoff_min.count()));
  lines.add("backoff_max", millis_text(options.backoff_max.count()));
}

std::string pool_text(const PoolConfig& pool, YamlForm form) {
  const pool::PoolOptions& options = pool.options;
  Lines<PoolDraft> lines(pool_keys(), form, "  ");
  lines.add_raw(fmt::format("{}:\n  dialect: kvferry\n", scalar(pool.name)));
  lines.add("protocol", word(kProtocolWords, pool.protocol));
  lines.add_raw(listeners_text(pool.listeners, form, "  "));
  lines.add("reuseport", bool_text(!pool.listeners.empty() && pool.listeners.front().reuse_port));
  lines.add("client_idle_timeout", millis_text(pool.client_idle_timeout.count()));
  add_placement(options.placement, lines);
  add_times(options, lines);
  lines.add("server_connections", fmt::format("{}", options.server_connections));
  lines.add("preconnect", bool_text(options.preconnect));
  lines.add("tcpkeepalive", bool_text(options.tcpkeepalive));
  if (options.tls) {
    lines.add("tls", tls_text(*options.tls));
  }
  lines.add("on_down", word(kOnDownWords, options.on_down));
  lines.add("server_failure_limit", fmt::format("{}", options.failure_limit));
  lines.add("max_inflight", fmt::format("{}", options.max_inflight));
  lines.add("max_queue_bytes", bytes_text(options.max_queue_bytes));
  lines.add("on_partial", word(kOnPartialWords, options.on_partial));
  lines.add("error_style", word(kErrorStyleWords, options.error_style));
  if (pool.redis_auth.is_set()) {
    lines.add("redis_auth", secret_text(pool.redis_auth));
  }
  add_redis(pool, lines);
  return lines.text() + (options.servers.empty() ? "" : servers_text(pool));
}

std::string log_text(const base::LogOptions& log, YamlForm form) {
  Lines<base::LogOptions> lines(log_keys(), form, "    ");
  if (!log.file.empty()) {
    lines.add("file", scalar(log.file));
  }
  lines.add("level", word(kLogLevelWords, log.level));
  lines.add("format", word(kLogFormatWords, log.format));
  return lines.text();
}

std::string admin_text(const AdminOptions& admin, YamlForm form) {
  Lines<AdminOptions> lines(admin_keys(), form, "    ");
  lines.add("listen", endpoint_text(admin.endpoint));
  if (admin.token.is_set()) {
    lines.add("token", secret_text(admin.token));
  }
  return lines.text();
}

std::string store_text(const StoreOptions& store, YamlForm form) {
  Lines<StoreOptions> lines(store_keys(), form, "    ");
  lines.add("memory", bytes_text(store.memory_bytes));
  lines.add("item_size_max", bytes_text(store.item_bytes_max));
  if (!store.snapshot.empty()) {
    lines.add("snapshot", scalar(store.snapshot));
  }
  lines.add("on_bad_snapshot", word(kOnBadSnapshotWords, store.on_bad_snapshot));
  lines.add("snapshot_timeout", millis_text(store.snapshot_timeout.count()));
  return lines.text();
}

std::string route_text(const route::RouteSpec& spec);

std::string children_text(const route::RouteSpec& spec) {
  std::string out;
  for (std::size_t i = 0; i < spec.children.size(); ++i) {
    out += i == 0 ? "" : ", ";
    out += spec.zones.empty() ? "" : scalar(spec.zones[i]) + ": ";
    out += route_text(spec.children[i]);
  }
  return spec.zones.empty() ? fmt::format("children: [{}]", out)
                            : fmt::format("children: {{{}}}", out);
}

std::string counter_text(const route::RouteSpec& spec) {
  return spec.counter.empty() ? ", stats: false"
                              : fmt::format(", stats_name: {}", scalar(spec.counter));
}

std::string commands_text(const route::RouteSpec& spec) {
  std::string out;
  for (std::size_t i = 0; i < spec.children.size(); ++i) {
    out += fmt::format("{}{}: {}", i == 0 ? "" : ", ",
                       i < spec.commands.size() ? memcache::command_name(spec.commands[i]) : "all",
                       route_text(spec.children[i]));
  }
  return out;
}

/// What stands between the braces of a route.
std::string arguments_text(const route::RouteSpec& spec) {
  using route::RouteKind;
  const std::string wait =
      spec.wait
          ? fmt::format(", wait: {}",
                        millis_text(std::chrono::duration_cast<base::Millis>(*spec.wait).count()))
          : std::string();
  switch (spec.kind) {
    case RouteKind::Direct:
      return "child: " + route_text(spec.children.front());
    case RouteKind::AllSync:
    case RouteKind::AllAsync:
    case RouteKind::Random:
      return children_text(spec);
    case RouteKind::AllFastest:
      return fmt::format("{}, miss: {}{}", children_text(spec), bool_text(spec.goes_on_after_miss),
                         wait);
    case RouteKind::Failover:
      return fmt::format(
          "{}, miss: {}{}, shuffle: {}{}{}{}", children_text(spec),
          bool_text(spec.goes_on_after_miss),
          spec.tries_max == 0 ? "" : fmt::format(", failover_count: {}", spec.tries_max),
          bool_text(spec.shuffles), wait,
          spec.fixed_children == 0 ? "" : ", local_zone: " + scalar(spec.zones.front()),
          counter_text(spec));
    case RouteKind::ZoneFailover:
      return fmt::format("{}, miss: {}, local_zone: {}{}", children_text(spec),
                         bool_text(spec.goes_on_after_miss), scalar(spec.zones.front()),
                         counter_text(spec));
    case RouteKind::Split:
      return fmt::format("child_a: {}, child_b: {}", route_text(spec.children[0]),
                         route_text(spec.children[1]));
    case RouteKind::Ttl:
      return fmt::format("child: {}, ttl: {}", route_text(spec.children.front()), spec.text);
    case RouteKind::RateLimit:
      return fmt::format(
          "child: {}, limit: {}, fillrate: {}, tickrate: {}, global: {}, fail_until_limit: {}{}",
          route_text(spec.children.front()), spec.bucket.limit, spec.bucket.fill_rate,
          spec.bucket.tick.count(), bool_text(spec.is_bucket_shared),
          bool_text(spec.fails_until_limit), counter_text(spec));
    case RouteKind::NearCache:
      return fmt::format("child: {}, ttl: {}, max_value: {}, memory: {}{}",
                         route_text(spec.children.front()), millis_text(spec.near_ttl.count()),
                         bytes_text(spec.near_value_bytes_max), bytes_text(spec.near_memory_bytes),
                         counter_text(spec));
    case RouteKind::Coalesce:
      return "child: " + route_text(spec.children.front()) + counter_text(spec);
    case RouteKind::Error:
      return "text: " + scalar(spec.text);
    case RouteKind::Commands:
      return commands_text(spec);
    case RouteKind::Null:
    case RouteKind::Pool:
    case RouteKind::Prefixes:
      break;
  }
  return {};
}

std::string route_text(const route::RouteSpec& spec) {
  return spec.kind == route::RouteKind::Pool
             ? scalar(spec.text)
             : fmt::format("{{{}: {{{}}}}}", route_kind_word(spec.kind), arguments_text(spec));
}

std::string entry_text(const RouteConfig& entry, YamlForm form) {
  Lines<RouteEntryDraft> lines(route_entry_keys(), form, "      ");
  lines.add("protocol", "memcache");
  lines.add_raw(listeners_text(entry.listeners, form, "      "));
  lines.add("reuseport", bool_text(!entry.listeners.empty() && entry.listeners.front().reuse_port));
  lines.add("client_idle_timeout", millis_text(entry.client_idle_timeout.count()));
  const route::RouteSpec& spec = entry.spec;
  if (!spec.prefixes.empty()) {
    lines.add_raw("      map:\n");
  }
  for (std::size_t i = 0; i < spec.prefixes.size(); ++i) {
    lines.add_raw(
        fmt::format("        {}: {}\n", scalar(spec.prefixes[i]), route_text(spec.children[i])));
  }
  if (spec.children.size() > spec.prefixes.size()) {
    lines.add("default", route_text(spec.children.back()));
  }
  return fmt::format("    - name: {}\n{}", scalar(entry.name), lines.text());
}

std::string routes_text(const std::vector<RouteConfig>& routes, YamlForm form) {
  std::string out;
  for (const RouteConfig& entry : routes) {
    out += entry_text(entry, form);
  }
  return out;
}

std::string group(std::string_view name, const std::string& lines) {
  return lines.empty() ? "" : fmt::format("  {}:\n{}", name, lines);
}

std::string process_text(const ProcessOptions& process, YamlForm form) {
  Lines<ProcessOptions> lines(process_keys(), form, "  ");
  lines.add("workers", process.workers == 0 ? "auto" : fmt::format("{}", process.workers));
  lines.add("io", word(kIoWords, process.io));
  lines.add("memory_limit", bytes_text(process.memory_limit_bytes));
  lines.add("item_size_max", bytes_text(process.item_bytes_max));
  lines.add("drain_timeout", millis_text(process.drain_timeout.count()));
  lines.add("watch", bool_text(process.watch));
  lines.add("reload_on_hup", bool_text(process.reload_on_hup));
  return lines.text() + group("log", log_text(process.log, form)) +
         (process.admin ? group("admin", admin_text(*process.admin, form)) : "") +
         group("store", store_text(process.store, form)) +
         group("routes", routes_text(process.routes, form));
}

}  // namespace

std::string to_yaml(const Model& model, YamlForm form) {
  const std::string process = process_text(model.process, form);
  std::string out = process.empty() ? "" : "kvferry:\n" + process;
  for (const PoolConfig& pool : model.pools) {
    out += (out.empty() ? "" : "\n") + pool_text(pool, form);
  }
  return out;
}

}  // namespace kvferry::config
