// Stream: one connected byte stream (TCP or Unix socket) on a loop, the same over io_uring and
// epoll.
//
// Life:    made by Loop::connect() or a Listener; owned through StreamPtr. Resetting the pointer
//          closes at once and drops unsent output; the engine keeps the hull until the kernel has
//          let go of it.
// Output:  write() only queues. Each dirty stream is flushed once per loop turn, with one send
//          outstanding at most.
// Input:   bytes are handed over as they come and are valid during on_data() only. Whoever needs
//          more keeps a copy.
// Threads: that of the loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/byte_chain.h"
#include "base/intrusive_list.h"

namespace kvferry::net {

class Loop;
class Stream;
class TlsContext;
class TlsFilter;
using TlsContextPtr = std::shared_ptr<const TlsContext>;

/// Receiver of the events of a stream. Any callback may write, pause, or destroy the stream (reset
/// its StreamPtr).
class StreamHandler {
 public:
  /// connect() finished; only for streams made by Loop::connect().
  virtual void on_connected() {}
  /// `bytes` is not empty and valid during the call only. None comes between pause_reading() and
  /// resume_reading().
  virtual void on_data(std::string_view bytes) = 0;
  /// The peer has sent its last byte; writing may still work.
  virtual void on_end() = 0;
  /// The stream is dead (`error` is an errno value; a refused or timed out connect comes here too).
  /// Nothing follows. The handler resets its StreamPtr, now or later.
  virtual void on_closed(int error) = 0;
  /// Output had grown beyond the drain notice and has now fallen to half of it or less.
  virtual void on_drained() {}

 protected:
  ~StreamHandler() = default;
};

struct StreamDeleter {
  void operator()(Stream* stream) const noexcept;
};
using StreamPtr = std::unique_ptr<Stream, StreamDeleter>;

struct TlsFilterDeleter {
  void operator()(TlsFilter* filter) const noexcept;
};

struct StreamTag;

/// The streams that this turn's flush has to look at.
struct FlushQueue {
  Stream* head = nullptr;
};

class Stream : private base::ListHook<StreamTag> {
 public:
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void set_handler(StreamHandler& handler) noexcept;
  /// Speaks TLS on this connection, of which nothing has been sent or received: right after it was
  /// accepted (a context of the Server role), or right after Loop::connect() (Client), whose
  /// on_connected() then means that the handshake is done. To the handler nothing else changes; a
  /// failed handshake is an on_closed() with EPROTO, ETIMEDOUT or ECONNRESET, and what the
  /// context's monitor hears says why. `host` is the server's name or address. False when there is
  /// no name to verify or no memory: drop the stream.
  bool start_tls(TlsContextPtr context, std::string_view host = {});
  bool is_tls() const noexcept { return tls_ != nullptr; }
  /// The common name in the peer's certificate; empty without one. Not for the request path.
  std::string tls_peer_name() const;
  /// Output size from which on_drained() will be reported; 0 (the default): never.
  void set_drain_notice(std::size_t bytes) noexcept {
    drain_notice_bytes_ = static_cast<std::uint32_t>(bytes);
  }

  /// Queues a copy of `bytes` for this turn's flush.
  void write(std::string_view bytes) noexcept {
    output_.append_output(*blocks_, bytes);
    mark_dirty();
  }
  /// The unsent output, for composing in place; follow with mark_dirty(). Never consume from it.
  base::ByteChain& output() noexcept { return output_; }
  /// What was written and is not yet the kernel's.
  std::size_t output_bytes() const noexcept { return output_.size() + sending_.size(); }
  base::BlockPool& blocks() noexcept { return *blocks_; }
  void mark_dirty() noexcept {
    if (!is_dirty_) {
      is_dirty_ = true;
      next_dirty_ = flush_queue_->head;
      flush_queue_->head = this;
    }
  }

  void pause_reading() noexcept {
    is_paused_ = true;
    mark_dirty();
  }
  void resume_reading() noexcept {
    is_paused_ = false;
    mark_dirty();
  }
  bool is_reading_paused() const noexcept { return is_paused_; }
  /// Sends what is queued, then shuts the sending side down and closes; on_closed(0) comes when
  /// that is done, or with an error when the peer goes first. Input is dropped. There is no time
  /// limit: an owner whose peer may stop reading sets one, and drops the stream.
  void close_after_output() noexcept;
  /// As close_after_output(), and the owner goes at once: nothing is reported any more. What the
  /// peer has not taken within a second or so is dropped.
  static void leave(StreamPtr stream) noexcept;

  Loop& loop() noexcept { return *loop_; }
  /// -1 once closed.
  int fd() const noexcept { return fd_; }

 private:
  friend class Loop;
  friend class EpollEngine;
  friend class UringEngine;
  friend class TlsFilter;
  friend struct StreamDeleter;
  template <typename T, typename Tag>
  friend class base::List;

  /// The drawing is in README.md.
  enum class Phase : std::uint8_t { Connecting, Open, Draining, Lingering, Closed };

  Stream(Loop& loop, base::BlockPool& blocks, FlushQueue& flush_queue, int fd, Phase phase) noexcept
      : loop_(&loop), blocks_(&blocks), flush_queue_(&flush_queue), fd_(fd), phase_(phase) {}
  ~Stream() = default;

  /// Whether the handler may hear of anything.
  bool is_live() const noexcept { return phase_ < Phase::Lingering; }
  bool wants_input() const noexcept {
    return !is_ended_ && phase_ != Phase::Connecting && phase_ != Phase::Closed &&
           (phase_ != Phase::Open || !is_paused_);
  }

  StreamHandler* handler_ = nullptr;
  Loop* loop_;
  base::BlockPool* blocks_;
  FlushQueue* flush_queue_;
  Stream* next_dirty_ = nullptr;
  std::unique_ptr<TlsFilter, TlsFilterDeleter> tls_;  // Null: plain. Else it is the handler.
  base::ByteChain output_;                            // Not yet given to the kernel.
  base::ByteChain sending_;  // io_uring: what the send in flight reads from. With TLS: what is
                             // encrypted and not yet the kernel's.
  base::ByteChain stash_;    // io_uring: came in after the pause.
  std::uint32_t drain_notice_bytes_ = 0;
  int fd_;
  int error_ = 0;              // A connect that failed at once; reported by the flush.
  std::uint32_t watched_ = 0;  // epoll: the events that the kernel was asked for.
  Phase phase_;
  std::uint8_t ops_ = 0;  // io_uring: operations in flight, one bit each.
  bool has_owner_ = true;
  bool is_dirty_ = false;
  bool closes_after_output_ = false;  // Asked for while connecting, or in a handshake.
  bool is_paused_ = false;
  bool is_ended_ = false;       // The peer's end was seen.
  bool owes_end_ = false;       // io_uring: on_end() waits for the stash.
  bool owes_drained_ = false;   // Output went beyond the drain notice.
  bool is_full_ = false;        // epoll: the socket took no more; EPOLLOUT will tell.
  bool is_registered_ = false;  // epoll: in the epoll set.
  bool is_quiet_ = false;       // io_uring: the send in flight completes silently.
  bool is_cancelling_ = false;  // io_uring: the receive was asked to stop.
  bool is_abandoned_ = false;   // io_uring: Closed, and all was asked to stop.
};

static_assert(sizeof(Stream) <= 192, "10,000 idle clients have to stay small");

}  // namespace kvferry::net
