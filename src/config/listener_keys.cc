// The table of the keys of an entry of `listen`, and the keys of pools that wait for their time.
#include <cstdint>

#include "config/choices.h"
#include "config/key_table.h"
#include "config/tls_reader.h"

namespace kvferry::config {
namespace {

constexpr Key<ListenerDraft> kListenerKeys[] = {
    {{.name = "address",
      .type = ValueType::Endpoint,
      .doc = "As the short form of `listen`. Required."},
     [](ListenerDraft& listener, const Value& value, Reader&) {
       listener.endpoint = value.endpoint;
     }},
    {{.name = "backlog",
      .type = ValueType::Int,
      .least = 1,
      .most = 65535,
      .default_text = "that of the pool",
      .doc = "As the pool's key, for this listener."},
     [](ListenerDraft& listener, const Value& value, Reader&) {
       listener.backlog = static_cast<std::uint32_t>(value.number);
     }},
    {{.name = "max_clients",
      .type = ValueType::Int,
      .most = 1000000,
      .default_text = "client_connections of the pool",
      .doc = "Most clients of this listener; 0: no limit."},
     [](ListenerDraft& listener, const Value& value, Reader&) {
       listener.max_clients = static_cast<std::uint32_t>(value.number);
     }},
    {{.name = "admin",
      .type = ValueType::Bool,
      .default_text = "false",
      .doc = "Allows commands that administer servers, such as flush_all."},
     [](ListenerDraft& listener, const Value& value, Reader&) { listener.is_admin = value.flag; }},
    {{.name = "protocol",
      .type = ValueType::Enum,
      .default_text = "that of the pool; auto for protocol: store",
      .doc =
          "What clients speak: memcache, redis, or auto, where the first byte of each client tells "
          "(a '*' begins a client of Redis). Only the embedded store serves both.",
      .choices = kListenerProtocolWords},
     [](ListenerDraft& listener, const Value& value, Reader&) {
       listener.protocol = static_cast<ListenerProtocol>(value.choice);
     }},
    {{.name = "tls",
      .type = ValueType::Mapping,
      .doc = "Clients of this listener speak TLS; see the table \"TLS of a listener\"."},
     [](ListenerDraft& listener, const Value& value, Reader& reader) {
       read_tls(value, net::TlsRole::Server, reader, listener.tls);
     }},
};

constexpr ReservedKey kReservedListenerKeys[] = {{"tag"}, {"proxy_protocol"}};

constexpr ReservedKey kReservedPoolKeys[] = {
    // Ours, for later versions.
    {"sentinels"},
    {"read"},
    {"max_lag"},
    {"read_your_writes"},
    {"masters"},
    {"sentinel_auth"},
    {"groups"},
    {"refresh_interval"},
    {"refresh_min"},
    {"rewrite"},
    {"allow_nodes"},
    {"prefer"},
    {"user"},
    {"password"},
    {"auth_mode"},
    {"queue_timeout"},
    {"txn_timeout"},
    {"retries"},
    {"retry_reads"},
    {"retry_writes"},
    {"on_return"},
    {"check_interval"},
    {"check_timeout"},
    {"rise"},
    {"fall"},
    {"breaker"},
    {"max_pins"},
    {"connect_rate"},
    {"split_msetnx"},
    {"split_batch"},
    {"transactions"},
    {"wait"},
    {"keyless_scripts"},
    {"script_cache_bytes"},
    {"allow"},
    {"deny"},
    {"commands"},
    {"unknown_commands"},
    {"present_as"},
    {"cluster_announce"},
    {"emulate"},
    {"near_cache"},
    {"coalesce"},
    {"hot_threshold"},
    {"hot_action"},
    {"mirror"},
    {"key_prefix"},
    {"strip_prefix"},
    {"latency_monitors"},
    {"error_detail"},
    {"store"},
    {"advertise"},
    {"peer_auth"},
    {"gossip_compat"},
    {"hint_dir"},
    {"share_connections"},
    // Dynomite's.
    {"dyn_listen", Dialect::Dynomite},
    {"stats_listen", Dialect::Dynomite},
    {"stats_interval", Dialect::Dynomite},
    {"data_store", Dialect::Dynomite},
    {"dyn_read_timeout", Dialect::Dynomite},
    {"dyn_write_timeout", Dialect::Dynomite},
    {"dyn_seed_provider", Dialect::Dynomite},
    {"dyn_seeds", Dialect::Dynomite},
    {"dyn_port", Dialect::Dynomite},
    {"dyn_connections", Dialect::Dynomite},
    {"rack", Dialect::Dynomite},
    {"datacenter", Dialect::Dynomite},
    {"tokens", Dialect::Dynomite},
    {"gos_interval", Dialect::Dynomite},
    {"enable_gossip", Dialect::Dynomite},
    {"secure_server_option", Dialect::Dynomite},
    {"pem_key_file", Dialect::Dynomite},
    {"recon_key_file", Dialect::Dynomite},
    {"recon_iv_file", Dialect::Dynomite},
    {"env", Dialect::Dynomite},
    {"conn_msg_rate", Dialect::Dynomite},
    {"read_consistency", Dialect::Dynomite},
    {"write_consistency", Dialect::Dynomite},
    {"mbuf_size", Dialect::Dynomite},
    {"max_msgs", Dialect::Dynomite},
    {"datastore_connections", Dialect::Dynomite},
    {"local_peer_connections", Dialect::Dynomite},
    {"remote_peer_connections", Dialect::Dynomite},
    {"read_repairs_enabled", Dialect::Dynomite},
    {"distribution_shadow", Dialect::Dynomite},
    {"redis_requirepass", Dialect::Dynomite},
    {"noxu_path", Dialect::Dynomite},
    {"recon_interval_seconds", Dialect::Dynomite},
    {"peer_tls_cert", Dialect::Dynomite},
    {"peer_tls_key", Dialect::Dynomite},
    {"peer_tls_ca", Dialect::Dynomite},
    {"peer_tls_profiles", Dialect::Dynomite},
    {"enable_hinted_handoff", Dialect::Dynomite},
    {"hint_ttl_seconds", Dialect::Dynomite},
    {"hint_store_max_bytes", Dialect::Dynomite},
    {"hint_drain_interval_ms", Dialect::Dynomite},
    {"log_format", Dialect::Dynomite},
    {"observability", Dialect::Dynomite},
    {"bucket_types", Dialect::Dynomite},
    {"default_bucket_type", Dialect::Dynomite},
    {"riak", Dialect::Dynomite},
};

}  // namespace

std::span<const Key<ListenerDraft>> listener_keys() {
  return kListenerKeys;
}

std::span<const ReservedKey> reserved_listener_keys() {
  return kReservedListenerKeys;
}

std::span<const ReservedKey> reserved_pool_keys() {
  return kReservedPoolKeys;
}

}  // namespace kvferry::config
