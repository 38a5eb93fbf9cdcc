#include "base/carry_buffer.h"

#include <cstdlib>

#include "base/check.h"

namespace kvferry::base {
namespace {

/// The block whose bytes start at `memory`.
Block* block_of(char* memory) noexcept {
  return reinterpret_cast<Block*>(memory) - 1;
}

}  // namespace

void CarryBuffer::append(BlockPool& pool, std::string_view bytes) noexcept {
  if (bytes.empty()) {
    return;
  }
  if (capacity_ - end_ < bytes.size()) {
    grow(pool, bytes.size());
  }
  std::memcpy(memory_ + end_, bytes.data(), bytes.size());
  end_ += bytes.size();
}

void CarryBuffer::grow(BlockPool& pool, std::size_t bytes) noexcept {
  const std::size_t used = size();
  const std::size_t wanted = used + bytes;
  if (memory_ != nullptr && capacity_ >= wanted && begin_ >= capacity_ / 2) {
    std::memmove(memory_, memory_ + begin_, used);
    begin_ = 0;
    end_ = used;
    return;
  }
  CarryBuffer bigger;
  if (wanted <= kBlockBytesLarge - sizeof(Block)) {
    Block* block = pool.acquire(wanted > kBlockBytesSmall - sizeof(Block));
    bigger.memory_ = block->bytes();
    bigger.capacity_ = block->capacity;
  } else {
    bigger.capacity_ = std::max(wanted, 2 * capacity_);
    // NOLINTNEXTLINE(*-no-malloc,*-owning-memory): raw bytes, never initialised; clear() frees them
    bigger.memory_ = static_cast<char*>(std::malloc(bigger.capacity_));
    KVF_CHECK(bigger.memory_ != nullptr);
    bigger.heap_pool_ = &pool;
    pool.budget().charge(bigger.capacity_);
  }
  if (memory_ != nullptr) {
    std::memcpy(bigger.memory_, memory_ + begin_, used);
  }
  bigger.end_ = used;
  std::swap(memory_, bigger.memory_);
  std::swap(begin_, bigger.begin_);
  std::swap(end_, bigger.end_);
  std::swap(capacity_, bigger.capacity_);
  std::swap(heap_pool_, bigger.heap_pool_);
}

void CarryBuffer::clear() noexcept {
  if (memory_ != nullptr) {
    if (heap_pool_ != nullptr) {
      heap_pool_->budget().release(capacity_);
      // NOLINTNEXTLINE(*-no-malloc,*-owning-memory): what grow() made
      std::free(memory_);
    } else {
      BlockPool::release(block_of(memory_));
    }
  }
  memory_ = nullptr;
  heap_pool_ = nullptr;
  begin_ = end_ = capacity_ = 0;
}

}  // namespace kvferry::base
