#include "store/piece_set.h"

#include <new>

namespace kvferry::store {

PieceSet::~PieceSet() {
  while (partial_.pop_front() != nullptr) {
  }
}

Piece* PieceSet::try_acquire() noexcept {
  Carrier* carrier = partial_.front();
  if (carrier == nullptr) {
    return nullptr;
  }
  Piece* piece = carrier->free;
  if (piece != nullptr) {
    carrier->free = piece->next;
  } else {
    char* const pieces = reinterpret_cast<char*>(carrier) + kCarrierHeadBytes;
    piece = reinterpret_cast<Piece*>(pieces + carrier->carved * kPieceTotalBytes);
    ++carrier->carved;
  }
  if (++carrier->live == kPiecesPerFrame) {
    carrier->unlink();
  }
  piece->next = nullptr;
  piece->readers = 0;
  piece->is_orphan = 0;
  return piece;
}

void PieceSet::add_frame(void* frame) noexcept {
  // At the back: carriers in use fill up first, so that others become empty.
  partial_.push_back(*new (frame) Carrier);
}

void* PieceSet::release(Piece* piece) noexcept {
  auto* carrier = static_cast<Carrier*>(frame_of(piece));
  piece->next = carrier->free;
  carrier->free = piece;
  if (carrier->live == kPiecesPerFrame) {
    partial_.push_front(*carrier);
  }
  if (--carrier->live > 0) {
    return nullptr;
  }
  carrier->unlink();
  carrier->~Carrier();
  return carrier;
}

}  // namespace kvferry::store
