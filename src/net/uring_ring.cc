#include "net/uring_ring.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "net/loop.h"

namespace kvferry::net {
namespace {

using base::Error;
using base::ErrorCode;

// Modest sizes: ring memory counts against the limit of locked memory of ordinary users.
constexpr unsigned kSubmissions = 512;
constexpr unsigned kCompletions = 8192;
/// A submission may be interrupted; a kernel that cannot take it after that many tries is out of
/// memory.
constexpr int kSubmitTriesMax = 1000;
constexpr std::size_t kBufferRingMax = 32768;  // The kernel's.

}  // namespace

Error uring_setup_error(std::string_view what, int error) {
  std::string detail = "io_uring: " + Error::from_errno(what, error).text();
  if (error == ENOMEM) {
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    detail += " (the limit of locked memory, RLIMIT_MEMLOCK or LimitMEMLOCK, is " +
              std::to_string(limit.rlim_cur / 1024) + " KiB; raise it or use epoll)";
  } else if (error == EPERM || error == ENOSYS || error == EACCES) {
    detail +=
        " (a container's filter or kernel.io_uring_disabled forbids it, or the kernel is too"
        " old)";
  }
  return {ErrorCode::Unsupported, std::move(detail)};
}

base::Result<std::unique_ptr<UringRing>> UringRing::open(std::size_t receive_buffers,
                                                         const UringFeatures& features,
                                                         base::MemoryBudget& budget) {
  std::unique_ptr<UringRing> ring(new UringRing(features, budget));
  if (const int error = ring->set_up(); error != 0) {
    return uring_setup_error("cannot set up a ring", error);
  }
  const std::size_t count =
      std::bit_ceil(std::clamp<std::size_t>(receive_buffers, 2, kBufferRingMax));
  if (const int error = ring->add_buffers(count); error != 0) {
    return uring_setup_error("cannot register " + std::to_string(count) + " receive buffers",
                             error);
  }
  return ring;
}

int UringRing::set_up() noexcept {
  io_uring_params params{};
  params.cq_entries = kCompletions;
  // Disabled until the first wait, so that the thread which waits is the one that the kernel takes
  // for the issuer, whoever opened the ring.
  params.flags = IORING_SETUP_CQSIZE | IORING_SETUP_R_DISABLED | IORING_SETUP_SUBMIT_ALL;
  if (features_.defer_taskrun) {
    params.flags |= IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  }
  int result = io_uring_queue_init_params(kSubmissions, &ring_, &params);
  if (result == -EINVAL) {
    params = {};
    params.cq_entries = kCompletions;
    params.flags = IORING_SETUP_CQSIZE | IORING_SETUP_R_DISABLED;
    result = io_uring_queue_init_params(kSubmissions, &ring_, &params);
  }
  is_set_up_ = result == 0;
  return -result;
}

int UringRing::add_buffers(std::size_t count) noexcept {
  buffer_bytes_ = kRingBufferBytes;
  buffer_mask_ = io_uring_buf_ring_mask(static_cast<unsigned>(count));
  // One mapping: the ring first, then the buffers. Touched now, so that the first burst of load
  // neither faults nor grows the process.
  const std::size_t page = 4096;
  const std::size_t ring_bytes = (count * sizeof(io_uring_buf) + page - 1) / page * page;
  mapped_bytes_ = ring_bytes + count * buffer_bytes_;
  void* memory = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    mapped_bytes_ = 0;
    return errno;
  }
  budget_.charge(mapped_bytes_);
  buffer_ring_ = static_cast<io_uring_buf_ring*>(memory);
  buffers_ = static_cast<char*>(memory) + ring_bytes;
  io_uring_buf_reg registration{};
  registration.ring_addr = reinterpret_cast<std::uintptr_t>(buffer_ring_);
  registration.ring_entries = static_cast<unsigned>(count);
  if (const int result = io_uring_register_buf_ring(&ring_, &registration, 0); result != 0) {
    return -result;
  }
  io_uring_buf_ring_init(buffer_ring_);
  for (unsigned id = 0; id < count; ++id) {
    return_buffer(id);
  }
  return 0;
}

UringRing::~UringRing() {
  if (is_set_up_) {
    io_uring_queue_exit(&ring_);
  }
  if (mapped_bytes_ != 0) {
    munmap(buffer_ring_, mapped_bytes_);
    budget_.release(mapped_bytes_);
  }
}

void UringRing::enable() noexcept {
  is_enabled_ = true;
  // Version 2.3 of the library declares a function for this and does not export it.
  const long result =
      ::syscall(SYS_io_uring_register, ring_.ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
  KVF_CHECK(result == 0);
}

void UringRing::submit() noexcept {
  if (!is_enabled_) {
    enable();
  }
  // Interrupted or short of memory: what is left is submitted with the next call.
  io_uring_submit(&ring_);
  if (io_uring_sq_ready(&ring_) == 0) {
    gathers_used_ = 0;
  }
}

void UringRing::submit_all() noexcept {
  for (int i = 0; i < kSubmitTriesMax && io_uring_sq_ready(&ring_) != 0; ++i) {
    submit();
  }
  gathers_used_ = io_uring_sq_ready(&ring_) == 0 ? 0 : gathers_used_;
  KVF_CHECK(gathers_used_ < gathers_.size());
}

io_uring_sqe* UringRing::next_after_submit() noexcept {
  submit_all();
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  KVF_CHECK(entry != nullptr);
  return entry;
}

void UringRing::submit_and_settle() noexcept {
  submit();
  io_uring_submit_and_get_events(&ring_);
}

bool UringRing::wait(base::Millis sleep_max) noexcept {
  if (!is_enabled_) [[unlikely]] {
    enable();
  }
  int result = 0;
  if (sleep_max.count() == 0) {
    result = io_uring_submit_and_get_events(&ring_);
  } else if (sleep_max.count() < 0) {
    result = io_uring_submit_and_wait(&ring_, 1);
  } else {
    io_uring_cqe* first = nullptr;
    __kernel_timespec time{};
    time.tv_sec = sleep_max.count() / 1000;
    time.tv_nsec = (sleep_max.count() % 1000) * 1'000'000;
    result = io_uring_submit_and_wait_timeout(&ring_, &first, 1, &time, nullptr);
  }
  if (io_uring_sq_ready(&ring_) == 0) [[likely]] {
    gathers_used_ = 0;
  }
  // ETIME, EINTR, and EBUSY or EAGAIN (completions first) all end the wait, and the turn goes on.
  return result != -EEXIST;
}

void UringRing::linger(base::Micros length) noexcept {
  // A full batch ends it early; there is no use in waiting for more than one turn can take.
  constexpr unsigned kBatch = 256;
  io_uring_cqe* first = nullptr;
  __kernel_timespec time{};
  time.tv_nsec = length.count() * 1000;
  static_cast<void>(io_uring_submit_and_wait_timeout(&ring_, &first, kBatch, &time, nullptr));
  if (io_uring_sq_ready(&ring_) == 0) [[likely]] {
    gathers_used_ = 0;
  }
}

bool UringRing::has_overflow() const noexcept {
  return (__atomic_load_n(ring_.sq.kflags, __ATOMIC_RELAXED) & IORING_SQ_CQ_OVERFLOW) != 0;
}

}  // namespace kvferry::net
