// A configuration as the program uses it: every default filled in, every rule checked.
//
// Reload compares pools with ==, which leaves out where something is written: a comment added to
// the file changes nothing. Threads: plain values; published to workers as immutable snapshots.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "config/problem.h"
#include "net/tls_options.h"
#include "pool/options.h"
#include "route/route_spec.h"

namespace kvferry::config {

/// Whose defaults and quirks a pool has.
enum class Dialect : std::uint8_t { Nutcracker, Dynomite, Kvferry };

enum class PoolProtocol : std::uint8_t {
  Memcache,
  Redis,  // Only `explain` reads such pools so far.
  Store,  // The embedded store answers.
};

/// A password or the like, or where it is kept. Never printed.
struct Secret {
  enum class Kind : std::uint8_t { None, Text, File, Environment };

  Kind kind = Kind::None;
  std::string text;  // The secret, the path of its file, or the name of its variable.

  bool is_set() const noexcept { return kind != Kind::None; }

  friend bool operator==(const Secret&, const Secret&) = default;
};

/// Where to listen: host and port, or the path of a Unix socket.
struct Endpoint {
  std::string host;  // Name or address without brackets.
  std::uint16_t port = 0;
  std::string path;                   // Unix socket when not empty.
  std::optional<std::uint32_t> mode;  // Permissions of the Unix socket.

  bool is_unix() const noexcept { return !path.empty(); }
  /// "127.0.0.1:22121", "[::1]:22121" or "/run/a.sock".
  std::string to_string() const;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// What the clients of a listener speak; Auto: the first byte of each tells.
enum class ListenerProtocol : std::uint8_t { Memcache, Redis, Auto };

struct ListenerOptions {
  Endpoint endpoint;
  std::uint32_t backlog = 512;
  std::uint32_t max_clients = 0;  // 0: no limit.
  bool is_admin = false;          // Administration commands are allowed here.
  /// None: what the pool speaks; with the embedded store both protocols.
  std::optional<ListenerProtocol> protocol{};
  bool reuse_port = false;               // False: starting fails when someone else listens.
  std::string tag{};                     // Lua routes may be for listeners of one name only.
  std::optional<net::TlsOptions> tls{};  // None: clients speak in clear.
  Position where;

  /// Leaves `where` out.
  friend bool operator==(const ListenerOptions& left, const ListenerOptions& right);
};

struct PoolConfig {
  std::string name;
  Position where;
  Dialect dialect = Dialect::Nutcracker;
  PoolProtocol protocol = PoolProtocol::Memcache;
  std::vector<ListenerOptions> listeners;
  pool::PoolOptions options;
  base::Millis client_idle_timeout{0};  // 0: never.
  Secret redis_auth;

  bool is_redis() const noexcept { return protocol == PoolProtocol::Redis; }

  /// Leaves positions out, those of servers included, and the dialect, which has done its work.
  friend bool operator==(const PoolConfig& left, const PoolConfig& right);
};

/// Listeners whose requests native routes decide on: an entry of `routes`.
struct RouteConfig {
  std::string name;
  Position where;
  std::vector<ListenerOptions> listeners;
  base::Millis client_idle_timeout{0};  // 0: never.
  route::RouteSpec spec;

  /// Leaves `where` out.
  friend bool operator==(const RouteConfig& left, const RouteConfig& right);
};

enum class IoEngine : std::uint8_t { Auto, Uring, Epoll };

/// The engine that `word` names on a command line, in the words of the key `io`.
std::optional<IoEngine> parse_io_engine(std::string_view word) noexcept;

struct AdminOptions {
  Endpoint endpoint;
  Secret token;

  friend bool operator==(const AdminOptions&, const AdminOptions&) = default;
};

/// What becomes of a start whose snapshot cannot be read.
enum class OnBadSnapshot : std::uint8_t { Refuse, StartEmpty };

struct StoreOptions {
  std::uint64_t memory_bytes = std::uint64_t{64} << 20;
  std::uint64_t item_bytes_max = std::uint64_t{1} << 20;
  std::string snapshot;  // The path of its file; empty: none.
  OnBadSnapshot on_bad_snapshot = OnBadSnapshot::Refuse;
  base::Millis snapshot_timeout{60000};  // Of reading it, and of writing it.

  friend bool operator==(const StoreOptions&, const StoreOptions&) = default;
};

/// What holds for the whole process: the mapping `kvferry:`.
struct ProcessOptions {
  std::uint32_t workers = 0;  // 0: one per processor.
  IoEngine io = IoEngine::Auto;
  std::uint64_t memory_limit_bytes = std::uint64_t{1} << 30;
  std::uint64_t item_bytes_max = std::uint64_t{1} << 30;  // Largest value through a pool.
  base::LogOptions log;
  std::optional<AdminOptions> admin;
  StoreOptions store;
  base::Millis drain_timeout{30000};
  bool watch = false;
  bool reload_on_hup = true;
  std::vector<RouteConfig> routes;

  friend bool operator==(const ProcessOptions& left, const ProcessOptions& right);
};

struct Model {
  ProcessOptions process;
  std::vector<PoolConfig> pools;  // In the order of the files.

  /// Null when no pool has this name.
  const PoolConfig* find_pool(std::string_view name) const noexcept;

  friend bool operator==(const Model&, const Model&) = default;
};

}  // namespace kvferry::config
