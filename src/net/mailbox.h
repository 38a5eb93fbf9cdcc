// Mailbox: how another thread gets something done on a loop. Control publishes snapshots through
// it; nothing else is shared.
//
// Threads: post() from any thread; messages run on the loop's thread, in the order they were posted
// by one thread. A lock guards the queue: messages are rare (reloads, resolved names, ejections),
// never part of a request.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

namespace kvferry::net {

class Mailbox {
 public:
  using Message = std::function<void()>;

  /// `wake_fd` is an eventfd of the loop; it is written once for each batch that finds the mailbox
  /// empty.
  explicit Mailbox(int wake_fd) noexcept : wake_fd_(wake_fd) {}

  void post(Message message);
  /// Makes the loop take a turn.
  void wake() const noexcept;
  /// Loop thread: takes all that is there.
  std::vector<Message> take();

 private:
  std::mutex mutex_;
  std::vector<Message> messages_;
  int wake_fd_;
};

}  // namespace kvferry::net
