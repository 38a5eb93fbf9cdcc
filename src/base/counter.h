// Counter: written by one thread, read by any. Plain moves on x86; no locked instruction.
#pragma once

#include <atomic>
#include <cstdint>

namespace kvferry::base {

class Counter {
 public:
  /// Adds on the owning thread only.
  void add(std::uint64_t amount) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  void sub(std::uint64_t amount) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) - amount, std::memory_order_relaxed);
  }
  void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  /// Reads on any thread; may lag behind the owner by what its store buffer holds.
  std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace kvferry::base
