#include "app/stats_lists.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <dirent.h>
#include <memory>
#include <sys/socket.h>

#include "app/memcached_tls.h"
#include "net/address.h"
#include "protocol/memcache/number.h"
#include "protocol/memcache/token_walker.h"
#include "route/prefix_stats.h"
#include "route/store_events.h"
#include "store/record.h"

namespace kvferry::app {
namespace {

/// In the order in which memcached looks for a shortened name.
constexpr std::array<std::string_view, 12> kLists = {
    "reset", "detail",     "settings", "cachedump", "conns", "extstore",
    "proxy", "proxyfuncs", "proxybe",  "items",     "slabs", "sizes"};

/// As much of a dump as memcached gives.
constexpr std::size_t kCachedumpBytesMax = std::size_t{2} << 20;
/// Classes that a memcached may have.
constexpr std::uint32_t kClassMax = 63;

void line(std::string& out, std::string_view name, std::string_view value) {
  out.append("STAT ").append(name).append(" ").append(value).append("\r\n");
}
void line(std::string& out, std::string_view name, std::uint64_t value) {
  line(out, name, std::string_view(std::to_string(value)));
}
void flag(std::string& out, std::string_view name, bool value) {
  line(out, name, std::string_view(value ? "yes" : "no"));
}

/// "tcp:127.0.0.1:5", "tcp6:[::1]:5", "unix:/path".
std::string name_of(const sockaddr_storage& storage, socklen_t size) {
  const net::Address address(reinterpret_cast<const sockaddr*>(&storage), size);
  const char* const kind = address.is_unix()              ? "unix:"
                           : address.family() == AF_INET6 ? "tcp6:"
                                                          : "tcp:";
  return kind + (address.is_unix() && size <= sizeof(sa_family_t) ? "" : address.to_string());
}

/// Descriptors of this process. Reading the list touches no disk.
std::vector<int> open_descriptors() {
  std::vector<int> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  if (folder == nullptr) {
    return found;
  }
  while (const dirent* entry = readdir(folder.get())) {  // NOLINT(concurrency-mt-unsafe): own DIR
    const std::string_view name = entry->d_name;
    int fd = -1;
    if (std::from_chars(name.data(), name.data() + name.size(), fd).ec == std::errc{}) {
      found.push_back(fd);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

struct ItemList {
  std::string& out;
  std::size_t left;

  void on_item(const store::ItemView& item) {
    if (left == 0) {
      return;
    }
    --left;
    out.append("ITEM ").append(item.key).append(" [").append(std::to_string(item.value_bytes));
    out.append(" b; ").append(std::to_string(item.exptime.get())).append(" s]\r\n");
  }
};

/// As memcached names what -B says.
std::string_view protocol_name(const MemcachedOptions& options) {
  switch (options.protocol) {
    case ClientProtocol::Ascii:
      return "ascii";
    case ClientProtocol::Binary:
      return "binary";
    case ClientProtocol::Auto:
      break;
  }
  return "auto-negotiate";
}

}  // namespace

std::string_view find_stats_list(std::string_view word) noexcept {
  const auto* const exact = std::find(kLists.begin(), kLists.end(), word);
  if (exact != kLists.end()) {
    return *exact;
  }
  const auto* const found = std::find_if(
      kLists.begin(), kLists.end(), [&](std::string_view name) { return name.starts_with(word); });
  return word.empty() || found == kLists.end() ? std::string_view{} : *found;
}

void append_settings(const StatsSources& sources, std::string& out) {
  const MemcachedOptions& options = sources.options;
  const store::StoreConfig& store = sources.store.config();
  line(out, "maxbytes", sources.store.limit_bytes());
  line(out, "maxconns", sources.clients.max());
  line(out, "tcpport", options.listeners.empty() ? 0U : options.listeners.front().endpoint.port);
  line(out, "udpport", 0);
  line(out, "inter", std::string_view("NULL"));
  line(out, "verbosity", options.verbosity);
  line(out, "oldest", 0);
  line(out, "evictions", std::string_view(store.is_evicting ? "on" : "off"));
  line(out, "domain_socket", std::string_view("NULL"));
  line(out, "umask", std::string_view("700"));
  line(out, "chunk_size", store::Record::kHeadBytes);
  line(out, "growth_factor", std::string_view("1.00"));
  line(out, "num_threads", sources.threads);
  line(out, "num_threads_per_udp", 0);
  line(out, "stat_key_prefix", std::string_view(&options.prefix_delimiter, 1));
  flag(out, "detail_enabled", sources.prefixes.is_on());
  line(out, "reqs_per_event", options.requests_per_turn);
  flag(out, "cas_enabled", store.has_cas);
  line(out, "tcp_backlog", options.listeners.empty() ? 0U : options.listeners.front().backlog);
  line(out, "binding_protocol", protocol_name(options));
  flag(out, "auth_enabled_sasl", false);
  flag(out, "auth_enabled_ascii", !options.auth_file.empty());
  line(out, "item_size_max", store.item_bytes_max);
  flag(out, "maxconns_fast", true);
  line(out, "hashpower_init", 0);
  flag(out, "slab_reassign", false);
  line(out, "slab_automove", 0);
  line(out, "slab_chunk_max", store::kInlineBytesMax);
  flag(out, "lru_crawler", true);
  line(out, "lru_crawler_sleep", 0);
  line(out, "lru_crawler_tocrawl", 0);
  line(out, "tail_repair_time", 0);
  flag(out, "flush_enabled", options.allows_flush);
  flag(out, "dump_enabled", options.allows_dump);
  line(out, "hash_algorithm", std::string_view("xxh3"));
  flag(out, "lru_maintainer_thread", false);
  flag(out, "lru_segmented", true);
  line(out, "hot_lru_pct", 10);
  line(out, "idle_timeout", options.idle_timeout_seconds);
  flag(out, "track_sizes", false);
  flag(out, "inline_ascii_response", false);
  flag(out, "shutdown_command", options.allows_shutdown);
  flag(out, "watch_enabled", options.allows_watch);
  append_tls_settings(options, out);
  flag(out, "proxy_enabled", !options.lua_files.empty());
  flag(out, "proxy_uring_enabled", options.io == config::IoEngine::Uring);
}

void append_items(const StatsSources& sources, std::string& out) {
  const store::StoreStats stats = sources.store.snapshot();
  if (stats.curr_items == 0) {
    return;
  }
  const auto add = [&](std::string_view name, std::uint64_t value) {
    line(out, "items:" + std::to_string(route::kOnlyClass) + ":" + std::string(name), value);
  };
  add("number", stats.curr_items);
  for (const char* name :
       {"number_hot", "number_warm", "number_cold", "age_hot", "age_warm", "age"}) {
    add(name, 0);
  }
  add("mem_requested", stats.bytes);
  add("evicted", stats.evictions);
  add("evicted_nonzero", 0);
  add("evicted_time", 0);
  add("outofmemory", 0);
  add("tailrepairs", 0);
  add("reclaimed", stats.reclaimed);
  add("expired_unfetched", stats.expired_unfetched);
  add("evicted_unfetched", stats.evicted_unfetched);
  add("evicted_active", stats.evicted_active);
  add("crawler_reclaimed", stats.crawler_reclaimed);
  add("crawler_items_checked", stats.crawler_items_checked);
  add("lrutail_reflocked", 0);
  add("moves_to_cold", 0);
  add("moves_to_warm", stats.moves_to_main);
  add("moves_within_lru", stats.moves_within_main);
  for (const char* name :
       {"direct_reclaims", "hits_to_hot", "hits_to_warm", "hits_to_cold", "hits_to_temp"}) {
    add(name, 0);
  }
}

void append_slabs(const StatsSources& sources, std::string& out) {
  using route::StoreCount;
  const store::StoreStats stats = sources.store.snapshot();
  const route::StoreCommandTotals totals = sources.registry.store_totals();
  const auto total = [&](StoreCount what) { return totals[static_cast<std::size_t>(what)]; };
  const bool has_items = stats.curr_items != 0;
  if (has_items) {
    const auto add = [&](std::string_view name, std::uint64_t value) {
      line(out, std::to_string(route::kOnlyClass) + ":" + std::string(name), value);
    };
    const std::uint64_t frames = stats.allocated_bytes / store::kFrameBytes;
    add("chunk_size", store::kFrameBytes);
    add("chunks_per_page", 1);
    add("total_pages", frames);
    add("total_chunks", frames);
    add("used_chunks", frames);
    add("free_chunks", 0);
    add("free_chunks_end", 0);
    add("get_hits", total(StoreCount::GetHits));
    add("cmd_set", total(StoreCount::CmdSet));
    add("delete_hits", total(StoreCount::DeleteHits));
    add("incr_hits", total(StoreCount::IncrHits));
    add("decr_hits", total(StoreCount::DecrHits));
    add("cas_hits", total(StoreCount::CasHits));
    add("cas_badval", total(StoreCount::CasBadval));
    add("touch_hits", total(StoreCount::TouchHits));
  }
  line(out, "active_slabs", has_items ? 1U : 0U);
  line(out, "total_malloced", stats.allocated_bytes);
}

void append_connections(const StatsSources& sources, std::string& out) {
  std::vector<std::string> listening;
  for (const auto& service : sources.registry.services()) {
    listening.push_back(service.address);
  }
  for (const int fd : open_descriptors()) {
    sockaddr_storage own{};
    sockaddr_storage peer{};
    socklen_t own_size = sizeof(own);
    socklen_t peer_size = sizeof(peer);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
        own.ss_family == AF_UNSPEC) {
      continue;
    }
    const std::string local = name_of(own, own_size);
    const std::string number = std::to_string(fd);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0) {
      // Connections to backends have a port of their own at this end.
      const auto port = local.rfind(':');
      const bool is_client =
          std::any_of(listening.begin(), listening.end(), [&](const std::string& address) {
            return address.ends_with(local.substr(port)) || local == "unix:" + address;
          });
      if (is_client) {
        line(out, number + ":addr", std::string_view(name_of(peer, peer_size)));
        line(out, number + ":listen_addr", std::string_view(local));
        line(out, number + ":state", std::string_view("conn_read"));
      }
    } else {
      line(out, number + ":addr", std::string_view(local));
      line(out, number + ":state", std::string_view("conn_listening"));
    }
  }
}

void answer_detail(const StatsSources& sources, std::string_view words, std::string& out) {
  const std::string_view word = memcache::token_at(words, 1);
  if (word == "on" || word == "off") {
    sources.prefixes.turn(word == "on");
    out += "OK\r\n";
  } else if (word == "dump") {
    sources.prefixes.dump(out);
    out += "END\r\n";
  } else {
    out += "CLIENT_ERROR usage: stats detail on|off|dump\r\n";
  }
}

void answer_cachedump(const StatsSources& sources, std::string_view words, std::string& out) {
  std::uint32_t number = 0;
  std::uint32_t limit = 0;
  if (!sources.options.allows_dump) {
    out += "CLIENT_ERROR stats cachedump not allowed\r\n";
    return;
  }
  if (memcache::token_at(words, 2).empty()) {
    out += "CLIENT_ERROR bad command line\r\n";
    return;
  }
  if (!memcache::read_number(memcache::token_at(words, 1), number) ||
      !memcache::read_number(memcache::token_at(words, 2), limit)) {
    out += "CLIENT_ERROR bad command line format\r\n";
    return;
  }
  if (number > kClassMax) {
    out += "CLIENT_ERROR Illegal slab id\r\n";
    return;
  }
  if (number == route::kOnlyClass) {
    ItemList list{out, limit == 0 ? kCachedumpBytesMax : limit};
    store::WalkPlace place;
    while (
        list.left > 0 && out.size() < kCachedumpBytesMax &&
        sources.store.walk(place, sources.now, store::ItemVisitor::to<&ItemList::on_item>(&list))) {
    }
  }
  out += "END\r\n";
}

}  // namespace kvferry::app
