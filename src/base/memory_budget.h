// One budget of bytes for all buffers of the process (`memory_limit`).
//
// Slab pools charge it by whole slabs, so workers touch this shared word rarely. Nothing here
// fails: whoever starts new work asks is_exhausted() first and refuses early, which bounds what is
// in flight. Threads: any.
#pragma once

#include <atomic>
#include <cstddef>

namespace kvferry::base {

class MemoryBudget {
 public:
  /// `limit_bytes` 0 means no limit.
  explicit MemoryBudget(std::size_t limit_bytes) noexcept : limit_bytes_(limit_bytes) {}

  void charge(std::size_t bytes) noexcept {
    used_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void release(std::size_t bytes) noexcept {
    used_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  bool is_exhausted() const noexcept {
    const std::size_t limit = limit_bytes_.load(std::memory_order_relaxed);
    return limit != 0 && used_bytes() >= limit;
  }
  std::size_t used_bytes() const noexcept { return used_bytes_.load(std::memory_order_relaxed); }
  std::size_t limit_bytes() const noexcept { return limit_bytes_.load(std::memory_order_relaxed); }
  void set_limit(std::size_t limit_bytes) noexcept {
    limit_bytes_.store(limit_bytes, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::size_t> limit_bytes_;
  std::atomic<std::size_t> used_bytes_{0};
};

}  // namespace kvferry::base
