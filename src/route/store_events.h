// StoreEvents: what happens to items, as lines for clients that watch.
//
// Source:  memcache-protocol.md section 12.2. Threads: as watch::Hub.
#pragma once

#include <cstdint>
#include <string_view>

#include "store/operations.h"
#include "watch/hub.h"

namespace kvferry::route {

/// What stands for memcached's size class: we have one.
inline constexpr unsigned kOnlyClass = 1;

class StoreEvents {
 public:
  /// Null: nobody can watch.
  explicit StoreEvents(watch::Hub* hub) noexcept : hub_(hub) {}

  bool wants(watch::Stream stream) const noexcept { return hub_ != nullptr && hub_->wants(stream); }

  // Ask wants() before these; the name of the stream is in the comment.

  /// Fetchers. `value_bytes` of a miss is 0.
  void write_fetch(std::string_view key, const store::ReadResult& result, std::uint32_t value_bytes,
                   int client_fd) const;

  struct Stored {
    std::string_view key;
    store::StoreMode mode{};
    store::Instant exptime{};
    store::StoreStatus status{};
    std::uint64_t value_bytes = 0;
  };
  /// Mutations.
  void write_store(const Stored& stored, store::Instant now, int client_fd) const;
  /// Deletions; `command` is "delete" or "md".
  void write_delete(std::string_view key, std::string_view command,
                    std::uint32_t value_bytes) const;

 private:
  watch::Hub* hub_;
};

/// Evictions, for the store itself.
class EvictionReport final : public store::EvictionObserver {
 public:
  explicit EvictionReport(watch::Hub& hub) noexcept : hub_(hub) {}
  bool wants() const noexcept override { return hub_.wants(watch::Stream::Evictions); }
  void on_evicted(const store::EvictedItem& item, store::Instant now) noexcept override;

 private:
  watch::Hub& hub_;
};

}  // namespace kvferry::route
