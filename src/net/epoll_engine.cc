#include "net/epoll_engine.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "net/tls_filter.h"

namespace kvferry::net {
namespace {

using base::Error;
using base::Result;

/// Runs of bytes that one sendmsg() gathers.
constexpr std::size_t kGatherMax = 64;
/// epoll's user data is a pointer; this bit says that it is not a stream.
constexpr std::uintptr_t kSourceBit = 1;

std::uint64_t tag_of(Stream& stream) noexcept {
  return reinterpret_cast<std::uintptr_t>(&stream);
}
std::uint64_t tag_of(EpollSource& source) noexcept {
  return reinterpret_cast<std::uintptr_t>(&source) | kSourceBit;
}

}  // namespace

EpollEngine::EpollEngine(base::MemoryBudget& budget, int wake_fd, int epoll_fd)
    : Loop(budget, wake_fd),
      epoll_fd_(epoll_fd),
      scratch_(std::make_unique_for_overwrite<char[]>(kReceiveBytes)) {}

Result<std::unique_ptr<Loop>> EpollEngine::open(base::MemoryBudget& budget) {
  Fd epoll_fd(epoll_create1(EPOLL_CLOEXEC));
  Fd wake_fd(eventfd(0, EFD_CLOEXEC));
  if (!epoll_fd.is_set() || !wake_fd.is_set()) {
    return Error::from_errno("cannot make an event loop", errno);
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kSourceBit;  // No source: the wake-up.
  if (epoll_ctl(epoll_fd.get(), EPOLL_CTL_ADD, wake_fd.get(), &event) != 0) {
    return Error::from_errno("cannot watch the wake-up of an event loop", errno);
  }
  return std::unique_ptr<Loop>(new EpollEngine(budget, wake_fd.release(), epoll_fd.release()));
}

EpollEngine::~EpollEngine() {
  abandon_all();
  flush_all();
}

void EpollEngine::take_events(base::Millis sleep_max) {
  const int timeout = static_cast<int>(std::min<base::Millis::rep>(sleep_max.count(), INT_MAX));
  const int count =
      epoll_wait(epoll_fd_.get(), events_.data(), static_cast<int>(events_.size()), timeout);
  start_turn();
  // EINTR is a turn without events.
  if (count > 0) {
    note_activity();
  }
  for (int i = 0; i < count; ++i) {
    dispatch(events_[static_cast<std::size_t>(i)]);
  }
  buried_.clear();
}

void EpollEngine::dispatch(const epoll_event& event) {
  const auto tag = static_cast<std::uintptr_t>(event.data.u64);
  // NOLINTBEGIN(performance-no-int-to-ptr): epoll keeps 64 bits for us, and these are a pointer
  if ((tag & kSourceBit) == 0) {
    on_stream_event(*reinterpret_cast<Stream*>(tag), event.events);
    return;
  }
  if (tag != kSourceBit) {
    reinterpret_cast<EpollSource*>(tag & ~kSourceBit)->on_ready(event.events);
    return;
  }
  // NOLINTEND(performance-no-int-to-ptr)
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t size = ::read(wake_fd(), &count, sizeof(count));
  note_wake();
}

void EpollEngine::on_stream_event(Stream& stream, std::uint32_t events) {
  if (stream.phase_ == Stream::Phase::Closed) {
    return;  // Closed by a handler earlier in this turn.
  }
  if (stream.phase_ == Stream::Phase::Connecting) {
    finish_connect(stream);
    return;
  }
  if ((events & EPOLLOUT) != 0) {
    stream.is_full_ = false;
    stream.mark_dirty();
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) {
    return;
  }
  if (stream.wants_input()) {
    receive(stream);
  } else if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
    on_hang_up(stream);
  }
}

void EpollEngine::finish_connect(Stream& stream) {
  const int error = take_socket_error(stream.fd_);
  if (error != 0) {
    fail_stream(stream, error);
    return;
  }
  stream.phase_ = stream.closes_after_output_ && stream.tls_ == nullptr ? Stream::Phase::Draining
                                                                        : Stream::Phase::Open;
  stream.mark_dirty();
  if (stream.phase_ == Stream::Phase::Open) {
    stream.handler_->on_connected();
  }
}

void EpollEngine::receive(Stream& stream) {
  const ssize_t size = ::recv(stream.fd_, scratch_.get(), kReceiveBytes, 0);
  if (size > 0) [[likely]] {
    if (stream.phase_ == Stream::Phase::Open) [[likely]] {
      stream.handler_->on_data({scratch_.get(), static_cast<std::size_t>(size)});
    }
    return;
  }
  if (size < 0) {
    if (errno != EAGAIN && errno != EINTR) {
      fail_stream(stream, errno);
    }
    return;
  }
  stream.is_ended_ = true;
  // An end stays readable for ever, so the flush has to stop asking for input.
  stream.mark_dirty();
  if (stream.phase_ == Stream::Phase::Lingering) {
    fail_stream(stream, 0);
  } else if (stream.phase_ == Stream::Phase::Open) {
    stream.handler_->on_end();
  }
}

/// An error or a hang-up while no input is wanted. epoll reports it in every turn whether it was
/// asked for or not, so something has to change.
void EpollEngine::on_hang_up(Stream& stream) {
  const int error = take_socket_error(stream.fd_);
  if (error != 0 || stream.is_ended_) {
    fail_stream(stream, error != 0 ? error : EPIPE);
    return;
  }
  // Paused, and the peer of a Unix socket is gone; what it sent can still be read after the pause.
  unregister(stream);
}

void EpollEngine::flush_stream(Stream& stream) {
  if (stream.phase_ == Stream::Phase::Closed) {
    stream.output_.clear();
    stream.sending_.clear();
    if (!stream.has_owner_) {
      free_stream(stream);
    }
    return;
  }
  if (stream.phase_ == Stream::Phase::Connecting) {
    if (stream.error_ != 0) {
      fail_stream(stream, stream.error_);
    }
    return;
  }
  if (stream.tls_ != nullptr) [[unlikely]] {
    flush_tls(stream);
  } else if (!stream.output_.empty() && !stream.is_full_) {
    send_output(stream, stream.output_);
  }
  if (stream.phase_ == Stream::Phase::Draining && stream.output_bytes() == 0) {
    finish_draining(stream);
  }
  if (stream.phase_ != Stream::Phase::Closed) {
    update_registration(stream);
  }
}

void EpollEngine::flush_tls(Stream& stream) {
  stream.tls_->deliver_held();
  if (stream.phase_ != Stream::Phase::Closed && !stream.is_full_) {
    stream.tls_->encrypt();
    if (stream.phase_ != Stream::Phase::Closed && !stream.sending_.empty()) {
      send_output(stream, stream.sending_);
    }
  }
}

void EpollEngine::send_output(Stream& stream, base::ByteChain& chain) {
  note_output(stream);
  const std::string_view front = chain.front();
  ssize_t sent = 0;
  std::size_t offered = front.size();
  if (front.size() == chain.size()) [[likely]] {
    sent = ::send(stream.fd_, front.data(), front.size(), MSG_NOSIGNAL);
  } else {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): a KiB that gather() fills in
    std::array<iovec, kGatherMax> parts;
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = chain.gather(parts.data(), parts.size());
    offered = 0;
    for (std::size_t i = 0; i < message.msg_iovlen; ++i) {
      offered += parts[i].iov_len;
    }
    sent = ::sendmsg(stream.fd_, &message, MSG_NOSIGNAL);
  }
  if (sent < 0) {
    if (errno == EAGAIN || errno == ENOBUFS) {
      stream.is_full_ = true;
    } else if (errno == EINTR) {
      stream.mark_dirty();
    } else {
      fail_stream(stream, errno);
    }
    return;
  }
  const auto size = static_cast<std::size_t>(sent);
  chain.consume(size);
  if (size < offered) {
    stream.is_full_ = true;
  } else if (stream.output_bytes() != 0) {
    stream.mark_dirty();  // More than one gather list, or flush of TLS: the next round goes on.
  }
  report_drained(stream);
}

void EpollEngine::update_registration(Stream& stream) noexcept {
  const std::uint32_t wanted =
      (stream.wants_input() ? EPOLLIN : 0U) | (stream.is_full_ ? EPOLLOUT : 0U);
  if (wanted == stream.watched_) [[likely]] {
    return;
  }
  epoll_event event{};
  event.events = wanted;
  event.data.u64 = tag_of(stream);
  const int operation = stream.is_registered_ ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (epoll_ctl(epoll_fd_.get(), operation, stream.fd_, &event) != 0) {
    fail_stream(stream, errno);
    return;
  }
  stream.is_registered_ = true;
  stream.watched_ = wanted;
}

void EpollEngine::unregister(Stream& stream) noexcept {
  epoll_ctl(epoll_fd_.get(), EPOLL_CTL_DEL, stream.fd_, nullptr);
  stream.is_registered_ = false;
  // What a paused stream asks for, so that nothing is registered again before it resumes.
  stream.watched_ = 0;
  if (stream.output_bytes() != 0) {
    stream.is_full_ = false;
    stream.mark_dirty();  // The send will say what is wrong.
  }
}

void EpollEngine::abandon(Stream& stream) noexcept {
  // Closing takes it out of the epoll set as well.
  ::close(std::exchange(stream.fd_, -1));
}

Result<StreamPtr> EpollEngine::connect(const Address& address, const ConnectOptions& options,
                                       StreamHandler& handler) {
  auto attempt = start_connect(address, options);
  if (!attempt) {
    return std::move(attempt).error();
  }
  Stream& stream = make_stream(attempt->fd.release(), Stream::Phase::Connecting);
  stream.handler_ = &handler;
  StreamPtr owner(&stream);
  if (attempt->error != 0 && attempt->error != EINPROGRESS) {
    stream.error_ = attempt->error;
    stream.mark_dirty();
    return owner;
  }
  // Writable at once when it is done already, so the outcome comes with the next turn's events.
  epoll_event event{};
  event.events = stream.watched_ = EPOLLOUT;
  event.data.u64 = tag_of(stream);
  if (epoll_ctl(epoll_fd_.get(), EPOLL_CTL_ADD, stream.fd_, &event) != 0) {
    return Error::from_errno("cannot watch a connection to " + address.to_string(), errno);
  }
  stream.is_registered_ = true;
  return owner;
}

void EpollEngine::accepted(int fd, AcceptHandler& handler) {
  Stream& stream = make_stream(fd, Stream::Phase::Open);
  handler.on_accepted(StreamPtr(&stream), peer_address(fd));
  KVF_CHECK(stream.handler_ != nullptr || !stream.has_owner_);
  stream.mark_dirty();  // The flush registers it.
}

bool EpollEngine::add_source(EpollSource& source, int fd, std::uint32_t events) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag_of(source);
  return epoll_ctl(epoll_fd_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void EpollEngine::remove_source(int fd) noexcept {
  epoll_ctl(epoll_fd_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

}  // namespace kvferry::net
