#include "store/frame_pool.h"

#include <sys/mman.h>

namespace kvferry::store {

FramePool::~FramePool() {
  for (void* extent : extents_) {
    munmap(extent, kExtentBytes);
  }
}

void* FramePool::acquire() noexcept {
  const std::lock_guard guard(mutex_);
  if (free_.empty() && !add_extent()) {
    return nullptr;
  }
  void* frame = free_.back();
  free_.pop_back();
  return frame;
}

void FramePool::release(void* frame) noexcept {
  madvise(frame, kFrameBytes, MADV_DONTNEED);
  const std::lock_guard guard(mutex_);
  free_.push_back(frame);
}

bool FramePool::add_extent() noexcept {
  // Twice the size is mapped and the ends are cut off, because mmap aligns to pages only.
  void* mapping = mmap(nullptr, 2 * kExtentBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return false;
  }
  char* const begin = static_cast<char*>(mapping);
  const std::size_t misfit = reinterpret_cast<std::uintptr_t>(begin) % kExtentBytes;
  char* const extent = misfit == 0 ? begin : begin + (kExtentBytes - misfit);
  if (extent != begin) {
    munmap(begin, static_cast<std::size_t>(extent - begin));
  }
  char* const end = extent + kExtentBytes;
  munmap(end, static_cast<std::size_t>(begin + 2 * kExtentBytes - end));

  extents_.push_back(extent);
  free_.reserve(extents_.size() * (kExtentBytes / kFrameBytes));
  // Pushed from the last to the first, so that frames are used upwards.
  for (std::size_t at = kExtentBytes; at > 0; at -= kFrameBytes) {
    free_.push_back(extent + at - kFrameBytes);
  }
  return true;
}

}  // namespace kvferry::store
