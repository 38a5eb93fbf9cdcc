#include "route/store_events.h"

#include <string>

namespace kvferry::route {
namespace {

std::string begin(std::string_view type, std::string_view key) {
  std::string fields = "type=" + std::string(type) + " key=";
  watch::append_uri(fields, key);
  return fields;
}

void add(std::string& fields, std::string_view name, std::string_view value) {
  fields.append(" ").append(name).append("=").append(value);
}

void add(std::string& fields, std::string_view name, std::int64_t value) {
  add(fields, name, std::to_string(value));
}

std::string_view status_of(const store::ReadResult& result) {
  if (result.status == store::ReadStatus::Hit) {
    return "found";
  }
  switch (result.miss) {
    case store::Miss::Expired:
      return "expired";
    case store::Miss::Flushed:
      return "flushed";
    case store::Miss::Absent:
      break;
  }
  return "not_found";
}

std::string_view name_of(store::StoreStatus status) {
  switch (status) {
    case store::StoreStatus::Stored:
      return "stored";
    case store::StoreStatus::NotStored:
      return "not_stored";
    case store::StoreStatus::Exists:
      return "exists";
    case store::StoreStatus::NotFound:
      return "not_found";
    case store::StoreStatus::TooLarge:
      return "too_large";
    case store::StoreStatus::NoMemory:
      break;
  }
  return "no_memory";
}

std::string_view name_of(store::StoreMode mode) {
  switch (mode) {
    case store::StoreMode::Set:
      return "set";
    case store::StoreMode::Add:
      return "add";
    case store::StoreMode::Replace:
      return "replace";
    case store::StoreMode::Append:
      return "append";
    case store::StoreMode::Prepend:
      return "prepend";
    case store::StoreMode::Cas:
      break;
  }
  return "cas";
}

std::int64_t seconds_left(store::Instant exptime, store::Instant now) {
  return std::int64_t{exptime.get()} - std::int64_t{now.get()};
}

}  // namespace

void StoreEvents::write_fetch(std::string_view key, const store::ReadResult& result,
                              std::uint32_t value_bytes, int client_fd) const {
  const bool is_hit = result.status == store::ReadStatus::Hit;
  std::string fields = begin("item_get", key);
  add(fields, "status", status_of(result));
  add(fields, "clsid", is_hit ? kOnlyClass : 0);
  add(fields, "cfd", client_fd);
  add(fields, "size", value_bytes);
  hub_->write(watch::Stream::Fetchers, fields);
}

void StoreEvents::write_store(const Stored& stored, store::Instant now, int client_fd) const {
  std::string fields = begin("item_store", stored.key);
  add(fields, "status", name_of(stored.status));
  add(fields, "cmd", name_of(stored.mode));
  add(fields, "ttl", stored.exptime == store::kNever ? 0 : seconds_left(stored.exptime, now));
  add(fields, "clsid", kOnlyClass);
  add(fields, "cfd", client_fd);
  add(fields, "size", static_cast<std::int64_t>(stored.value_bytes));
  hub_->write(watch::Stream::Mutations, fields);
}

void StoreEvents::write_delete(std::string_view key, std::string_view command,
                               std::uint32_t value_bytes) const {
  std::string fields = begin("deleted", key);
  add(fields, "cmd", command);
  add(fields, "clsid", kOnlyClass);
  add(fields, "size", value_bytes);
  hub_->write(watch::Stream::Deletions, fields);
}

void EvictionReport::on_evicted(const store::EvictedItem& item, store::Instant now) noexcept {
  std::string fields = begin("eviction", item.key);
  add(fields, "fetch", item.was_fetched ? "yes" : "no");
  add(fields, "ttl", item.exptime == store::kNever ? -1 : seconds_left(item.exptime, now));
  add(fields, "la", item.idle_seconds);
  add(fields, "clsid", kOnlyClass);
  add(fields, "size", item.value_bytes);
  hub_.write(watch::Stream::Evictions, fields);
}

}  // namespace kvferry::route
