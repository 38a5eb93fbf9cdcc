// Pieces: where the bytes of large values live, eight in a frame.
//
// A value above kInlineBytesMax is a chain of full pieces; what is left of it lies in the item's
// record, so no piece is ever half empty. The chain belongs to one item. Readers that send it count
// themselves in its first piece; an item that goes away meanwhile leaves the chain to the last of
// them.
//
//   frame: | carrier header | piece | piece | ... | piece |
//
// Threads: guarded by the lock of the shard; the bytes of a pinned or not yet linked chain may be
// used without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/intrusive_list.h"
#include "store/frame_pool.h"

namespace kvferry::store {

inline constexpr std::size_t kPiecesPerFrame = 8;
inline constexpr std::size_t kCarrierHeadBytes = 64;
inline constexpr std::size_t kPieceTotalBytes = (kFrameBytes - kCarrierHeadBytes) / kPiecesPerFrame;
inline constexpr std::size_t kPieceBytes = kPieceTotalBytes - 16;

struct Piece {
  Piece* next;
  std::uint32_t readers;    // In the first piece of a chain only: who pins it.
  std::uint32_t is_orphan;  // In the first piece only: its item is gone.
  char bytes[kPieceBytes];

  std::string_view view() const noexcept { return {bytes, kPieceBytes}; }
};
static_assert(sizeof(Piece) == kPieceTotalBytes);

/// Values up to this lie in their record and are copied while the shard is locked.
inline constexpr std::size_t kInlineBytesMax = kPieceBytes;

class PieceSet {
 public:
  PieceSet() = default;
  PieceSet(const PieceSet&) = delete;
  PieceSet& operator=(const PieceSet&) = delete;
  /// Forgets its frames; the pool unmaps them.
  ~PieceSet();

  /// A piece, or null when there is none: add_frame() then.
  Piece* try_acquire() noexcept;
  void add_frame(void* frame) noexcept;
  /// Gives `piece` back. Returns its frame when nothing else lies in it: the frame is the caller's
  /// again.
  [[nodiscard]] void* release(Piece* piece) noexcept;

 private:
  struct CarrierTag;
  struct Carrier : base::ListHook<CarrierTag> {
    Piece* free = nullptr;
    std::uint32_t live = 0;
    std::uint32_t carved = 0;  // Pieces handed out at least once.
  };
  static_assert(sizeof(Carrier) <= kCarrierHeadBytes);

  base::List<Carrier, CarrierTag> partial_;  // Have at least one free piece.
};

}  // namespace kvferry::store
