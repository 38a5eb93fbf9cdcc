// SnapshotWriter: items in, the bytes of a snapshot out, block by block.
//
//   begin --add() and add_value() for each item--> ... --finish()--> done
//
// Errors:   when the sink takes no more, everything after is dropped and has_failed() says so.
// Threads:  one user.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "store/snapshot_format.h"

namespace kvferry::store {

/// Where a snapshot goes.
class SnapshotSink {
 public:
  /// False: it could not be taken, and nothing more will be.
  virtual bool write(std::string_view bytes) = 0;

 protected:
  ~SnapshotSink() = default;
};

class SnapshotWriter {
 public:
  SnapshotWriter(SnapshotSink& sink, const SnapshotHead& head);

  /// Begins an item, whose value follows in parts of together item.value_bytes.
  void add(const SnapshotItem& item);
  void add_value(std::string_view bytes);
  /// Writes what is left, and the end.
  void finish();

  bool has_failed() const noexcept { return has_failed_; }
  std::uint64_t items() const noexcept { return items_; }

 private:
  void append(std::string_view bytes);
  void write_block(SnapshotBlock kind, std::string_view payload);
  void write(std::string_view bytes);

  SnapshotSink& sink_;
  std::string payload_;
  std::uint64_t blocks_ = 0;
  std::uint64_t items_ = 0;
  std::uint64_t item_bytes_ = 0;
  std::uint64_t value_bytes_left_ = 0;
  bool has_failed_ = false;
};

}  // namespace kvferry::store
