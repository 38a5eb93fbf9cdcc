#include "watch/hub.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace kvferry::watch {
namespace {

std::string compose_line(base::WallTime now, std::uint64_t gid, std::string_view fields) {
  const auto since = std::chrono::duration_cast<base::Micros>(now.time_since_epoch()).count();
  constexpr std::int64_t kMicros = 1000000;
  std::string line = "ts=" + std::to_string(since / kMicros) + "." +
                     std::to_string(since % kMicros) + " gid=" + std::to_string(gid) + " ";
  line.append(fields.substr(0, kFieldsBytesMax)).append("\n");
  return line;
}

}  // namespace

std::string Feed::take() {
  const std::lock_guard lock(mutex_);
  std::string taken = std::exchange(lines_, {});
  if (const std::uint64_t skipped = std::exchange(skipped_, 0); skipped != 0) {
    taken.insert(0, "skipped=" + std::to_string(skipped) + "\n");
  }
  return taken;
}

bool Feed::append(std::string_view line) {
  bool was_empty = false;
  {
    const std::lock_guard lock(mutex_);
    if (lines_.size() + line.size() > kFeedBytesMax) {
      ++skipped_;
      return false;
    }
    was_empty = lines_.empty();
    lines_ += line;
  }
  if (was_empty) {
    wake_();
  }
  return true;
}

void Hub::write(Stream stream, std::string_view fields) {
  if (!wants(stream)) {
    return;
  }
  const std::lock_guard lock(mutex_);
  const std::string line = compose_line(clock_(), ++last_gid_, fields);
  ++stats_.written;
  for (const std::shared_ptr<Feed>& feed : feeds_) {
    if ((feed->mask_ & mask_of(stream)) != 0) {
      ++(feed->append(line) ? stats_.sent : stats_.skipped);
    }
  }
}

std::shared_ptr<Feed> Hub::subscribe(StreamMask mask, Feed::Wake wake) {
  const std::lock_guard lock(mutex_);
  if (feeds_.size() >= kWatchersMax) {
    return nullptr;
  }
  auto feed = std::make_shared<Feed>(mask, std::move(wake));
  feeds_.push_back(feed);
  renew_mask();
  return feed;
}

void Hub::unsubscribe(const std::shared_ptr<Feed>& feed) {
  const std::lock_guard lock(mutex_);
  std::erase(feeds_, feed);
  renew_mask();
}

void Hub::renew_mask() {
  StreamMask mask = 0;
  for (const std::shared_ptr<Feed>& feed : feeds_) {
    mask |= feed->mask_;
  }
  mask_.store(mask, std::memory_order_relaxed);
}

HubStats Hub::stats() {
  const std::lock_guard lock(mutex_);
  HubStats now = stats_;
  now.watchers = feeds_.size();
  return now;
}

}  // namespace kvferry::watch
