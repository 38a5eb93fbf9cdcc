// Watcher: brings the lines of log streams to the loop of the client that watches them.
//
// Threads: one worker; the hub calls from any.
#pragma once

#include <memory>
#include <string>

#include "base/delegate.h"
#include "net/loop.h"
#include "watch/hub.h"

namespace kvferry::front {

class Watcher {
 public:
  /// Null when the hub takes no more watchers. `on_lines` is called on the loop when there are
  /// lines after there were none.
  static std::unique_ptr<Watcher> start(watch::Hub& hub, watch::StreamMask mask, net::Loop& loop,
                                        base::Delegate<void()> on_lines);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  std::string take() { return feed_->take(); }

 private:
  /// What messages to the loop hold: they may arrive when the watcher is gone. Loop thread.
  struct Place {
    base::Delegate<void()> on_lines;
    bool is_left = false;
  };

  explicit Watcher(watch::Hub& hub) noexcept : hub_(hub) {}

  watch::Hub& hub_;
  std::shared_ptr<Place> place_;
  std::shared_ptr<watch::Feed> feed_;
};

}  // namespace kvferry::front
