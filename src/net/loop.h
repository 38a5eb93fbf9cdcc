// Loop: the event loop of one thread. Completion-based, with two engines behind one interface.
//
// One turn: take completions -> run handlers, expired timers, mailbox messages and deferred tasks
// -> flush each dirty stream once -> submit -> wait. The clock is read once a turn. Threads: open()
// and everything else on one thread; post() and stop() from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/byte_chain.h"
#include "base/clock.h"
#include "base/delegate.h"
#include "base/intrusive_list.h"
#include "base/memory_budget.h"
#include "base/result.h"
#include "net/address.h"
#include "net/stream.h"
#include "net/timer.h"

namespace kvferry::net {

enum class Io : std::uint8_t { Auto, Uring, Epoll };

struct LoopOptions {
  Io io = Io::Auto;
  /// Receives of io_uring take their space from a ring of this many buffers of kReceiveBytes each.
  std::size_t receive_buffers = 128;
};

struct TaskTag;
/// Work for the end of this turn or, when queued by another task, for the next turn. A member of
/// its user.
class Task : private base::ListHook<TaskTag> {
 public:
  using Callback = base::Delegate<void()>;
  explicit Task(Callback callback) noexcept : callback_(callback) {}
  ~Task() { cancel(); }
  bool is_queued() const noexcept { return is_linked(); }
  void cancel() noexcept { unlink(); }

 private:
  friend class Loop;
  template <typename T, typename Tag>
  friend class base::List;
  Callback callback_;
};

/// Receiver of accepted connections.
class AcceptHandler {
 public:
  /// Takes over `stream`; must set a handler on it, or drop it, before returning. Reading starts
  /// afterwards.
  virtual void on_accepted(StreamPtr stream, const Address& peer) = 0;

 protected:
  ~AcceptHandler() = default;
};

struct ListenOptions {
  int backlog = 512;
  /// Several loops may listen on one address; the kernel spreads connections (SO_REUSEPORT).
  /// Ignored for Unix sockets.
  bool reuse_port = true;
  /// File mode of a Unix socket.
  unsigned unix_mode = 0700;
  /// Most connections taken in one turn, so that a storm of clients does not starve established
  /// ones.
  unsigned accepts_per_turn = 64;
};

/// A listening socket on a loop; closes when destroyed (a Unix socket's file is removed only by the
/// one that bound it). When descriptors run out accepting pauses and is tried again every 100 ms;
/// the listener itself survives.
class Listener {
 public:
  virtual ~Listener() = default;
  /// The bound address: the real port when 0 was asked for.
  virtual const Address& address() const noexcept = 0;
  /// Stops and starts taking connections; the kernel queues them meanwhile.
  virtual void pause() noexcept = 0;
  virtual void resume() noexcept = 0;
};

struct ConnectOptions {
  /// SO_KEEPALIVE with idle 30 s, interval 10 s, 3 probes.
  bool keepalive = false;
};

/// Makes and binds a listening socket, without a loop: what `Loop::listen` uses, and how one Unix
/// socket is shared by loops.
base::Result<int> open_listening_socket(const Address& address, const ListenOptions& options);

/// Receives readiness of a foreign descriptor (c-ares, signalfd); for the control thread, not for
/// traffic.
class FdWatch {
 public:
  virtual ~FdWatch() = default;
};

class Loop {
 public:
  /// Errors: Unsupported when `io` is Uring and the kernel or a filter refuses it (the detail says
  /// what was refused). `budget` is charged for buffers and must outlive the loop.
  static base::Result<std::unique_ptr<Loop>> open(const LoopOptions& options,
                                                  base::MemoryBudget& budget);
  virtual ~Loop();

  /// Runs turns until stop().
  void run();
  /// From any thread.
  void stop() noexcept;
  /// From any thread: runs `message` on the loop's thread.
  void post(std::function<void()> message);

  /// Time of this turn.
  base::SteadyTime now() const noexcept;
  TimerWheel& timers() noexcept;
  base::BlockPool& blocks() noexcept;
  /// Queues `task` (once) for the end of this turn.
  void defer(Task& task) noexcept;

  /// Listens on `address`. Takes over `socket` (from open_listening_socket or an inherited
  /// descriptor) when it is not -1.
  virtual base::Result<std::unique_ptr<Listener>> listen(const Address& address,
                                                         const ListenOptions& options,
                                                         AcceptHandler& handler,
                                                         int socket = -1) = 0;
  /// Starts a connection. The outcome comes as on_connected() or on_closed(), never from within
  /// this call; the result is an error only when no socket could be made. Bytes written before
  /// on_connected() are sent after it.
  virtual base::Result<StreamPtr> connect(const Address& address, const ConnectOptions& options,
                                          StreamHandler& handler) = 0;
  /// Calls `callback` with poll events (POLLIN, POLLOUT) of `fd`, level-triggered, until the watch
  /// is destroyed.
  virtual base::Result<std::unique_ptr<FdWatch>> watch_fd(
      int fd, unsigned events, base::Delegate<void(unsigned)> callback) = 0;

  /// "io_uring" or "epoll".
  virtual std::string_view engine_name() const noexcept = 0;
  /// Why Auto did not take io_uring; empty when it did or was not asked.
  virtual std::string_view fallback_reason() const noexcept = 0;
};

/// Most bytes that one receive delivers.
inline constexpr std::size_t kReceiveBytes = std::size_t{16} * 1024;

}  // namespace kvferry::net
