// The table of the keys of a pool.
#include <array>
#include <cstdint>

#include "base/clock.h"
#include "config/choices.h"
#include "config/key_table.h"
#include "config/pool_reader.h"
#include "config/reader.h"
#include "config/tls_reader.h"

namespace kvferry::config {
namespace {

using base::Millis;
using Pool = PoolDraft;

constexpr std::int64_t kDayMillis = 86400000;
constexpr std::int64_t kHourMillis = 3600000;
constexpr std::int64_t kMillion = 1000000;
constexpr std::int64_t kInt32Max = 2147483647;
constexpr std::int64_t kMegabyte = 1 << 20;
constexpr std::int64_t kGigabyte = 1 << 30;

std::uint32_t to_u32(const Value& value) {
  return static_cast<std::uint32_t>(value.number);
}

pool::PoolOptions& options(Pool& pool) {
  return pool.config.options;
}

constexpr Key<Pool> kTwemproxyKeys[] = {
    {{.name = "listen",
      .type = ValueType::Listen,
      .doc =
          "Where clients connect: `host:port`, `[v6]:port`, or the path of a Unix socket with an "
          "optional octal mode (`/run/a.sock 0660`). A list of addresses, or of mappings with the "
          "keys of the table \"Listeners\", opens several. Required, "
          "unless `routes` name the pool.",
      .origin = Origin::Twemproxy},
     [](Pool& pool, const Value& value, Reader& reader) {
       read_listen(value, reader, pool.listeners);
     }},
    {{.name = "servers",
      .type = ValueType::Servers,
      .doc =
          "List of `host:port:weight [name]` or `/path:weight [name]`, 1 to 4096 entries. In our "
          "own dialect the weight may be left out. Names place keys, so each is used once; "
          "without a name the address counts, without its port when that is 11211. Required, "
          "except for `protocol: store`.",
      .origin = Origin::Twemproxy},
     [](Pool& pool, const Value& value, Reader& reader) { read_servers(value, reader, pool); }},
    {{.name = "client_connections",
      .type = ValueType::Int,
      .most = kMillion,
      .default_text = "0",
      .doc = "Most clients of a listener of this pool; 0: no limit. twemproxy reads this key and "
             "ignores it.",
      .origin = Origin::Twemproxy},
     [](Pool& pool, const Value& value, Reader& reader) {
       pool.max_clients = to_u32(value);
       note_client_connections(value, reader);
     }},
    {{.name = "hash",
      .type = ValueType::Enum,
      .default_text = "fnv1a_64",
      .doc = "Function that turns a key into a number. The first twelve are twemproxy's.",
      .origin = Origin::Twemproxy,
      .choices = kHashWords},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).placement.hash = static_cast<pool::HashKind>(value.choice);
     }},
    {{.name = "hash_tag",
      .type = ValueType::TwoBytes,
      .hint = "write the opening and the closing byte in quotes, such as \"{}\"",
      .doc = "Two bytes, such as `\"{}\"`. Only what stands between the first of each in a key is "
             "hashed, if it is not empty.",
      .origin = Origin::Twemproxy},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).placement.hash_tag = value.text;
     }},
    {{.name = "distribution",
      .type = ValueType::Enum,
      .default_text = "ketama",
      .doc = "How a hash selects a server. ketama, modula and random are twemproxy's; "
             "ring_memcached is the ring of memcached's own proxy.",
      .origin = Origin::Twemproxy,
      .choices = kDistributionWords},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).placement.distribution = static_cast<pool::DistributionKind>(value.choice);
     }},
    {{.name = "timeout",
      .type = ValueType::Millis,
      .most = kDayMillis,
      .default_text = "1s",
      .nutcracker_default_text = "0",
      .hint = "leave the key out, or write 0, to wait for ever",
      .doc = "Time from queueing a request to the last byte of its reply, connecting included. 0: "
             "wait for ever, as in twemproxy.",
      .origin = Origin::Twemproxy},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).timeout.reset();
       if (value.number != 0) {
         options(pool).timeout = Millis(value.number);
       }
     }},
    {{.name = "backlog",
      .type = ValueType::Int,
      .least = 1,
      .most = 65535,
      .default_text = "512",
      .doc = "Connections that the kernel keeps until they are accepted.",
      .origin = Origin::Twemproxy},
     [](Pool& pool, const Value& value, Reader&) { pool.backlog = to_u32(value); }},
    {{.name = "tcpkeepalive",
      .type = ValueType::Bool,
      .default_text = "true",
      .nutcracker_default_text = "false",
      .doc = "TCP keepalive on connections to servers.",
      .origin = Origin::Twemproxy},
     [](Pool& pool, const Value& value, Reader&) { options(pool).tcpkeepalive = value.flag; }},
    {{.name = "reuseport",
      .type = ValueType::Bool,
      .default_text = "false",
      .doc = "Workers always share a port this way. false adds a check at start that no other "
             "process listens there.",
      .origin = Origin::Twemproxy},
     [](Pool& pool, const Value& value, Reader&) { pool.reuse_port = value.flag; }},
    {{.name = "preconnect",
      .type = ValueType::Bool,
      .default_text = "false",
      .doc = "Connect to all servers at start. A server that does not answer does not stop the "
             "start.",
      .origin = Origin::Twemproxy},
     [](Pool& pool, const Value& value, Reader&) { options(pool).preconnect = value.flag; }},
    {{.name = "redis",
      .type = ValueType::Bool,
      .default_text = "false",
      .doc = "true: the servers, and the clients, speak the Redis protocol; false: memcached's.",
      .origin = Origin::Twemproxy},
     [](Pool& pool, const Value& value, Reader&) { pool.redis = value.flag; }},
    {{.name = "redis_auth",
      .type = ValueType::Secret,
      .least = 1,
      .most = 512,
      .doc = "Password towards servers and from clients. Only with `redis: true`.",
      .origin = Origin::Twemproxy},
     [](Pool& pool, const Value& value, Reader&) { pool.config.redis_auth = value.secret; }},
    {{.name = "redis_db",
      .type = ValueType::Int,
      .most = kInt32Max,
      .default_text = "0",
      .doc = "Database on the servers of a Redis pool.",
      .origin = Origin::Twemproxy},
     [](Pool& pool, const Value& value, Reader&) { options(pool).redis.db_base = to_u32(value); }},
    {{.name = "server_connections",
      .type = ValueType::Int,
      .least = 1,
      .most = 64,
      .default_text = "1",
      .doc = "Connections per server and worker.",
      .origin = Origin::Twemproxy},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).server_connections = to_u32(value);
     }},
    {{.name = "auto_eject_hosts",
      .type = ValueType::Bool,
      .default_text = "false",
      .doc = "true is `on_down: rehash`. `on_down` wins when both are given.",
      .origin = Origin::Twemproxy},
     [](Pool& pool, const Value& value, Reader&) { pool.auto_eject_hosts = value.flag; }},
    {{.name = "server_retry_timeout",
      .type = ValueType::Millis,
      .least = 1,
      .most = kDayMillis,
      .default_text = "30s",
      .doc = "How long a server that is down gets no requests.",
      .origin = Origin::Twemproxy},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).retry_timeout = Millis(value.number);
     }},
    {{.name = "server_failure_limit",
      .type = ValueType::Int,
      .least = 1,
      .most = kMillion,
      .default_text = "3",
      .nutcracker_default_text = "2",
      .doc = "Failures in a row after which a server is down.",
      .origin = Origin::Twemproxy},
     [](Pool& pool, const Value& value, Reader&) { options(pool).failure_limit = to_u32(value); }},
};

constexpr Key<Pool> kOurKeys[] = {
    {{.name = "dialect",
      .type = ValueType::Enum,
      .doc = "Whose defaults the pool has. Without this key: kvferry for a pool with `protocol`, "
             "dynomite for one with a key that only Dynomite has, else nutcracker.",
      .choices = kDialectWords},
     [](Pool&, const Value&, Reader&) {}},
    {{.name = "protocol",
      .type = ValueType::Enum,
      .default_text = "memcache",
      .doc = "memcache: a pool of memcached servers. redis: one of Redis or Valkey servers. store: "
             "the embedded store answers, and there are no servers.",
      .choices = kProtocolWords,
      .later_choices = kLaterProtocolWords},
     [](Pool& pool, const Value& value, Reader&) {
       pool.protocol = static_cast<PoolProtocol>(value.choice);
     }},
    {{.name = "ketama_naming",
      .type = ValueType::Enum,
      .default_text = "twemproxy",
      .doc = "Which texts make the points of the ketama ring: those of twemproxy, or those of "
             "libmemcached, for rings shared with its clients.",
      .choices = kNamingWords},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).placement.naming = static_cast<pool::KetamaNaming>(value.choice);
     }},
    {{.name = "connect_timeout",
      .type = ValueType::Duration,
      .least = 1,
      .most = kHourMillis,
      .default_text = "1s",
      .doc = "Time for one attempt to connect to a server."},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).connect_timeout = Millis(value.number);
     }},
    {{.name = "stall_timeout",
      .type = ValueType::Duration,
      .least = 1,
      .most = kHourMillis,
      .default_text = "10s",
      .doc =
          "How long a client that does not read its reply may hold up a connection to a server."},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).stall_timeout = Millis(value.number);
     }},
    {{.name = "body_timeout",
      .type = ValueType::Duration,
      .least = 1,
      .most = kHourMillis,
      .default_text = "30s",
      .doc =
          "A value above 64 KiB travels on a connection of its own while it comes. A client that "
          "sends less than 16 KiB more of it in so long is closed; so is the connection to a "
          "server without `timeout` that stops taking it."},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).body_timeout = Millis(value.number);
     }},
    {{.name = "client_idle_timeout",
      .type = ValueType::Duration,
      .most = kDayMillis,
      .default_text = "0s",
      .doc = "Closes a client that sends nothing for so long; 0s: never."},
     [](Pool& pool, const Value& value, Reader&) {
       pool.config.client_idle_timeout = Millis(value.number);
     }},
    {{.name = "tls",
      .type = ValueType::Mapping,
      .doc = "The servers of this pool speak TLS; see the table \"TLS to servers\". Clients do so "
             "where an entry of `listen` has `tls`."},
     [](Pool& pool, const Value& value, Reader& reader) {
       read_tls(value, net::TlsRole::Client, reader, options(pool).tls);
     }},
    {{.name = "on_down",
      .type = ValueType::Enum,
      .default_text = "keep",
      .doc =
          "What happens to the keys of a server that is down. keep: their requests fail. rehash: "
          "the servers that are left share them.",
      .choices = kOnDownWords,
      .later_choices = kLaterOnDownWords},
     [](Pool& pool, const Value& value, Reader&) {
       pool.on_down = static_cast<pool::OnDown>(value.choice);
     }},
    {{.name = "backoff_min",
      .type = ValueType::Duration,
      .least = 1,
      .most = kHourMillis,
      .default_text = "50ms",
      .doc = "First pause before connecting again. It doubles with each failure, with jitter."},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).backoff_min = Millis(value.number);
     }},
    {{.name = "backoff_max",
      .type = ValueType::Duration,
      .least = 1,
      .most = kHourMillis,
      .default_text = "5s",
      .doc = "Longest pause before connecting again."},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).backoff_max = Millis(value.number);
     }},
    {{.name = "max_inflight",
      .type = ValueType::Int,
      .least = 1,
      .most = kMillion,
      .default_text = "16384",
      .doc = "Requests that wait on one connection to a server. Further ones are refused at once."},
     [](Pool& pool, const Value& value, Reader&) { options(pool).max_inflight = to_u32(value); }},
    {{.name = "max_queue_bytes",
      .type = ValueType::Bytes,
      .least = kMegabyte / 16,
      .most = 64 * kGigabyte,
      .default_text = "32mb",
      .doc =
          "Bytes that wait to be sent on one connection to a server. Further requests are refused "
          "at once."},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).max_queue_bytes = static_cast<std::uint64_t>(value.number);
     }},
    {{.name = "on_partial",
      .type = ValueType::Enum,
      .default_text = "error",
      .doc =
          "Answer to a get of several keys of which a part failed. error: one error line. element: "
          "an error line in place of the failed keys. null: the failed keys count as misses.",
      .choices = kOnPartialWords},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).on_partial = static_cast<pool::OnPartial>(value.choice);
     }},
    {{.name = "redis_user",
      .type = ValueType::Text,
      .most = 256,
      .doc =
          "Name that connections to Redis servers log in with, beside `redis_auth`; without it the "
          "default user."},
     [](Pool& pool, const Value& value, Reader&) { options(pool).redis.user = value.text; }},
    {{.name = "databases",
      .type = ValueType::Int,
      .least = 1,
      .most = 1024,
      .default_text = "16",
      .nutcracker_default_text = "1",
      .doc = "How many databases clients of a Redis pool may SELECT."},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).redis.databases = to_u32(value);
     }},
    {{.name = "db_base",
      .type = ValueType::Int,
      .most = kInt32Max - 1024,
      .default_text = "0",
      .doc = "Database of the servers that is database 0 of clients; further ones follow it."},
     [](Pool& pool, const Value& value, Reader&) { options(pool).redis.db_base = to_u32(value); }},
    {{.name = "same_slot",
      .type = ValueType::Enum,
      .default_text = "backend",
      .doc = "Which keys may stand in one command that is not split. backend: those of one server. "
             "strict: those whose hashed parts are equal, so that a further server breaks nothing.",
      .choices = kSameSlotWords},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).redis.same_slot = static_cast<pool::SameSlot>(value.choice);
     }},
    {{.name = "broadcast_timeout",
      .type = ValueType::Duration,
      .least = 1,
      .most = kHourMillis,
      .default_text = "5s",
      .doc = "How long a command that all servers are asked for may take."},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).redis.broadcast_timeout = Millis(value.number);
     }},
    {{.name = "max_merge_bytes",
      .type = ValueType::Bytes,
      .least = kMegabyte / 16,
      .most = 64 * kGigabyte,
      .default_text = "64mb",
      .doc = "Most bytes that are kept of a reply that several servers' replies are merged to."},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).redis.max_merge_bytes = static_cast<std::uint64_t>(value.number);
     }},
    {{.name = "error_style",
      .type = ValueType::Enum,
      .default_text = "kvferry",
      .nutcracker_default_text = "twemproxy",
      .doc = "Wording of the errors that kvferry makes itself.",
      .choices = kErrorStyleWords},
     [](Pool& pool, const Value& value, Reader&) {
       options(pool).error_style = static_cast<pool::ErrorStyle>(value.choice);
     }},
};

}  // namespace

std::span<const Key<PoolDraft>> pool_keys() {
  static constexpr auto kAll = [] {
    constexpr std::size_t kTwemproxyCount = std::size(kTwemproxyKeys);
    std::array<Key<Pool>, kTwemproxyCount + std::size(kOurKeys)> all{};
    for (std::size_t index = 0; index < all.size(); ++index) {
      all[index] =
          index < kTwemproxyCount ? kTwemproxyKeys[index] : kOurKeys[index - kTwemproxyCount];
    }
    return all;
  }();
  return kAll;
}

}  // namespace kvferry::config
