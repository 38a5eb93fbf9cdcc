// Listeners and watches of the io_uring engine.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "net/socket.h"
#include "net/uring_engine.h"

namespace kvferry::net {
namespace {

using base::Result;

constexpr base::Millis kAcceptRetryDelay{100};

/// One listening socket. The kernel may hand over any number of connections at once, so they wait
/// in `pending_` and are taken in batches.
class UringAcceptor final : public UringSource {
 public:
  UringAcceptor(UringEngine& engine, ListenSocket socket, AcceptHandler& handler, unsigned batch)
      : engine_(engine),
        socket_(std::make_unique<ListenSocket>(std::move(socket))),
        handler_(handler),
        batch_(batch),
        retry_(Timer::Callback::to<&UringAcceptor::arm>(this)),
        take_(Task::Callback::to<&UringAcceptor::take_pending>(this)) {}

  const Address& address() const noexcept { return socket_->address(); }

  void arm() noexcept {
    if (is_in_flight || is_stopped_) {
      return;
    }
    io_uring_sqe* entry = engine_.ring().next();
    if (engine_.ring().features().multishot_accept) {
      io_uring_prep_multishot_accept(entry, socket_->fd(), nullptr, nullptr, SOCK_CLOEXEC);
    } else {
      io_uring_prep_accept(entry, socket_->fd(), nullptr, nullptr, SOCK_CLOEXEC);
    }
    engine_.start(*this, entry);
  }
  void stop() noexcept {
    is_stopped_ = true;
    retry_.cancel();
    take_.cancel();
    engine_.cancel(*this);
  }
  void resume() noexcept {
    is_stopped_ = false;
    arm();
    if (!pending_.empty()) {
      engine_.defer(take_);
    }
  }
  void close() noexcept {
    stop();
    for (const int fd : pending_) {
      ::close(fd);
    }
    pending_.clear();
    // The descriptor is named by what is queued and held by what is in flight; nobody may connect
    // to it any more when this returns.
    engine_.ring().submit_and_settle();
    socket_.reset();
  }

  void on_completion(int result, bool) override {
    if (result >= 0) {
      if (!socket_) {
        ::close(result);
        return;
      }
      pending_.push_back(result);
      if (!is_stopped_) {
        engine_.defer(take_);
      }
    }
    if (result >= 0 || result == -ECANCELED || is_accept_of_lost_peer(-result)) {
      arm();
    } else if (!is_stopped_) {
      engine_.timers().arm(retry_, engine_.now() + kAcceptRetryDelay);
    }
  }

 private:
  void take_pending() {
    std::vector<int> taken;
    const std::size_t count = std::min<std::size_t>(batch_, pending_.size());
    taken.assign(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(count));
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(count));
    for (const int fd : taken) {
      // A handler may have closed or paused the listener; what is in hand is served anyway, unless
      // there is nobody left to serve it.
      if (socket_) {
        engine_.accepted(fd, handler_);
      } else {
        ::close(fd);
      }
    }
    if (!pending_.empty() && !is_stopped_) {
      engine_.defer(take_);
    }
  }

  UringEngine& engine_;
  std::unique_ptr<ListenSocket> socket_;  // Empty once closed.
  AcceptHandler& handler_;
  unsigned batch_;
  Timer retry_;
  Task take_;
  std::vector<int> pending_;
  bool is_stopped_ = false;
};

class UringListener final : public Listener {
 public:
  UringListener(UringEngine& engine, std::unique_ptr<UringAcceptor> acceptor)
      : engine_(engine), acceptor_(std::move(acceptor)) {}
  ~UringListener() override {
    acceptor_->close();
    engine_.bury(std::move(acceptor_));
  }
  const Address& address() const noexcept override { return acceptor_->address(); }
  void pause() noexcept override { acceptor_->stop(); }
  void resume() noexcept override { acceptor_->resume(); }

 private:
  UringEngine& engine_;
  std::unique_ptr<UringAcceptor> acceptor_;
};

/// Polls once, calls back, polls again: level-triggered.
class UringWatchSource final : public UringSource {
 public:
  UringWatchSource(UringEngine& engine, int fd, unsigned events,
                   base::Delegate<void(unsigned)> callback)
      : engine_(engine), fd_(fd), events_(events), callback_(callback) {}

  void arm() noexcept {
    io_uring_sqe* entry = engine_.ring().next();
    io_uring_prep_poll_add(entry, fd_, events_);
    engine_.start(*this, entry);
  }
  void close() noexcept {
    is_closed_ = true;
    engine_.cancel(*this);
    // The owner closes the descriptor next, and its number must not mean another one by then.
    engine_.ring().submit_and_settle();
  }
  void on_completion(int result, bool) override {
    if (result < 0) {
      return;  // Cancelled, or the descriptor is none that can be polled.
    }
    if (!is_closed_) {
      callback_(static_cast<unsigned>(result));
    }
    if (!is_closed_) {
      arm();
    }
  }

 private:
  UringEngine& engine_;
  int fd_;
  unsigned events_;
  base::Delegate<void(unsigned)> callback_;
  bool is_closed_ = false;
};

class UringWatch final : public FdWatch {
 public:
  UringWatch(UringEngine& engine, std::unique_ptr<UringWatchSource> source)
      : engine_(engine), source_(std::move(source)) {}
  ~UringWatch() override {
    source_->close();
    engine_.bury(std::move(source_));
  }

 private:
  UringEngine& engine_;
  std::unique_ptr<UringWatchSource> source_;
};

}  // namespace

Result<std::unique_ptr<Listener>> UringEngine::listen(const Address& address,
                                                      const ListenOptions& options,
                                                      AcceptHandler& handler, int socket) {
  auto opened = ListenSocket::open(address, options, socket, false);
  if (!opened) {
    return std::move(opened).error();
  }
  auto acceptor = std::make_unique<UringAcceptor>(*this, std::move(opened).value(), handler,
                                                  options.accepts_per_turn);
  acceptor->arm();
  return std::unique_ptr<Listener>(std::make_unique<UringListener>(*this, std::move(acceptor)));
}

Result<std::unique_ptr<FdWatch>> UringEngine::watch_fd(int fd, unsigned events,
                                                       base::Delegate<void(unsigned)> callback) {
  auto source = std::make_unique<UringWatchSource>(*this, fd, events, callback);
  source->arm();
  return std::unique_ptr<FdWatch>(std::make_unique<UringWatch>(*this, std::move(source)));
}

}  // namespace kvferry::net
