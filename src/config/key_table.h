// The tables of keys: what each is called, what it may hold, what it defaults to, what it means.
//
// One entry drives reading, error texts, "did you mean" and docs/configuration.md, so they cannot
// disagree.
// Threads: constant data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "config/model.h"
#include "config/pool_draft.h"
#include "config/yaml_tree.h"

namespace kvferry::config {

class Reader;

enum class ValueType : std::uint8_t {
  Bool,
  Int,
  Millis,    // A bare number is milliseconds; a unit is allowed.
  Duration,  // A unit is required.
  Bytes,
  Enum,
  Text,
  TwoBytes,
  Secret,
  Endpoint,
  Mapping,  // The setter reads the mapping itself.
  Servers,  // A list of servers.
  Listen,   // An address, or a list of addresses and mappings.
  List,     // The setter reads the list itself.
  Route,    // A route; the setter reads it.
  Routes,   // A list or mapping of routes; the setter reads it.
};

/// Who made a key; decides where it is documented and which pools may have it.
enum class Origin : std::uint8_t { Twemproxy, Kvferry };

/// What a key is, apart from where its value goes.
struct KeyInfo {
  std::string_view name{};
  ValueType type = ValueType::Text;
  std::int64_t least = 0;  // Range of numbers, times (in ms) and sizes (in bytes).
  std::int64_t most = 0;
  std::string_view default_text{};             // In our own dialect; empty: none.
  std::string_view nutcracker_default_text{};  // In nutcracker pools, when it differs.
  std::string_view hint{};                     // Shown with errors about the value.
  std::string_view doc{};                      // Sentences for docs/configuration.md.
  Origin origin = Origin::Kvferry;
  std::span<const std::string_view> choices = {};        // Of an Enum.
  std::span<const std::string_view> later_choices = {};  // Known, and not available yet.
};

/// A value that passed the checks of its KeyInfo.
struct Value {
  const KeyInfo* info = nullptr;
  const Node* key_node = nullptr;
  const Node* node = nullptr;
  bool flag = false;
  std::int64_t number = 0;  // Number, milliseconds, bytes.
  std::size_t choice = 0;   // Index into KeyInfo::choices.
  std::string text;
  Secret secret;
  Endpoint endpoint;
};

template <typename Target>
struct Key {
  KeyInfo info;
  void (*set)(Target& target, const Value& value, Reader& reader);
};

/// A key that some version or dialect knows and that does nothing here yet.
struct ReservedKey {
  std::string_view name;
  Dialect dialect = Dialect::Kvferry;
};

/// Keys of a pool; those of `listen` entries follow in listener_keys(), those of `kvferry:` below.
std::span<const Key<PoolDraft>> pool_keys();
std::span<const Key<ListenerDraft>> listener_keys();
std::span<const Key<ProcessOptions>> process_keys();
std::span<const Key<base::LogOptions>> log_keys();
std::span<const Key<AdminOptions>> admin_keys();
std::span<const Key<StoreOptions>> store_keys();
/// Keys of `tls`: of an entry of `listen`, and of a pool.
std::span<const Key<net::TlsOptions>> listener_tls_keys();
std::span<const Key<net::TlsOptions>> server_tls_keys();

/// Keys answered with "not available yet", or, when they are Dynomite's, with the name of the
/// dialect.
std::span<const ReservedKey> reserved_pool_keys();
std::span<const ReservedKey> reserved_listener_keys();
std::span<const ReservedKey> reserved_process_keys();
std::span<const ReservedKey> reserved_store_keys();

}  // namespace kvferry::config
