// Loop: the event loop of one thread. Completion-based, with two engines behind one interface.
//
// One turn: take completions -> run handlers, expired timers, mailbox messages and deferred tasks
// -> flush each dirty stream once -> submit -> wait. The clock is read once a turn.
//
// Lifetime: listeners, watches and streams die before their loop.
// Threads:  run() and all else on one thread; open(), and listen() or connect() before run(), may
//           be on another. post() and stop() from any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/byte_chain.h"
#include "base/clock.h"
#include "base/delegate.h"
#include "base/intrusive_list.h"
#include "base/memory_budget.h"
#include "base/result.h"
#include "net/address.h"
#include "net/mailbox.h"
#include "net/stream.h"
#include "net/timer.h"

namespace kvferry::net {

enum class Io : std::uint8_t { Auto, Uring, Epoll };

/// Parts of io_uring that newer kernels have, to be left out: a test of an older kernel's path.
enum UringFeature : std::uint32_t {
  kUringDeferTaskrun = 1,
  kUringMultishotAccept = 2,
  kUringMultishotReceive = 4,
  kUringQuietSend = 8,
  kUringAllOptional = 15,
};

/// Most bytes that one receive delivers.
inline constexpr std::size_t kReceiveBytes = std::size_t{64} * 1024;
/// Size of one buffer of the receive ring of io_uring.
inline constexpr std::size_t kRingBufferBytes = std::size_t{16} * 1024;
static_assert(kRingBufferBytes <= kReceiveBytes);

struct LoopOptions {
  Io io = Io::Auto;
  /// Receives of io_uring take their space from a ring of this many buffers of kRingBufferBytes
  /// each; rounded up to a power of two.
  std::size_t receive_buffers = 128;
  /// UringFeature bits to do without.
  std::uint32_t uring_features_off = 0;
};

struct TaskTag;
/// Work for the end of this turn or, when queued by another task, for the next turn. A member of
/// its user.
class Task : private base::ListHook<TaskTag> {
 public:
  using Callback = base::Delegate<void()>;
  explicit Task(Callback callback) noexcept : callback_(callback) {}
  ~Task() { cancel(); }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
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

/// Whether nobody else listens on the TCP `address`, which SO_REUSEPORT would not tell. Does not
/// listen itself, so no client can get in meanwhile.
base::Result<void> check_unused(const Address& address);

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
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  virtual ~Loop();

  /// Runs turns until stop(). May be called again after it returned.
  void run();
  /// One turn; does not wait when `wait` is false. For tests, and loops inside other loops.
  void run_turn(bool wait);
  /// From any thread.
  void stop() noexcept;
  /// From any thread, while the loop exists: runs `message` on the loop's thread.
  void post(std::function<void()> message);
  /// For threads that may have something to post when the loop is no more.
  std::shared_ptr<Mailbox> mailbox() const noexcept { return mailbox_; }

  /// Asked before each wait: how much time is to lie between the beginnings of two turns. Under
  /// load, events that come one by one are then taken together, which saves the system calls and
  /// wake-ups that are most of their cost. 0: none.
  using Pace = base::Delegate<base::Micros()>;
  void set_pace(Pace pace) noexcept { pace_ = pace; }

  /// Time of this turn.
  base::SteadyTime now() const noexcept { return now_; }
  TimerWheel& timers() noexcept { return timers_; }
  base::BlockPool& blocks() noexcept { return blocks_; }
  /// Queues `task` (once) for the end of this turn.
  void defer(Task& task) noexcept {
    if (!task.is_queued()) {
      tasks_[tasks_open_].push_back(task);
    }
  }

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
  std::string_view fallback_reason() const noexcept { return fallback_reason_; }
  /// The common name in the certificate of the client on descriptor `fd`; empty when it has shown
  /// none. Valid while that client is connected.
  std::string_view tls_peer_name(int fd) const noexcept;
  /// Streams whose hulls exist, those included that only wait for the kernel.
  std::size_t stream_count() const noexcept { return hulls_.live_pieces(); }

 protected:
  /// `wake_fd` is a blocking eventfd; the loop owns it.
  Loop(base::MemoryBudget& budget, int wake_fd);

  /// Waits up to `sleep_max` (negative: without limit) for completions, calls start_turn(), then
  /// handlers.
  virtual void take_events(base::Millis sleep_max) = 0;
  /// Brings the kernel's view of `stream` up to date.
  virtual void flush_stream(Stream& stream) = 0;
  /// The phase has become Closed: gives up what the kernel still does for `stream`.
  virtual void abandon(Stream& stream) noexcept = 0;
  /// Starts what has been queued, then lets `length` pass without taking events.
  virtual void linger(base::Micros length);
  /// run() is about to return: nothing may be left unsubmitted.
  virtual void submit() noexcept {}

  void start_turn() noexcept { now_ = std::chrono::steady_clock::now(); }
  /// Something came from outside, so memory may have been used that can be given back later.
  void note_activity() noexcept;
  void note_wake() noexcept { is_woken_ = true; }
  int wake_fd() const noexcept { return mailbox_->wake_fd(); }

  Stream& make_stream(int fd, Stream::Phase phase);
  /// Frees a hull that nobody refers to any more.
  void free_stream(Stream& stream) noexcept;
  /// Closes `stream` and tells its handler.
  void fail_stream(Stream& stream, int error) noexcept;
  /// The last byte of a Draining stream is out: shuts down, tells the handler, lingers.
  void finish_draining(Stream& stream, int error = 0) noexcept;
  /// Around a send: notes that output is beyond the notice, and later reports that it has fallen.
  void note_output(Stream& stream) noexcept {
    if (stream.drain_notice_bytes_ != 0 && stream.output_bytes() > stream.drain_notice_bytes_) {
      stream.owes_drained_ = true;
    }
  }
  void report_drained(Stream& stream) noexcept {
    if (stream.owes_drained_ && stream.output_bytes() <= stream.drain_notice_bytes_ / 2) {
      stream.owes_drained_ = false;
      if (stream.is_live()) {
        stream.handler_->on_drained();
      }
    }
  }
  /// Closes all hulls, for the end of an engine.
  void abandon_all() noexcept;
  void flush_all();
  /// Frees hulls that the kernel will never be done with.
  void free_all_hulls() noexcept;

 private:
  friend class Stream;
  friend struct StreamDeleter;
  friend class TlsFilter;
  using StreamList = base::List<Stream, StreamTag>;
  using TaskList = base::List<Task, TaskTag>;

  void abandon_each(StreamList& list) noexcept;
  void release_stream(Stream& stream) noexcept;
  void drain_without_owner(Stream& stream) noexcept;
  void linger_on(Stream& stream) noexcept;
  void run_tasks();
  void run_messages();
  bool has_work() const noexcept;
  void on_trim_due();
  void on_linger_due();

  void keep_pace();
  /// For handshakes of clients, which have a share of each turn (kTlsHandshakesPerTurn).
  bool may_shake() const noexcept;
  void note_shaken() noexcept;
  void note_tls_peer(int fd, std::string name) { tls_peers_[fd] = std::move(name); }
  void forget_tls_peer(int fd) noexcept { tls_peers_.erase(fd); }

  base::SteadyTime now_;
  Pace pace_;
  TimerWheel timers_;
  base::BlockPool blocks_;
  base::SlabPool hulls_;
  FlushQueue flush_queue_;
  std::array<TaskList, 2> tasks_;  // The open one takes new tasks while the other runs.
  std::size_t tasks_open_ = 0;
  StreamList streams_;
  std::array<StreamList, 2> lingering_;  // The younger and the older half.
  std::size_t linger_young_ = 0;
  Timer trim_timer_;
  Timer linger_timer_;
  base::SteadyTime shaken_at_{};  // The turn that shaken_ counts for.
  unsigned shaken_ = 0;
  std::unordered_map<int, std::string> tls_peers_;  // Clients with certificates, by descriptor.
  unsigned trims_left_ = 0;
  bool is_woken_ = false;
  std::shared_ptr<Mailbox> mailbox_;
  std::atomic<bool> is_stopping_{false};
  std::string fallback_reason_;
};

}  // namespace kvferry::net
