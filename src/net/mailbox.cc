#include "net/mailbox.h"

#include <cstdint>
#include <unistd.h>
#include <utility>

namespace kvferry::net {

void Mailbox::post(Message message) {
  {
    const std::lock_guard lock(mutex_);
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

}  // namespace kvferry::net
