// SnapshotLoader: puts the items of a snapshot into a store.
//
// What has expired, and what is larger than the store takes, is left out and counted. When there is
// more than fits, the store evicts as it always does; items that had been read before stay longer.
// Threads: one user; the store is anybody's.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "store/snapshot_reader.h"
#include "store/store.h"

namespace kvferry::store {

struct SnapshotCounts {
  std::uint64_t stored = 0;
  std::uint64_t expired = 0;
  std::uint64_t too_large = 0;  // For this store.
  std::uint64_t no_memory = 0;

  friend bool operator==(const SnapshotCounts&, const SnapshotCounts&) = default;
};

class SnapshotLoader final : public SnapshotHandler {
 public:
  SnapshotLoader(Store& store, Instant now) : store_(store), now_(now) {}

  const SnapshotCounts& counts() const noexcept { return counts_; }
  Instant written_at() const noexcept { return written_at_; }

  // SnapshotHandler
  void on_head(const SnapshotHead& head) override;
  void on_item(const SnapshotItem& item) override;
  void on_value(std::string_view bytes) override;
  void on_item_end() override;

 private:
  enum class Way : std::uint8_t { Dropped, Whole, InParts };

  void count(StoreStatus status);
  void restore_marks(const Key& key);

  Store& store_;
  Instant now_;
  Instant written_at_{};
  SnapshotCounts counts_;
  Way way_ = Way::Dropped;
  SnapshotItem item_;  // Its key lies in key_.
  std::array<char, kKeyBytesMax> key_{};
  std::string value_;     // Of an item that goes in whole.
  PendingValue pending_;  // Of one that goes in by parts.
};

}  // namespace kvferry::store
