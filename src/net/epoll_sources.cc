// Listeners and watches of the epoll engine.
#include <cerrno>
#include <memory>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

#include "net/epoll_engine.h"

namespace kvferry::net {
namespace {

using base::Error;
using base::Result;

constexpr base::Millis kAcceptRetryDelay{100};

static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT, "events are handed over as they are");

/// One listening socket in the epoll set.
class EpollAcceptor final : public EpollSource {
 public:
  EpollAcceptor(EpollEngine& engine, ListenSocket socket, AcceptHandler& handler, unsigned batch)
      : engine_(engine),
        socket_(std::make_unique<ListenSocket>(std::move(socket))),
        handler_(handler),
        batch_(batch),
        retry_(Timer::Callback::to<&EpollAcceptor::start_or_retry>(this)) {}

  const Address& address() const noexcept { return socket_->address(); }

  bool start() noexcept {
    // Several loops may share one Unix socket; only one of them has to wake for a connection.
    is_watched_ = engine_.add_source(*this, socket_->fd(), EPOLLIN | EPOLLEXCLUSIVE);
    return is_watched_;
  }
  void start_or_retry() noexcept {
    if (!start()) {
      engine_.timers().arm(retry_, engine_.now() + kAcceptRetryDelay);
    }
  }
  void stop() noexcept {
    retry_.cancel();
    if (is_watched_) {
      engine_.remove_source(socket_->fd());
      is_watched_ = false;
    }
  }
  void close() noexcept {
    stop();
    socket_.reset();
  }

  void on_ready(std::uint32_t) override {
    // Level-triggered: what is left over comes again in the next turn.
    for (unsigned i = 0; i < batch_ && is_watched_; ++i) {
      const int fd = accept4(socket_->fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0) {
        engine_.accepted(fd, handler_);
        continue;
      }
      if (errno == EAGAIN) {
        return;
      }
      if (!is_accept_of_lost_peer(errno)) {
        stop();
        engine_.timers().arm(retry_, engine_.now() + kAcceptRetryDelay);
        return;
      }
    }
  }

 private:
  EpollEngine& engine_;
  std::unique_ptr<ListenSocket> socket_;  // Empty once closed.
  AcceptHandler& handler_;
  unsigned batch_;
  Timer retry_;
  bool is_watched_ = false;
};

class EpollListener final : public Listener {
 public:
  EpollListener(EpollEngine& engine, std::unique_ptr<EpollAcceptor> acceptor)
      : engine_(engine), acceptor_(std::move(acceptor)) {}
  ~EpollListener() override {
    acceptor_->close();
    engine_.bury(std::move(acceptor_));
  }
  const Address& address() const noexcept override { return acceptor_->address(); }
  void pause() noexcept override {
    is_paused_ = true;
    acceptor_->stop();
  }
  void resume() noexcept override {
    if (std::exchange(is_paused_, false)) {
      acceptor_->start_or_retry();
    }
  }

 private:
  EpollEngine& engine_;
  std::unique_ptr<EpollAcceptor> acceptor_;
  bool is_paused_ = false;
};

class EpollWatchSource final : public EpollSource {
 public:
  explicit EpollWatchSource(base::Delegate<void(unsigned)> callback) : callback_(callback) {}
  void close() noexcept { is_closed_ = true; }
  void on_ready(std::uint32_t events) override {
    if (!is_closed_) {
      callback_(events);
    }
  }

 private:
  base::Delegate<void(unsigned)> callback_;
  bool is_closed_ = false;
};

class EpollWatch final : public FdWatch {
 public:
  EpollWatch(EpollEngine& engine, std::unique_ptr<EpollWatchSource> source, int fd)
      : engine_(engine), source_(std::move(source)), fd_(fd) {}
  ~EpollWatch() override {
    engine_.remove_source(fd_);
    source_->close();
    engine_.bury(std::move(source_));
  }

 private:
  EpollEngine& engine_;
  std::unique_ptr<EpollWatchSource> source_;
  int fd_;
};

}  // namespace

Result<std::unique_ptr<Listener>> EpollEngine::listen(const Address& address,
                                                      const ListenOptions& options,
                                                      AcceptHandler& handler, int socket) {
  auto opened = ListenSocket::open(address, options, socket, true);
  if (!opened) {
    return std::move(opened).error();
  }
  auto acceptor = std::make_unique<EpollAcceptor>(*this, std::move(opened).value(), handler,
                                                  options.accepts_per_turn);
  if (!acceptor->start()) {
    return Error::from_errno("cannot watch the listening socket of " + address.to_string(), errno);
  }
  return std::unique_ptr<Listener>(std::make_unique<EpollListener>(*this, std::move(acceptor)));
}

Result<std::unique_ptr<FdWatch>> EpollEngine::watch_fd(int fd, unsigned events,
                                                       base::Delegate<void(unsigned)> callback) {
  auto source = std::make_unique<EpollWatchSource>(callback);
  if (!add_source(*source, fd, events)) {
    return Error::from_errno("cannot watch descriptor " + std::to_string(fd), errno);
  }
  return std::unique_ptr<FdWatch>(std::make_unique<EpollWatch>(*this, std::move(source), fd));
}

}  // namespace kvferry::net
