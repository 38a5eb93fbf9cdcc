// Stream: one connected byte stream (TCP or Unix socket) on a loop, the same over io_uring and
// epoll.
//
// Life:      made by Loop::connect() or a Listener; owned through StreamPtr. Resetting the pointer
// closes at once and drops
//            unsent output; the engine keeps the hull until the kernel has let go of it.
// Output:    write() only queues. Each dirty stream is flushed once per loop turn, with one send
// outstanding at most. Input:     bytes are handed over as they come and are valid during on_data()
// only. Whoever needs more keeps a copy. Threads:   that of the loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/byte_chain.h"

namespace kvferry::net {

class Loop;
class Stream;

/// Receiver of the events of a stream. Any callback may write, pause, or destroy the stream (reset
/// its StreamPtr).
class StreamHandler {
 public:
  /// connect() finished; only for streams made by Loop::connect().
  virtual void on_connected() {}
  /// `bytes` is not empty and valid during the call only. After pause_reading() no further call
  /// comes before resume_reading(), one exception aside: bytes that the kernel had already
  /// delivered may still be handed over once.
  virtual void on_data(std::string_view bytes) = 0;
  /// The peer has sent its last byte; writing may still work.
  virtual void on_end() = 0;
  /// The stream is dead (`error` is an errno value; a refused or timed out connect comes here too).
  /// Nothing follows. The handler resets its StreamPtr, now or later.
  virtual void on_closed(int error) = 0;
  /// Output had grown beyond `drain_notice_bytes` and has now fallen to half of it or less.
  virtual void on_drained() {}

 protected:
  ~StreamHandler() = default;
};

struct StreamDeleter {
  void operator()(Stream* stream) const noexcept;
};
using StreamPtr = std::unique_ptr<Stream, StreamDeleter>;

class Stream {
 public:
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void set_handler(StreamHandler& handler) noexcept { handler_ = &handler; }
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
  std::size_t output_bytes() const noexcept { return output_.size() + sending_bytes_; }
  base::BlockPool& blocks() noexcept { return *blocks_; }
  void mark_dirty() noexcept {
    if (!is_dirty_) {
      is_dirty_ = true;
      enqueue_dirty();
    }
  }

  void pause_reading() noexcept;
  void resume_reading() noexcept;
  bool is_reading_paused() const noexcept { return is_paused_; }
  /// Sends what is queued, then shuts the sending side down and closes; on_closed(0) comes when
  /// that is done. Input is dropped.
  void close_after_output() noexcept;

  Loop& loop() noexcept { return *loop_; }
  int fd() const noexcept { return fd_; }

 private:
  friend class Loop;
  friend class EpollEngine;
  friend class UringEngine;
  friend struct StreamDeleter;
  Stream() = default;
  ~Stream() = default;

  void enqueue_dirty() noexcept;

  StreamHandler* handler_ = nullptr;  // Null once the owner has let go.
  Loop* loop_ = nullptr;
  base::BlockPool* blocks_ = nullptr;
  base::ByteChain output_;  // Not yet given to the kernel.
  Stream* next_dirty_ = nullptr;
  std::size_t sending_bytes_ = 0;  // Given to the kernel, not yet confirmed (io_uring).
  std::uint32_t drain_notice_bytes_ = 0;
  int fd_ = -1;
  bool is_dirty_ = false;
  bool is_paused_ = false;
  // Engine state: extend as the engines need, and keep an idle stream small (10,000 clients at 0.6
  // KiB each, all included).
};

}  // namespace kvferry::net
