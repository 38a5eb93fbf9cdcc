// SnapshotSaver: walks a store and writes what lives in it as a snapshot, a few items a step.
//
// The store may be in use meanwhile: each item is whole, as it was when the walk came to it. Shards
// are locked for a bucket's items at a time, and never while something is written. Threads: one
// user; the store is anybody's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "store/item_ref.h"
#include "store/snapshot_writer.h"
#include "store/store.h"

namespace kvferry::store {

class SnapshotSaver {
 public:
  SnapshotSaver(Store& store, SnapshotSink& sink, Instant now);

  /// Writes some items, and the end after the last one. False: it is done, or the sink takes no
  /// more.
  bool step();

  bool has_failed() const noexcept { return writer_.has_failed(); }
  std::uint64_t items() const noexcept { return writer_.items(); }

 private:
  /// An item that was copied out of its shard, large values aside.
  struct Staged {
    SnapshotItem item;
    std::size_t key_at = 0;
    std::size_t key_bytes = 0;
    std::size_t rest_at = 0;  // What lies behind the pieces, or all of the value.
    std::size_t rest_bytes = 0;
    ItemRef pieces;
  };

  void on_item(const ItemView& item);
  void write(Staged& staged);

  Store& store_;
  SnapshotWriter writer_;
  Instant now_;
  WalkPlace place_;
  std::string bytes_;
  std::vector<Staged> staged_;
};

}  // namespace kvferry::store
