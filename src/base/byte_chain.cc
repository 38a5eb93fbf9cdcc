#include "base/byte_chain.h"

#include <algorithm>

namespace kvferry::base {
namespace {

/// Below this, copying a piece costs less than carrying one more block through a gather list.
constexpr std::size_t kSpliceCopyBytes = 4096;

}  // namespace

void ByteChain::add_block(BlockPool& pool, bool large) noexcept {
  Block* block = pool.acquire(large);
  if (tail_ == nullptr) {
    head_ = block;
  } else {
    tail_->next = block;
  }
  tail_ = block;
}

void ByteChain::append_slow(BlockPool& pool, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    if (tail_ == nullptr || tail_->room() == 0) {
      add_block(pool, tail_ != nullptr || bytes.size() > kBlockBytesSmall - sizeof(Block));
    }
    const std::size_t part = std::min(tail_->room(), bytes.size());
    std::memcpy(tail_->bytes() + tail_->end, bytes.data(), part);
    tail_->end += static_cast<std::uint32_t>(part);
    size_ += part;
    bytes.remove_prefix(part);
  }
}

char* ByteChain::prepare(BlockPool& pool, std::size_t bytes_max) noexcept {
  KVF_DCHECK(bytes_max <= kBlockBytesLarge - sizeof(Block));
  if (tail_ == nullptr || tail_->room() < bytes_max) {
    add_block(pool, true);
  }
  return tail_->bytes() + tail_->end;
}

void ByteChain::splice(BlockPool& pool, ByteChain& other) noexcept {
  KVF_DCHECK(this != &other);
  if (size_ == 0) {
    clear();  // A block that was prepared and stayed empty must not stand in front of bytes.
  }
  if (other.size_ <= kSpliceCopyBytes && tail_ != nullptr) {
    for (const Block* block = other.head_; block != nullptr; block = block->next) {
      append(pool, std::string_view(block->bytes() + block->begin, block->size()));
    }
    other.clear();
    return;
  }
  if (other.head_ == nullptr) {
    return;
  }
  if (tail_ == nullptr) {
    head_ = other.head_;
  } else {
    tail_->next = other.head_;
  }
  tail_ = other.tail_;
  size_ += other.size_;
  other.forget();
}

void ByteChain::splice(BlockPool& pool, ByteChain& other, std::size_t bytes) noexcept {
  KVF_DCHECK(bytes <= other.size_);
  if (bytes == other.size_) {
    splice(pool, other);
    return;
  }
  while (bytes > 0) {
    Block* block = other.head_;
    const std::size_t part = std::min(bytes, block->size());
    append(pool, std::string_view(block->bytes() + block->begin, part));
    other.consume(part);
    bytes -= part;
  }
}

std::size_t ByteChain::gather(iovec* parts, std::size_t parts_max) const noexcept {
  std::size_t count = 0;
  for (Block* block = head_; block != nullptr && count < parts_max; block = block->next) {
    if (block->size() != 0) {
      parts[count++] = {.iov_base = block->bytes() + block->begin, .iov_len = block->size()};
    }
  }
  return count;
}

void ByteChain::consume(std::size_t bytes) noexcept {
  KVF_DCHECK(bytes <= size_);
  size_ -= bytes;
  if (size_ == 0) {
    clear();
    return;
  }
  // Bytes remain, so a block that holds some is met before the end.
  while (bytes >= head_->size()) {
    Block* used_up = head_;
    bytes -= used_up->size();
    head_ = used_up->next;
    BlockPool::release(used_up);
  }
  head_->begin += static_cast<std::uint32_t>(bytes);
}

void ByteChain::clear() noexcept {
  while (head_ != nullptr) {
    Block* block = head_;
    head_ = block->next;
    BlockPool::release(block);
  }
  forget();
}

}  // namespace kvferry::base
