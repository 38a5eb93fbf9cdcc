// Mailbox: how another thread gets something done on a loop. Control publishes snapshots through
// it; nothing else is shared.
//
// Threads: post() from any thread; messages run on the loop's thread, in the order they were posted
// by one thread. A lock guards the queue: messages are rare (reloads, resolved names, ejections),
// never part of a request.
//
// Ownership: shared by the loop and by those who post, because a loop may end while others still
// have something to tell it. What comes after close() is dropped.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

namespace kvferry::net {

class Mailbox {
 public:
  using Message = std::function<void()>;

  /// Takes over `wake_fd`, an eventfd that the loop watches; it is written once for each batch that
  /// finds the mailbox empty.
  explicit Mailbox(int wake_fd) noexcept : wake_fd_(wake_fd) {}
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// Dropped without a word when the loop has ended.
  void post(Message message);
  /// Makes the loop take a turn.
  void wake() const noexcept;
  /// Loop thread: takes all that is there.
  std::vector<Message> take();
  /// The loop ends: drops what is there, and whatever comes later.
  void close();
  int wake_fd() const noexcept { return wake_fd_; }

 private:
  std::mutex mutex_;
  std::vector<Message> messages_;
  bool is_closed_ = false;
  int wake_fd_;
};

}  // namespace kvferry::net
