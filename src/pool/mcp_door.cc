#include "pool/mcp_door.h"

#include <utility>

namespace kvferry::pool {

void McpDoor::post(Message message) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) {
    return;
  }
  if (loop_ == nullptr) {
    early_.push_back(std::move(message));
    return;
  }
  loop_->post([backends = backends_, message = std::move(message)] { message(*backends); });
}

void McpDoor::open(net::Loop& loop, McpBackends& backends) {
  const std::lock_guard lock(mutex_);
  loop_ = &loop;
  backends_ = &backends;
  for (Message& message : std::exchange(early_, {})) {
    loop_->post([target = backends_, message = std::move(message)] { message(*target); });
  }
}

void McpDoor::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  loop_ = nullptr;
  early_.clear();
}

}  // namespace kvferry::pool
