// What a pool is made of: servers, placement, limits and times. Filled by the config room, read by
// pools.
//
// Defaults are those of our own dialect; the config room sets those of other dialects
// (docs/configuration.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/tls_options.h"

namespace kvferry::pool {

/// Key hashes: twemproxy's twelve, then ours.
enum class HashKind : std::uint8_t {
  OneAtATime,
  Md5,
  Crc16,
  Crc32,
  Crc32a,
  Fnv1_64,
  Fnv1a_64,
  Fnv1_32,
  Fnv1a_32,
  Hsieh,
  Murmur,
  Jenkins,
  Murmur3,
  Xxh3,
  Crc16Slot,
  Atol,
};

/// How a hash selects a server. RingMemcached is the ring of memcached's built-in proxy.
enum class DistributionKind : std::uint8_t {
  Ketama,
  Modula,
  Random,
  Jump,
  Rendezvous,
  RingMemcached
};

/// Which text makes the points of a server without a name on the ketama ring.
enum class KetamaNaming : std::uint8_t {
  Twemproxy,     // host:port, host alone when the port is 11211.
  Libmemcached,  // host:port-<k>, host-<k> for port 11211; points per hash as libmemcached's
                 // (un)weighted ketama makes them.
};

/// Which bytes of a key are hashed; hash_tag is the filter's text. HashTag is twemproxy's rule; the
/// others are those of memcached's built-in proxy (pool/key_hash.h).
enum class KeyFilter : std::uint8_t { HashTag, MemcachedTags, MemcachedStop };

/// Which text makes the points of a server on the ring of memcached's built-in proxy.
enum class RingNaming : std::uint8_t { Default, Ketama, Twemproxy, Evcache };

struct ServerOptions {
  std::string host;        // Name, address, or path of a Unix socket.
  std::uint16_t port = 0;  // 0 for a Unix socket.
  std::uint32_t weight = 1;
  std::string name;         // As given; empty when the file names none.
  std::string label;        // What people read in stats, logs and explain: the name, or host:port.
  std::string point_label;  // What ketama points are made from.
  std::uint32_t line = 0;   // Where the file says so.
  bool is_unix = false;

  friend bool operator==(const ServerOptions&, const ServerOptions&) = default;
};

/// What happens to the keys of a backend that is down.
enum class OnDown : std::uint8_t { Keep, Rehash };
/// A multi-key get of which a part failed: one error line for all, an error line in place of the
/// part's keys, or misses.
enum class OnPartial : std::uint8_t { Error, Element, Null };
/// Wording of errors that we make ourselves.
enum class ErrorStyle : std::uint8_t { Kvferry, Twemproxy };

/// What the servers of a pool speak.
enum class Protocol : std::uint8_t { Memcached, Redis };
/// Which keys of one command live together: those of one backend, or those whose hashed parts are
/// equal, so that they still do when a backend is added.
enum class SameSlot : std::uint8_t { Backend, Strict };
/// What the parenthesis at the end of an error line for clients of Redis tells.
enum class ErrorDetail : std::uint8_t { None, Pool, Full };

struct PlacementOptions {
  HashKind hash = HashKind::Fnv1a_64;
  DistributionKind distribution = DistributionKind::Ketama;
  KetamaNaming naming = KetamaNaming::Twemproxy;
  std::string hash_tag;  // Empty, or exactly two bytes; two to five for MemcachedStop.
  bool weights_given =
      true;  // False: no entry of the file has a weight (libmemcached's weight-less points).
  KeyFilter filter = KeyFilter::HashTag;
  std::uint64_t hash_seed = 0;                   // Of HashKind::Xxh3 only.
  RingNaming ring_naming = RingNaming::Default;  // Of RingMemcached only, as is the next.
  std::uint32_t ring_points = 160;               // Points per server.

  friend bool operator==(const PlacementOptions&, const PlacementOptions&) = default;
};

/// What only pools of Redis servers have.
struct RedisOptions {
  std::string user;              // Empty: the default user.
  std::string password;          // Empty: connections do not authenticate. Never printed.
  std::uint32_t databases = 16;  // That clients may select.
  std::uint32_t db_base = 0;     // The backend's database for database 0 of clients.
  SameSlot same_slot = SameSlot::Backend;
  ErrorDetail error_detail = ErrorDetail::Pool;
  base::Millis broadcast_timeout{5000};                     // Start to the last part.
  std::uint64_t max_merge_bytes = std::uint64_t{64} << 20;  // Kept of one merged reply.

  friend bool operator==(const RedisOptions&, const RedisOptions&) = default;
};

struct PoolOptions {
  std::string name;
  Protocol protocol = Protocol::Memcached;
  PlacementOptions placement;
  std::vector<ServerOptions> servers;  // In the order of the file.

  std::uint32_t server_connections = 1;  // Links per backend and worker.
  bool preconnect = false;
  bool tcpkeepalive = true;
  std::optional<base::Millis>
      timeout;  // From queued to the last byte of the reply; none: wait for ever.
  base::Millis connect_timeout{1000};
  std::uint32_t max_inflight = 1024 * 16;                   // Calls per link.
  std::uint64_t max_queue_bytes = std::uint64_t{32} << 20;  // Unsent bytes per link.

  OnDown on_down = OnDown::Keep;
  std::uint32_t failure_limit = 3;    // Failures in a row until a backend is down.
  base::Millis retry_timeout{30000};  // Down time before a probe.
  base::Millis backoff_min{50};       // Reconnect back-off, doubled with jitter ...
  base::Millis backoff_max{5000};     // ... up to this.
  base::Millis stall_timeout{10000};  // A client that does not read may hold a link so long.
  base::Millis body_timeout{30000};   // Progress of a streamed value: from the client, and, where
                                      // there is no `timeout`, into the backend.

  std::optional<net::TlsOptions> tls;  // How connections to the servers speak; none: in clear.

  OnPartial on_partial = OnPartial::Error;
  ErrorStyle error_style = ErrorStyle::Kvferry;
  RedisOptions redis;  // Of Protocol::Redis only.

  friend bool operator==(const PoolOptions&, const PoolOptions&) = default;
};

}  // namespace kvferry::pool
