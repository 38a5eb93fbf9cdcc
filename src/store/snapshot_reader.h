// SnapshotReader: the bytes of a snapshot in, its items out.
//
//   Header --40 bytes--> BlockHead --16 bytes--> Payload --all of it, checked--> BlockHead ...
//   --End--> Done
//      any of them --something does not fit--> Failed
//
// No byte of a block is looked at before its checksum fits. Items are told to a handler as they
// come; when the snapshot turns out to be broken later, what was told stays told. Lifetime: views
// that the handler gets die with its call. Errors:   SnapshotError: the byte, what is there and
// what is allowed. Nothing is read after it. Threads:  one user.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/snapshot_format.h"

namespace kvferry::store {

/// Who takes the items of a snapshot.
class SnapshotHandler {
 public:
  /// Comes once, before all items.
  virtual void on_head(const SnapshotHead& head) = 0;
  virtual void on_item(const SnapshotItem& item) = 0;
  /// The next bytes of the value of the last item.
  virtual void on_value(std::string_view bytes) = 0;
  /// The value is whole.
  virtual void on_item_end() = 0;

 protected:
  ~SnapshotHandler() = default;
};

struct SnapshotError {
  std::uint64_t at = 0;  // Byte of the snapshot.
  std::string text;

  friend bool operator==(const SnapshotError&, const SnapshotError&) = default;
};

class SnapshotReader {
 public:
  explicit SnapshotReader(SnapshotHandler& handler) : handler_(handler) {}

  /// Takes the next bytes, cut anywhere. False: it has failed.
  bool take(std::string_view bytes);
  /// There are no more bytes. False: it has failed, or an end is missing.
  bool finish();

  const std::optional<SnapshotError>& error() const noexcept { return error_; }
  std::uint64_t items() const noexcept { return items_; }
  std::uint64_t bytes() const noexcept { return taken_bytes_; }

 private:
  enum class Phase : std::uint8_t { Header, BlockHead, Payload, Done, Failed };
  enum class ItemPhase : std::uint8_t { Head, Key, Value };

  bool fail(std::uint64_t at, std::string text);
  std::size_t wanted_bytes() const noexcept;
  bool on_piece(std::string_view piece);
  bool on_header(std::string_view header);
  bool on_block_head(std::string_view head);
  bool on_payload(std::string_view payload);
  bool on_end(std::string_view payload);
  bool on_items(std::string_view payload);
  bool on_item_head(std::string_view head, std::uint64_t at);
  void end_item();

  SnapshotHandler& handler_;
  Phase phase_ = Phase::Header;
  ItemPhase item_phase_ = ItemPhase::Head;
  std::string piece_;              // The begun header, head of a block, or payload.
  std::uint64_t taken_bytes_ = 0;  // Of pieces that are done with.
  std::uint64_t blocks_ = 0;
  std::uint32_t kind_ = 0;  // Of the block that has begun.
  std::uint32_t payload_bytes_ = 0;
  std::uint64_t checksum_ = 0;
  std::string item_piece_;  // The begun head or key of an item, when a block ended in it.
  SnapshotItem item_;
  std::size_t key_bytes_ = 0;
  std::uint32_t value_left_ = 0;
  std::uint64_t items_ = 0;
  std::uint64_t item_bytes_ = 0;
  std::optional<SnapshotError> error_;
};

}  // namespace kvferry::store
