// ByteChain: a queue of bytes in pooled blocks. What waits to be sent, and replies that wait for
// their turn, are kept in it.
//
// A chain is two pointers and a size; it gives its last block back when it becomes empty. Bytes are
// copied in once and leave through gather lists or splice(). Blocks come in two sizes: small ones,
// so that a short reply waiting for its turn costs little, and large ones for everything else.
//
// Invariant: while size() is not 0, the first block holds bytes. Blocks behind it may be empty
//            (space that was prepared and not committed).
// Threads:   one, that of its BlockPool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <sys/uio.h>

#include "base/slab_pool.h"

namespace kvferry::base {

inline constexpr std::size_t kBlockBytesSmall = 1024;
inline constexpr std::size_t kBlockBytesLarge = std::size_t{16} * 1024;

class BlockPool;

/// Head of a block; its bytes follow.
struct Block {
  Block* next;
  BlockPool* pool;
  std::uint32_t begin;     // First unread byte.
  std::uint32_t end;       // One past the last byte written.
  std::uint32_t capacity;  // Bytes that fit behind this head.
  std::uint32_t is_large;

  char* bytes() noexcept { return reinterpret_cast<char*>(this + 1); }
  const char* bytes() const noexcept { return reinterpret_cast<const char*>(this + 1); }
  std::size_t size() const noexcept { return end - begin; }
  std::size_t room() const noexcept { return capacity - end; }
};

/// Source of blocks, one a thread.
class BlockPool {
 public:
  explicit BlockPool(MemoryBudget& budget)
      : small_(kBlockBytesSmall, budget), large_(kBlockBytesLarge, budget), budget_(budget) {}

  Block* acquire(bool large) noexcept {
    SlabPool& pool = large ? large_ : small_;
    auto* block = static_cast<Block*>(pool.acquire());
    block->next = nullptr;
    block->pool = this;
    block->begin = block->end = 0;
    block->capacity = static_cast<std::uint32_t>(pool.piece_bytes() - sizeof(Block));
    block->is_large = large ? 1 : 0;
    return block;
  }
  static void release(Block* block) noexcept {
    (block->is_large != 0 ? block->pool->large_ : block->pool->small_).release(block);
  }

  /// See SlabPool::trim; call about once a second.
  void trim(bool all_empty = false) noexcept {
    small_.trim(all_empty);
    large_.trim(all_empty);
  }
  /// Bytes of blocks that some chain holds now.
  std::size_t live_bytes() const noexcept {
    return small_.live_pieces() * small_.piece_bytes() +
           large_.live_pieces() * large_.piece_bytes();
  }
  MemoryBudget& budget() noexcept { return budget_; }

 private:
  SlabPool small_;
  SlabPool large_;
  MemoryBudget& budget_;
};

class ByteChain {
 public:
  ByteChain() = default;
  ByteChain(const ByteChain&) = delete;
  ByteChain& operator=(const ByteChain&) = delete;
  ByteChain(ByteChain&& other) noexcept
      : head_(other.head_), tail_(other.tail_), size_(other.size_) {
    other.forget();
  }
  ByteChain& operator=(ByteChain&& other) noexcept {
    if (this != &other) {
      clear();
      head_ = other.head_;
      tail_ = other.tail_;
      size_ = other.size_;
      other.forget();
    }
    return *this;
  }
  ~ByteChain() { clear(); }

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }

  /// Copies `bytes` to the end. Blocks are taken from `pool`, which must outlive the chain.
  void append(BlockPool& pool, std::string_view bytes) noexcept {
    // One compare for "fits and is not empty": memcpy must not see the null pointer of an empty
    // view.
    if (tail_ != nullptr && bytes.size() - 1 < tail_->room()) [[likely]] {
      std::memcpy(tail_->bytes() + tail_->end, bytes.data(), bytes.size());
      tail_->end += static_cast<std::uint32_t>(bytes.size());
      size_ += bytes.size();
      return;
    }
    append_slow(pool, bytes);
  }

  /// As append(); the first block of an empty chain is a large one. For output that is expected to
  /// grow within the turn.
  void append_output(BlockPool& pool, std::string_view bytes) noexcept {
    if (tail_ == nullptr) {
      head_ = tail_ = pool.acquire(true);
    }
    append(pool, bytes);
  }

  /// Space for `bytes_max` contiguous bytes (at most what a large block holds) at the end; commit()
  /// says how many were used.
  char* prepare(BlockPool& pool, std::size_t bytes_max) noexcept;
  void commit(std::size_t bytes) noexcept {
    tail_->end += static_cast<std::uint32_t>(bytes);
    size_ += bytes;
  }

  /// Moves all of `other` to the end of this chain: small contents are copied, blocks of large ones
  /// change hands.
  void splice(BlockPool& pool, ByteChain& other) noexcept;
  /// Moves the first `bytes` of `other` (at most its size) to the end of this chain; copies unless
  /// that is all of it.
  void splice(BlockPool& pool, ByteChain& other, std::size_t bytes) noexcept;

  /// Fills `parts` with up to `parts_max` runs of bytes from the front; returns how many it filled.
  std::size_t gather(iovec* parts, std::size_t parts_max) const noexcept;
  /// The first run of contiguous bytes.
  std::string_view front() const noexcept {
    return head_ == nullptr ? std::string_view{}
                            : std::string_view(head_->bytes() + head_->begin, head_->size());
  }
  /// Drops `bytes` (at most size()) from the front. The chain gives its last block back when it
  /// becomes empty.
  void consume(std::size_t bytes) noexcept;
  void clear() noexcept;

 private:
  void forget() noexcept {
    head_ = tail_ = nullptr;
    size_ = 0;
  }
  void append_slow(BlockPool& pool, std::string_view bytes) noexcept;
  void add_block(BlockPool& pool, bool large) noexcept;

  Block* head_ = nullptr;
  Block* tail_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace kvferry::base
