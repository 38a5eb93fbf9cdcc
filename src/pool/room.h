// Room: memory for an object of varying size and what it keeps, in one piece: with thousands of
// them in flight each comes out of the cache once.
//
// Threads: that of the block pool.
#pragma once

#include <cstddef>
#include <new>

#include "base/byte_chain.h"

namespace kvferry::pool {

struct Room {
  base::Block* block = nullptr;  // Where it lies, when it fits into one ...
  std::size_t heap_bytes = 0;    // ... else on the heap, charged to the budget.
};

/// Room for `bytes`, which begins at the pointer that is returned; `room` tells how to give it
/// back.
inline char* acquire_room(base::BlockPool& blocks, std::size_t bytes, Room& room) {
  if (bytes <= base::kBlockBytesLarge - sizeof(base::Block)) {
    room = {.block = blocks.acquire(bytes > base::kBlockBytesSmall - sizeof(base::Block))};
    return room.block->bytes();
  }
  room = {.heap_bytes = bytes};
  blocks.budget().charge(bytes);
  return static_cast<char*>(::operator new(bytes));
}

/// `memory` is what acquire_room() returned with `room`.
inline void release_room(base::BlockPool& blocks, const Room& room, void* memory) {
  if (room.block != nullptr) {
    base::BlockPool::release(room.block);
    return;
  }
  ::operator delete(memory);
  blocks.budget().release(room.heap_bytes);
}

}  // namespace kvferry::pool
