// Frames: the pieces of memory that everything in the store is made of.
//
// A frame is kFrameBytes long and aligned to that, so whatever lies in it finds the frame's header
// by masking its own address. Frames are cut from larger mappings; a frame that is given back loses
// its pages to the system at once and keeps its address for the next user.
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace kvferry::store {

inline constexpr std::size_t kFrameBytes = std::size_t{64} * 1024;
/// What one mapping covers: a huge page on most systems.
inline constexpr std::size_t kExtentBytes = std::size_t{2} * 1024 * 1024;
static_assert(kExtentBytes % kFrameBytes == 0);

class FramePool {
 public:
  FramePool() = default;
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;
  /// Every byte of every frame goes back to the system, whoever still holds it.
  ~FramePool();

  /// A frame of unspecified content, or null when the system gives no more memory.
  void* acquire() noexcept;
  /// Gives the pages of `frame` back to the system.
  void release(void* frame) noexcept;

 private:
  bool add_extent() noexcept;

  std::mutex mutex_;
  std::vector<void*> free_;     // Frames without pages.
  std::vector<void*> extents_;  // What to unmap at the end.
};

/// Start of the frame in which `address` lies.
inline void* frame_of(const void* address) noexcept {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): frames are aligned to their size
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) & ~(kFrameBytes - 1));
}

}  // namespace kvferry::store
