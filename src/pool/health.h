// Health of a backend, shared by all workers and control.
//
// Threads: any. Workers write the shared word only on failures and on the first reply of a fresh
// connection.
#pragma once

#include <atomic>
#include <cstdint>

namespace kvferry::pool {

/// `failure_limit` failures in a row take a backend down; a reply clears the count. Down backends
/// come back by a probe.
class BackendHealth {
 public:
  explicit BackendHealth(std::uint32_t failure_limit) noexcept : failure_limit_(failure_limit) {}

  /// True exactly once: for the failure that takes the backend down.
  bool on_failure() noexcept {
    const std::uint32_t count = failures_.fetch_add(1, std::memory_order_relaxed) + 1;
    return count >= failure_limit_.load(std::memory_order_relaxed) &&
           !is_down_.exchange(true, std::memory_order_acq_rel);
  }
  /// A reply came. Does not lift `down`; on_probed() does.
  void on_reply() noexcept {
    if (failures_.load(std::memory_order_relaxed) != 0) {
      failures_.store(0, std::memory_order_relaxed);
    }
  }
  /// A probe was answered: up again.
  void on_probed() noexcept {
    failures_.store(0, std::memory_order_relaxed);
    is_down_.store(false, std::memory_order_release);
  }
  bool is_down() const noexcept { return is_down_.load(std::memory_order_acquire); }
  std::uint32_t failures() const noexcept { return failures_.load(std::memory_order_relaxed); }
  void set_failure_limit(std::uint32_t limit) noexcept {
    failure_limit_.store(limit, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint32_t> failures_{0};
  std::atomic<bool> is_down_{false};
  std::atomic<std::uint32_t> failure_limit_;
};

}  // namespace kvferry::pool
