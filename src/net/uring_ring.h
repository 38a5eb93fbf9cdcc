// UringRing: one io_uring with its ring of receive buffers, and what this kernel can do with it.
//
// Errors:  open() fails with Unsupported and a sentence that names what was refused.
// Threads: open() on any; from the first wait() on, one thread only (the kernel enforces it where
//          deferred task work is in use).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <liburing.h>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/memory_budget.h"
#include "base/result.h"

namespace kvferry::net {

/// What was found to work. All of it is there from kernel 6.1 on.
struct UringFeatures {
  bool defer_taskrun = false;
  bool multishot_accept = false;
  bool multishot_receive = false;
  bool quiet_send = false;  // README.md, "Sends in io_uring".
};

/// Tries io_uring on a socket pair; `features_off` are UringFeature bits that count as missing.
base::Result<UringFeatures> probe_uring(std::uint32_t features_off);

/// Why setting up a ring failed, in words that name the limit or the filter.
base::Error uring_setup_error(std::string_view what, int error);

class UringRing {
 public:
  /// Runs of bytes that one gathering send can have.
  static constexpr std::size_t kGatherMax = 64;

  struct GatherList {
    msghdr message;
    std::array<iovec, kGatherMax> parts;
  };

  static base::Result<std::unique_ptr<UringRing>> open(std::size_t receive_buffers,
                                                       const UringFeatures& features,
                                                       base::MemoryBudget& budget);
  UringRing(const UringRing&) = delete;
  UringRing& operator=(const UringRing&) = delete;
  ~UringRing();

  const UringFeatures& features() const noexcept { return features_; }
  io_uring* get() noexcept { return &ring_; }

  /// A submission to fill in; submits what is queued when there is no room.
  io_uring_sqe* next() noexcept {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    return entry != nullptr ? entry : next_after_submit();
  }
  /// Space for a gather list that lasts until the next submission, which may happen here.
  GatherList& next_gather_list() noexcept {
    if (gathers_used_ == gathers_.size()) {
      submit_all();
    }
    return gathers_[gathers_used_++];
  }
  void submit() noexcept;
  /// Submits, and lets the kernel finish what that ended: a cancelled operation has let go of its
  /// descriptor afterwards.
  void submit_and_settle() noexcept;
  /// Submits and waits for one completion, or until `sleep_max` has passed (negative: for ever).
  /// False when this thread may not use the ring.
  bool wait(base::Millis sleep_max) noexcept;
  /// Submits what is queued and lets `length` pass, unless very many completions come before.
  void linger(base::Micros length) noexcept;
  bool has_completions() const noexcept { return io_uring_cq_ready(&ring_) != 0; }
  /// Everything that was queued has been tried, and every completion of it can be seen.
  bool is_settled() noexcept { return io_uring_sq_ready(&ring_) == 0 && !has_overflow(); }

  const char* buffer(unsigned id) const noexcept { return buffers_ + id * buffer_bytes_; }
  /// Gives a receive buffer back to the kernel.
  void return_buffer(unsigned id) noexcept {
    io_uring_buf_ring_add(buffer_ring_, buffers_ + id * buffer_bytes_,
                          static_cast<unsigned>(buffer_bytes_), static_cast<unsigned short>(id),
                          buffer_mask_, 0);
    io_uring_buf_ring_advance(buffer_ring_, 1);
  }

 private:
  static constexpr std::size_t kGatherLists = 32;

  UringRing(const UringFeatures& features, base::MemoryBudget& budget)
      : features_(features), budget_(budget) {}
  int set_up() noexcept;
  int add_buffers(std::size_t count) noexcept;
  void enable() noexcept;
  io_uring_sqe* next_after_submit() noexcept;
  void submit_all() noexcept;
  bool has_overflow() const noexcept;

  io_uring ring_{};
  UringFeatures features_;
  base::MemoryBudget& budget_;
  io_uring_buf_ring* buffer_ring_ = nullptr;
  char* buffers_ = nullptr;
  std::size_t buffer_bytes_ = 0;
  std::size_t mapped_bytes_ = 0;
  int buffer_mask_ = 0;
  bool is_set_up_ = false;
  bool is_enabled_ = false;
  std::array<GatherList, kGatherLists> gathers_{};
  std::size_t gathers_used_ = 0;
};

}  // namespace kvferry::net
