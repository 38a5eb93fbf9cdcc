// WriteGenerations: how often keys were written through routes that share reads, over all workers.
//
// A read may be shared with a later one only while no write of its key lay between them. The write
// may have gone through another worker, so the counts are words that all workers write: once before
// a write is sent and once when it is answered; reads only look. Keys share counts by hash. Two
// keys that meet cost a read that could have been shared, never a wrong answer.
//
// Threads: any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace kvferry::route {

class WriteGenerations {
 public:
  static constexpr std::size_t kCounts = 4096;

  std::uint64_t of(std::uint64_t key_hash) const noexcept {
    return counts_[key_hash % kCounts].load(std::memory_order_seq_cst);
  }
  void advance(std::uint64_t key_hash) noexcept {
    counts_[key_hash % kCounts].fetch_add(1, std::memory_order_seq_cst);
  }

 private:
  std::array<std::atomic<std::uint64_t>, kCounts> counts_{};
};

}  // namespace kvferry::route
