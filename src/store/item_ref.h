// ItemRef: keeps the pieces of a large value while they are being sent, whatever happens to the
// item.
//
// Threads: made under the lock of the shard, released anywhere (it takes the lock); the bytes are
// read without it.
#pragma once

#include <string_view>
#include <utility>

#include "store/piece_set.h"

namespace kvferry::store {

class Shard;

class ItemRef {
 public:
  ItemRef() = default;
  /// Takes over one reader of the chain that begins with `first`.
  ItemRef(Shard& shard, Piece* first) noexcept : shard_(&shard), first_(first), at_(first) {}
  ItemRef(ItemRef&& other) noexcept
      : shard_(std::exchange(other.shard_, nullptr)),
        first_(std::exchange(other.first_, nullptr)),
        at_(std::exchange(other.at_, nullptr)) {}
  ItemRef& operator=(ItemRef&& other) noexcept {
    if (this != &other) {
      release();
      shard_ = std::exchange(other.shard_, nullptr);
      first_ = std::exchange(other.first_, nullptr);
      at_ = std::exchange(other.at_, nullptr);
    }
    return *this;
  }
  ItemRef(const ItemRef&) = delete;
  ItemRef& operator=(const ItemRef&) = delete;
  ~ItemRef() { release(); }

  explicit operator bool() const noexcept { return first_ != nullptr; }
  /// The next bytes of the value; empty behind the last piece.
  std::string_view take() noexcept {
    if (at_ == nullptr) {
      return {};
    }
    const std::string_view bytes = at_->view();
    at_ = at_->next;
    return bytes;
  }
  bool has_more() const noexcept { return at_ != nullptr; }
  void release() noexcept;

 private:
  Shard* shard_ = nullptr;
  Piece* first_ = nullptr;
  Piece* at_ = nullptr;
};

}  // namespace kvferry::store
