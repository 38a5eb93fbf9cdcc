#include "front/watcher.h"

namespace kvferry::front {

std::unique_ptr<Watcher> Watcher::start(watch::Hub& hub, watch::StreamMask mask, net::Loop& loop,
                                        base::Delegate<void()> on_lines) {
  std::unique_ptr<Watcher> watcher(new Watcher(hub));
  watcher->place_ = std::make_shared<Place>(Place{.on_lines = on_lines});
  watcher->feed_ = hub.subscribe(mask, [&loop, place = watcher->place_] {
    loop.post([place] {
      if (!place->is_left) {
        place->on_lines();
      }
    });
  });
  return watcher->feed_ == nullptr ? nullptr : std::move(watcher);
}

Watcher::~Watcher() {
  if (feed_ != nullptr) {
    hub_.unsubscribe(feed_);
  }
  place_->is_left = true;
}

}  // namespace kvferry::front
