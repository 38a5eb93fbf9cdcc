#include "net/mailbox.h"

#include <cstdint>
#include <unistd.h>
#include <utility>

namespace kvferry::net {

Mailbox::~Mailbox() {
  ::close(wake_fd_);
}

void Mailbox::post(Message message) {
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) {
      return;
    }
    messages_.push_back(std::move(message));
    if (messages_.size() > 1) {
      return;  // Whoever posted the first one has woken the loop.
    }
  }
  wake();
}

void Mailbox::wake() const noexcept {
  const std::uint64_t one = 1;
  // Fails only when the counter is at its maximum, and then the loop will wake anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_fd_, &one, sizeof(one));
}

std::vector<Mailbox::Message> Mailbox::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(messages_, {});
}

void Mailbox::close() {
  std::vector<Message> dropped;  // Destroyed without the lock: what they own may post.
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  dropped.swap(messages_);
}

}  // namespace kvferry::net
