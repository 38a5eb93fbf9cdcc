// What memcached's command line asks for, as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/model.h"
#include "net/tls_options.h"

namespace kvferry::app {

inline constexpr std::uint16_t kMemcachedPort = 11211;

/// What clients may speak (-B).
enum class ClientProtocol : std::uint8_t { Auto, Ascii, Binary };

/// The defaults are memcached's.
struct MemcachedOptions {
  /// Hosts may be names. An empty host is every interface.
  std::vector<config::ListenerOptions> listeners;
  std::uint64_t memory_bytes = std::uint64_t{64} << 20;
  std::uint64_t item_bytes_max = std::uint64_t{1} << 20;
  std::uint32_t workers = 4;
  std::uint32_t clients_max = 1024;
  std::uint32_t requests_per_turn = 20;
  std::uint32_t idle_timeout_seconds = 0;  // 0: never.
  std::uint32_t verbosity = 0;
  ClientProtocol protocol = ClientProtocol::Auto;
  bool is_evicting = true;
  bool has_cas = true;
  bool allows_flush = true;
  bool allows_dump = true;
  bool allows_watch = true;
  bool allows_shutdown = false;
  bool is_daemon = false;
  bool counts_prefixes = false;  // `stats detail` is on from the start.
  char prefix_delimiter = ':';
  std::string user;
  std::string pid_file;
  std::string auth_file;      // Empty: no authentication.
  std::string snapshot_file;  // Empty: none (-e).

  bool has_tls = false;  // -Z
  net::TlsOptions tls{.has_session_cache = false};
  std::uint32_t tls_buffer_kilobytes = 16;  // Without effect, as are the next.
  bool wants_kernel_tls = false;

  std::vector<std::string> lua_files;  // None: no proxy.
  std::optional<std::string> proxy_arg;
  config::IoEngine io = config::IoEngine::Auto;
  bool traces_lua_memory = false;

  std::vector<std::string> ignored;  // Options that were taken without any effect.
};

}  // namespace kvferry::app
