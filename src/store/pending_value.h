// PendingValue: a large value that is still being filled, in pieces that no item has yet.
//
// Threads: one at a time; takes the lock of its shard when it needs another batch of pieces.
// Lifetime: not linked to an item, its pieces go back when it dies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "store/instant.h"
#include "store/piece_set.h"

namespace kvferry::store {

class Shard;

class PendingValue {
 public:
  PendingValue() = default;
  PendingValue(const PendingValue&) = delete;
  PendingValue& operator=(const PendingValue&) = delete;
  PendingValue(PendingValue&& other) noexcept { swap(other); }
  PendingValue& operator=(PendingValue&& other) noexcept {
    if (this != &other) {
      drop();
      swap(other);
    }
    return *this;
  }
  ~PendingValue() { drop(); }

  /// Begins a value of `value_bytes` (more than kInlineBytesMax) for an item of `shard`.
  void begin(Shard& shard, std::uint64_t value_bytes) noexcept;
  /// Takes the next bytes, at most missing_bytes(). False: no memory; what was taken is kept until
  /// drop().
  bool append(std::string_view bytes, Instant now);
  void drop() noexcept;

  std::uint64_t value_bytes() const noexcept { return value_bytes_; }
  std::uint64_t missing_bytes() const noexcept { return value_bytes_ - filled_bytes_; }

  /// For the shard, of a filled value: the full pieces, and the bytes that belong into the record.
  Piece* first() const noexcept { return first_; }
  std::string_view rest() const noexcept {
    return has_rest() ? std::string_view(last_->bytes, last_bytes_) : std::string_view{};
  }
  /// The piece that rest() lies in, or null: the end of the full pieces.
  const Piece* rest_piece() const noexcept { return has_rest() ? last_ : nullptr; }
  /// For the shard: an item has taken the full pieces. Returns the piece with the rest, or null.
  [[nodiscard]] Piece* release_to_item() noexcept;

 private:
  /// Pieces taken from the shard at a time.
  static constexpr std::size_t kBatch = 16;

  bool has_rest() const noexcept { return value_bytes_ % kPieceBytes != 0; }
  void swap(PendingValue& other) noexcept;
  bool add_piece(Instant now);

  Shard* shard_ = nullptr;
  Piece* first_ = nullptr;
  Piece* last_ = nullptr;
  Piece* before_last_ = nullptr;
  Piece* spare_ = nullptr;  // Of the last batch, not used yet.
  std::size_t last_bytes_ = 0;
  std::uint64_t value_bytes_ = 0;
  std::uint64_t filled_bytes_ = 0;
  std::uint64_t pieces_missing_ = 0;
};

}  // namespace kvferry::store
