// What io_uring can do here, found by doing it on a socket pair: versions say little, since filters
// and backports change what a kernel answers.
#include <array>
#include <cerrno>
#include <sys/socket.h>
#include <unistd.h>

#include "net/loop.h"
#include "net/socket.h"
#include "net/uring_ring.h"

namespace kvferry::net {
namespace {

using base::Result;

constexpr unsigned kProbeEntries = 8;
constexpr unsigned kProbeBuffers = 2;
constexpr std::size_t kProbeBufferBytes = 64;
/// More than any socket buffer that was asked to be small.
constexpr std::size_t kTooMuchBytes = std::size_t{1} << 20;
constexpr __kernel_timespec kProbeTimeout{1, 0};

/// A small ring with a buffer ring, and a connected pair of sockets to try it on.
class Probe {
 public:
  Probe() = default;
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  ~Probe() {
    if (is_set_up_) {
      io_uring_queue_exit(&ring_);
    }
  }

  /// Errno values; 0 when it worked.
  int open(bool defer_taskrun) noexcept;
  int add_buffers() noexcept;
  int make_pair() noexcept;
  /// Whether one armed receive delivers and stays armed.
  int receive(bool multishot) noexcept;
  bool sends_quietly();

 private:
  struct Completion {
    bool came = false;
    int result = 0;
    unsigned flags = 0;
  };
  Completion wait() noexcept;
  Completion send_quietly(const char* bytes, std::size_t size) noexcept;

  // The kernel reads the buffer ring; it has to be aligned like a page.
  alignas(4096) std::array<char, 4096> buffer_ring_{};
  io_uring ring_{};
  bool is_set_up_ = false;
  Fd near_;
  Fd far_;
  std::array<char, kProbeBuffers * kProbeBufferBytes> buffers_{};
};

int Probe::open(bool defer_taskrun) noexcept {
  const unsigned flags =
      defer_taskrun ? IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN : 0U;
  const int result = io_uring_queue_init(kProbeEntries, &ring_, flags);
  if (result != 0) {
    return -result;
  }
  is_set_up_ = true;
  // Without it a wait with a time limit costs a request of its own.
  return (ring_.features & IORING_FEAT_EXT_ARG) != 0 ? 0 : ENOSYS;
}

int Probe::add_buffers() noexcept {
  auto* ring = reinterpret_cast<io_uring_buf_ring*>(buffer_ring_.data());
  io_uring_buf_reg registration{};
  registration.ring_addr = reinterpret_cast<std::uintptr_t>(ring);
  registration.ring_entries = kProbeBuffers;
  const int result = io_uring_register_buf_ring(&ring_, &registration, 0);
  if (result != 0) {
    return -result;
  }
  io_uring_buf_ring_init(ring);
  for (unsigned i = 0; i < kProbeBuffers; ++i) {
    io_uring_buf_ring_add(ring, buffers_.data() + i * kProbeBufferBytes, kProbeBufferBytes,
                          static_cast<unsigned short>(i), io_uring_buf_ring_mask(kProbeBuffers),
                          static_cast<int>(i));
  }
  io_uring_buf_ring_advance(ring, static_cast<int>(kProbeBuffers));
  return 0;
}

int Probe::make_pair() noexcept {
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return errno;
  }
  near_ = Fd(pair[0]);
  far_ = Fd(pair[1]);
  return 0;
}

Probe::Completion Probe::wait() noexcept {
  io_uring_cqe* entry = nullptr;
  __kernel_timespec time = kProbeTimeout;
  io_uring_submit_and_wait_timeout(&ring_, &entry, 1, &time, nullptr);
  if (entry == nullptr) {
    return {};
  }
  const Completion completion{true, entry->res, entry->flags};
  io_uring_cqe_seen(&ring_, entry);
  return completion;
}

int Probe::receive(bool multishot) noexcept {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  if (multishot) {
    io_uring_prep_recv_multishot(entry, near_.get(), nullptr, 0, 0);
  } else {
    io_uring_prep_recv(entry, near_.get(), nullptr, kProbeBufferBytes, 0);
  }
  entry->flags |= IOSQE_BUFFER_SELECT;
  if (::send(far_.get(), "x", 1, MSG_NOSIGNAL) != 1) {
    return errno;
  }
  const Completion got = wait();
  if (!got.came || got.result != 1 || (got.flags & IORING_CQE_F_BUFFER) == 0) {
    return got.result < 0 ? -got.result : EIO;
  }
  if (!multishot) {
    return 0;
  }
  if ((got.flags & IORING_CQE_F_MORE) == 0) {
    return EIO;
  }
  // The end of input ends the receive, so that nothing is left in flight.
  ::shutdown(far_.get(), SHUT_WR);
  const Completion end = wait();
  return end.came && (end.flags & IORING_CQE_F_MORE) == 0 ? 0 : EIO;
}

Probe::Completion Probe::send_quietly(const char* bytes, std::size_t size) noexcept {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  io_uring_prep_send(entry, far_.get(), bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_WAITALL);
  entry->flags |= IOSQE_CQE_SKIP_SUCCESS;
  io_uring_submit_and_get_events(&ring_);
  io_uring_cqe* seen = nullptr;
  if (io_uring_peek_cqe(&ring_, &seen) != 0) {
    return {};
  }
  const Completion completion{true, seen->res, seen->flags};
  io_uring_cqe_seen(&ring_, seen);
  return completion;
}

bool Probe::sends_quietly() {
  const int small = 4096;
  setsockopt(far_.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
  if (send_quietly("q", 1).came) {
    return false;
  }
  const std::string zeros(kTooMuchBytes, '\0');
  const Completion part = send_quietly(zeros.data(), zeros.size());
  if (!part.came || part.result <= 0 || static_cast<std::size_t>(part.result) >= zeros.size()) {
    return false;
  }
  const Completion full = send_quietly(zeros.data(), zeros.size());
  if (!full.came || full.result != -EAGAIN) {
    return false;
  }
  // All that was reported as sent has to be there, and no more.
  std::string received(zeros.size(), '\0');
  std::size_t size = 0;
  for (;;) {
    const ssize_t got = ::recv(near_.get(), received.data(), received.size(), MSG_DONTWAIT);
    if (got <= 0) {
      break;
    }
    size += static_cast<std::size_t>(got);
  }
  return size == static_cast<std::size_t>(part.result) + 1;
}

/// Tries one kind of receive on a ring of its own; errno, or 0.
int try_receive(bool defer_taskrun, bool multishot) noexcept {
  Probe probe;
  int error = probe.open(defer_taskrun);
  error = error != 0 ? error : probe.add_buffers();
  error = error != 0 ? error : probe.make_pair();
  return error != 0 ? error : probe.receive(multishot);
}

}  // namespace

Result<UringFeatures> probe_uring(std::uint32_t features_off) {
  UringFeatures found;
  {
    Probe ring;
    found.defer_taskrun = (features_off & kUringDeferTaskrun) == 0 && ring.open(true) == 0;
  }
  {
    Probe ring;
    if (const int error = ring.open(found.defer_taskrun); error != 0) {
      return uring_setup_error("cannot set up a ring", error);
    }
    if (const int error = ring.add_buffers(); error != 0) {
      return uring_setup_error("cannot register a ring of buffers", error);
    }
  }
  found.multishot_receive =
      (features_off & kUringMultishotReceive) == 0 && try_receive(found.defer_taskrun, true) == 0;
  if (!found.multishot_receive) {
    if (const int error = try_receive(found.defer_taskrun, false); error != 0) {
      return uring_setup_error("cannot receive into a ring of buffers", error);
    }
  }
  // As old as the ring of buffers, which is there.
  found.multishot_accept = (features_off & kUringMultishotAccept) == 0;
  if ((features_off & kUringQuietSend) == 0) {
    Probe ring;
    found.quiet_send =
        ring.open(found.defer_taskrun) == 0 && ring.make_pair() == 0 && ring.sends_quietly();
  }
  return found;
}

}  // namespace kvferry::net
