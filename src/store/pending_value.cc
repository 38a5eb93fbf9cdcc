#include "store/pending_value.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "store/shard.h"

namespace kvferry::store {

void PendingValue::begin(Shard& shard, std::uint64_t value_bytes) noexcept {
  KVF_CHECK(shard_ == nullptr && value_bytes > kInlineBytesMax);
  shard_ = &shard;
  value_bytes_ = value_bytes;
  pieces_missing_ = (value_bytes + kPieceBytes - 1) / kPieceBytes;
}

bool PendingValue::append(std::string_view bytes, Instant now) {
  KVF_CHECK(bytes.size() <= missing_bytes());
  while (!bytes.empty()) {
    if ((last_ == nullptr || last_bytes_ == kPieceBytes) && !add_piece(now)) {
      return false;
    }
    const std::size_t part = std::min(bytes.size(), kPieceBytes - last_bytes_);
    std::memcpy(last_->bytes + last_bytes_, bytes.data(), part);
    last_bytes_ += part;
    filled_bytes_ += part;
    bytes.remove_prefix(part);
  }
  return true;
}

bool PendingValue::add_piece(Instant now) {
  if (spare_ == nullptr) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kBatch, pieces_missing_));
    spare_ = shard_->acquire_pieces(count, now);
    if (spare_ == nullptr) {
      return false;
    }
    pieces_missing_ -= count;
  }
  Piece* const piece = spare_;
  spare_ = piece->next;
  piece->next = nullptr;
  (last_ == nullptr ? first_ : last_->next) = piece;
  before_last_ = last_;
  last_ = piece;
  last_bytes_ = 0;
  return true;
}

Piece* PendingValue::release_to_item() noexcept {
  KVF_CHECK(missing_bytes() == 0 && spare_ == nullptr);
  Piece* rest = nullptr;
  if (has_rest()) {
    rest = last_;
    before_last_->next = nullptr;
  }
  first_ = nullptr;
  drop();
  return rest;
}

void PendingValue::drop() noexcept {
  for (Piece* chain : {first_, spare_}) {
    if (chain != nullptr) {
      shard_->release_pieces(chain);
    }
  }
  shard_ = nullptr;
  first_ = last_ = before_last_ = spare_ = nullptr;
  last_bytes_ = 0;
  value_bytes_ = filled_bytes_ = pieces_missing_ = 0;
}

void PendingValue::swap(PendingValue& other) noexcept {
  std::swap(shard_, other.shard_);
  std::swap(first_, other.first_);
  std::swap(last_, other.last_);
  std::swap(before_last_, other.before_last_);
  std::swap(spare_, other.spare_);
  std::swap(last_bytes_, other.last_bytes_);
  std::swap(value_bytes_, other.value_bytes_);
  std::swap(filled_bytes_, other.filled_bytes_);
  std::swap(pieces_missing_, other.pieces_missing_);
}

}  // namespace kvferry::store
