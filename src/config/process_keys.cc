// The tables of `kvferry:` and of the mappings inside it.
#include <cstdint>

#include "base/clock.h"
#include "config/choices.h"
#include "config/key_table.h"
#include "config/reader.h"
#include "config/scalar.h"

namespace kvferry::config {
namespace {

using Process = ProcessOptions;

constexpr std::int64_t kKilobyte = 1 << 10;
constexpr std::int64_t kMegabyte = 1 << 20;
constexpr std::int64_t kGigabyte = 1 << 30;
constexpr std::int64_t kHourMillis = 3600000;
constexpr std::int64_t kWorkersMax = 256;

std::uint64_t to_u64(const Value& value) {
  return static_cast<std::uint64_t>(value.number);
}

void set_workers(Process& process, const Value& value, Reader& reader) {
  if (value.text == "auto") {
    process.workers = 0;
    return;
  }
  const WholeNumber number = parse_whole(value.text);
  if (number.state != WholeNumber::State::Good || number.value < 1 || number.value > kWorkersMax) {
    reader.fail_value(value, "E-range",
                      "'workers' must be auto or from 1 to 256, found '" + value.text + "'");
    return;
  }
  process.workers = static_cast<std::uint32_t>(number.value);
}

/// How messages call a mapping and its keys.
struct GroupName {
  std::string_view noun;
  std::string_view path;
};

template <typename Target>
void read_group(const Value& value, Reader& reader, std::span<const Key<Target>> keys,
                const GroupName& name, Target& target, std::span<const ReservedKey> reserved = {}) {
  reader.read_mapping(
      *value.node, keys,
      {.noun = name.noun, .path = name.path, .reserved = reserved, .is_process = true}, target);
}

void set_admin(Process& process, const Value& value, Reader& reader) {
  if (!process.admin) {
    process.admin.emplace();
  }
  read_group(value, reader, admin_keys(), {"'admin'", "admin."}, *process.admin);
}

constexpr Key<Process> kProcessKeys[] = {
    {{.name = "workers",
      .type = ValueType::Text,
      .default_text = "auto",
      .doc = "`auto` (one per processor) or 1 to 256 threads that serve clients."},
     set_workers},
    {{.name = "io",
      .type = ValueType::Enum,
      .default_text = "auto",
      .doc = "How workers wait for the kernel; auto takes io_uring where it works, else epoll.",
      .choices = kIoWords},
     [](Process& process, const Value& value, Reader&) {
       process.io = static_cast<IoEngine>(value.choice);
     }},
    {{.name = "memory_limit",
      .type = ValueType::Bytes,
      .least = 16 * kMegabyte,
      .most = 1024 * kGigabyte,
      .default_text = "1gb",
      .doc = "Memory for requests and replies in flight. Near it, new requests are refused early. "
             "The embedded store counts apart."},
     [](Process& process, const Value& value, Reader&) {
       process.memory_limit_bytes = to_u64(value);
     }},
    {{.name = "item_size_max",
      .type = ValueType::Bytes,
      .least = kKilobyte,
      .most = kGigabyte,
      .default_text = "1gb",
      .doc = "Largest value that passes through a pool. Servers have limits of their own."},
     [](Process& process, const Value& value, Reader&) { process.item_bytes_max = to_u64(value); }},
    {{.name = "log", .type = ValueType::Mapping, .doc = "See the table \"Log\"."},
     [](Process& process, const Value& value, Reader& reader) {
       read_group(value, reader, log_keys(), {"'log'", "log."}, process.log);
     }},
    {{.name = "admin",
      .type = ValueType::Mapping,
      .doc =
          "The HTTP endpoint with metrics and reports; see the table \"Admin\". Off without this "
          "key."},
     set_admin},
    {{.name = "store",
      .type = ValueType::Mapping,
      .doc = "The embedded store; see the table \"Store\"."},
     [](Process& process, const Value& value, Reader& reader) {
       read_group(value, reader, store_keys(), {"'store'", "store."}, process.store,
                  reserved_store_keys());
     }},
    {{.name = "drain_timeout",
      .type = ValueType::Duration,
      .most = kHourMillis,
      .default_text = "30s",
      .doc = "How long requests in flight may take to end when the program stops or a pool goes."},
     [](Process& process, const Value& value, Reader&) {
       process.drain_timeout = base::Millis(value.number);
     }},
    {{.name = "watch",
      .type = ValueType::Bool,
      .default_text = "false",
      .doc = "Reload when a configuration file changes."},
     [](Process& process, const Value& value, Reader&) { process.watch = value.flag; }},
    {{.name = "reload_on_hup",
      .type = ValueType::Bool,
      .default_text = "true",
      .doc = "SIGHUP opens the log file anew and reloads the configuration; with false it does the "
             "former only, as twemproxy does."},
     [](Process& process, const Value& value, Reader&) { process.reload_on_hup = value.flag; }},
    {{.name = "routes",
      .type = ValueType::List,
      .hint = "each entry begins with - and has the keys listen, map and default",
      .doc = "Listeners whose requests native routes decide on; see the table \"Routes\"."},
     // Read by whoever knows which addresses are taken.
     [](Process&, const Value&, Reader&) {}},
};

constexpr Key<base::LogOptions> kLogKeys[] = {
    {{.name = "file",
      .type = ValueType::Text,
      .doc = "Path of the log file. Without it the log goes to standard error."},
     [](base::LogOptions& log, const Value& value, Reader&) { log.file = value.text; }},
    {{.name = "level",
      .type = ValueType::Enum,
      .default_text = "info",
      .doc = "The least important lines that are written.",
      .choices = kLogLevelWords},
     [](base::LogOptions& log, const Value& value, Reader&) {
       log.level = static_cast<base::LogLevel>(value.choice);
     }},
    {{.name = "format",
      .type = ValueType::Enum,
      .default_text = "default",
      .doc = "default: text for people. json: one object a line.",
      .choices = kLogFormatWords},
     [](base::LogOptions& log, const Value& value, Reader&) {
       log.format = static_cast<base::LogFormat>(value.choice);
     }},
};

constexpr Key<AdminOptions> kAdminKeys[] = {
    {{.name = "listen",
      .type = ValueType::Endpoint,
      .doc = "Address of the endpoint, such as `127.0.0.1:9115`. Required inside `admin`."},
     [](AdminOptions& admin, const Value& value, Reader&) { admin.endpoint = value.endpoint; }},
    {{.name = "token",
      .type = ValueType::Secret,
      .least = 1,
      .most = 512,
      .doc = "Secret that requests which change something must carry."},
     [](AdminOptions& admin, const Value& value, Reader&) { admin.token = value.secret; }},
};

constexpr Key<StoreOptions> kStoreKeys[] = {
    {{.name = "memory",
      .type = ValueType::Bytes,
      .least = kMegabyte,
      .most = 1024 * kGigabyte,
      .default_text = "64mb",
      .doc = "Memory for items. When it is full, old ones go."},
     [](StoreOptions& store, const Value& value, Reader&) { store.memory_bytes = to_u64(value); }},
    {{.name = "item_size_max",
      .type = ValueType::Bytes,
      .least = kKilobyte,
      .most = kGigabyte,
      .default_text = "1mb",
      .doc = "Largest value that the store takes."},
     [](StoreOptions& store, const Value& value, Reader&) {
       store.item_bytes_max = to_u64(value);
     }},
    {{.name = "snapshot",
      .type = ValueType::Text,
      .doc =
          "A file that items are written to at a clean end, and read from at the next start; see "
          "[operations](operations.md#warm-start)."},
     [](StoreOptions& store, const Value& value, Reader&) { store.snapshot = value.text; }},
    {{.name = "on_bad_snapshot",
      .type = ValueType::Enum,
      .default_text = "refuse",
      .doc =
          "Whether kvferry starts without items when the snapshot cannot be read, or not at all.",
      .choices = kOnBadSnapshotWords},
     [](StoreOptions& store, const Value& value, Reader&) {
       store.on_bad_snapshot = static_cast<OnBadSnapshot>(value.choice);
     }},
    {{.name = "snapshot_timeout",
      .type = ValueType::Duration,
      .least = 1,
      .most = 24 * kHourMillis,
      .default_text = "1m",
      .doc =
          "How long the start may wait for items, which are fewer then; and how long the end may, "
          "which leaves no snapshot then."},
     [](StoreOptions& store, const Value& value, Reader&) {
       store.snapshot_timeout = base::Millis(value.number);
     }},
};

constexpr ReservedKey kReservedProcessKeys[] = {{"lua"}, {"users"}, {"acl_file"}};
constexpr ReservedKey kReservedStoreKeys[] = {{"flash"}};

}  // namespace

std::span<const Key<ProcessOptions>> process_keys() {
  return kProcessKeys;
}

std::span<const Key<base::LogOptions>> log_keys() {
  return kLogKeys;
}

std::span<const Key<AdminOptions>> admin_keys() {
  return kAdminKeys;
}

std::span<const Key<StoreOptions>> store_keys() {
  return kStoreKeys;
}

std::span<const ReservedKey> reserved_process_keys() {
  return kReservedProcessKeys;
}

std::span<const ReservedKey> reserved_store_keys() {
  return kReservedStoreKeys;
}

}  // namespace kvferry::config
