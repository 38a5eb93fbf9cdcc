#include "app/memcached_option_table.h"

#include <algorithm>
#include <array>

namespace kvferry::app {
namespace {

using Value = MemcachedSuboption::Value;

constexpr std::array<MemcachedOption, 40> kOptions = {{
    {'p', "port", true},
    {'U', "udp-port", true},
    {'s', "unix-socket", true},
    {'a', "unix-mask", true},
    {'a', "unix-mode", true},
    {'l', "listen", true},
    {'A', "enable-shutdown", false},
    {'d', "daemon", false},
    {'r', "enable-coredumps", false},
    {'u', "user", true},
    {'m', "memory-limit", true},
    {'M', "disable-evictions", false},
    {'c', "conn-limit", true},
    {'k', "lock-memory", false},
    {'v', "verbose", false},
    {'h', "help", false},
    {'i', "license", false},
    {'V', "version", false},
    {'P', "pidfile", true},
    {'f', "slab-growth-factor", true},
    {'n', "slab-min-size", true},
    {'L', "enable-largepages", false},
    {'D', "prefix-delimiter", true},
    {'t', "threads", true},
    {'R', "max-reqs-per-event", true},
    {'C', "disable-cas", false},
    {'b', "listen-backlog", true},
    {'B', "protocol", true},
    {'I', "max-item-size", true},
    {'S', "enable-sasl", false},
    {'F', "disable-flush-all", false},
    {'X', "disable-dumping", false},
    {'W', "disable-watch", false},
    {'Y', "auth-file", true},
    {'e', "memory-file", true},
    {'Z', "enable-ssl", false},
    {'o', "extended", true},
    {'N', "napi-ids", true},
    {'N', "napi_ids", true},
    {'r', "maximize-core", false},
}};

constexpr std::array<MemcachedSuboption, 59> kSuboptions = {{
    {"io", Value::Needed},
    {"proxy_config", Value::Needed},
    {"proxy_arg", Value::Needed},
    {"proxy_uring", Value::None},
    {"proxy_memprofile", Value::None},
    {"idle_timeout", Value::Needed},
    {"ext_path", Value::Needed},
    {"ext_page_size", Value::Needed},
    {"ext_wbuf_size", Value::Needed},
    {"ext_threads", Value::Needed},
    {"ext_item_size", Value::Needed},
    {"ext_item_age", Value::Needed},
    {"ext_low_ttl", Value::Needed},
    {"ext_recache_rate", Value::Needed},
    {"ext_compact_under", Value::Needed},
    {"ext_drop_under", Value::Needed},
    {"ext_max_sleep", Value::Needed},
    {"ext_max_frag", Value::Needed},
    {"ext_drop_unread", Value::Optional},
    {"ssl_chain_cert", Value::Needed},
    {"ssl_key", Value::Needed},
    {"ssl_verify_mode", Value::Needed},
    {"ssl_keyformat", Value::Needed},
    {"ssl_ciphers", Value::Needed},
    {"ssl_ca_cert", Value::Needed},
    {"ssl_wbuf_size", Value::Needed},
    {"ssl_session_cache", Value::Optional},
    {"ssl_kernel_tls", Value::Optional},
    {"ssl_min_version", Value::Needed},
    {"maxconns_fast", Value::Optional},
    {"hashpower", Value::Needed},
    {"hashexpand", Value::Optional},
    {"hash_algorithm", Value::Needed},
    {"tail_repair_time", Value::Needed},
    {"slab_reassign", Value::Optional},
    {"slab_automove", Value::Optional},
    {"slab_automove_ratio", Value::Needed},
    {"slab_automove_window", Value::Needed},
    {"slab_automove_freeratio", Value::Needed},
    {"slab_sizes", Value::Needed},
    {"slab_chunk_max", Value::Needed},
    {"lru_crawler", Value::Optional},
    {"lru_crawler_sleep", Value::Needed},
    {"lru_crawler_tocrawl", Value::Needed},
    {"lru_maintainer", Value::Optional},
    {"hot_lru_pct", Value::Needed},
    {"warm_lru_pct", Value::Needed},
    {"hot_max_factor", Value::Needed},
    {"warm_max_factor", Value::Needed},
    {"temporary_ttl", Value::Needed},
    {"watcher_logbuf_size", Value::Needed},
    {"worker_logbuf_size", Value::Needed},
    {"read_buf_mem_limit", Value::Needed},
    {"resp_obj_mem_limit", Value::Needed},
    {"track_sizes", Value::Optional},
    {"inline_ascii_resp", Value::Optional},
    {"modern", Value::Optional},
    {"drop_privileges", Value::Optional},
    {"sock_cookie_id", Value::Needed},
}};

}  // namespace

std::span<const MemcachedOption> memcached_options() noexcept {
  return kOptions;
}

const MemcachedOption* find_memcached_option(char letter) noexcept {
  const auto* const found =
      std::find_if(kOptions.begin(), kOptions.end(),
                   [&](const MemcachedOption& option) { return option.letter == letter; });
  return found == kOptions.end() ? nullptr : found;
}

const MemcachedSuboption* find_memcached_suboption(std::string_view name) noexcept {
  const bool is_negated = name.starts_with("no_");
  const std::string_view plain = is_negated ? name.substr(3) : name;
  const auto* const found =
      std::find_if(kSuboptions.begin(), kSuboptions.end(), [&](const MemcachedSuboption& each) {
        return each.name == plain && (!is_negated || each.value == Value::Optional);
      });
  return found == kSuboptions.end() ? nullptr : found;
}

std::string memcached_options_allowed() {
  std::string text = "Allowed are";
  for (const MemcachedOption& option : kOptions) {
    text += std::string(" -") + option.letter + "/--" + std::string(option.name);
  }
  return text + ".";
}

std::string memcached_suboptions_allowed() {
  std::string text = "Allowed are";
  for (const MemcachedSuboption& option : kSuboptions) {
    text += " " + std::string(option.name);
  }
  return text + ".";
}

}  // namespace kvferry::app
