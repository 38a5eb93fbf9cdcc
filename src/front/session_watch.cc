// A session that watches: from its `watch` on it takes log lines out and no requests in.
#include <limits>
#include <utility>

#include "front/session.h"

namespace kvferry::front {

using memcache::ReplyCode;

void Session::start_watching(std::string_view streams) {
  watch::Hub* const hub = service_.context_.watch;
  if (hub == nullptr || !service_.options_.allows_watch) {
    answer_with("CLIENT_ERROR watch commands not allowed\r\n", ReplyCode::ClientError);
    return;
  }
  if (turn_requests_ > 1 || !queue_.empty()) {
    answer_with("ERROR cannot pipeline other commands before watch\r\n", ReplyCode::Error);
    return;
  }
  const auto mask = watch::find_streams(streams);
  if (!mask) {
    answer_with("ERROR\r\n", ReplyCode::Error);
    return;
  }
  auto watcher = Watcher::start(*hub, *mask, service_.context_.loop,
                                base::Delegate<void()>::to<&Session::pass_watched>(this));
  if (watcher == nullptr) {
    answer_with("WATCHER_TOO_MANY log watcher limit reached\r\n", ReplyCode::Error);
    return;
  }
  watcher_ = std::move(watcher);
  skip_left_ = std::numeric_limits<std::uint64_t>::max();  // Whatever else this client sends.
  answer_with("OK\r\n", ReplyCode::Ok);
}

/// A client that does not read leaves its lines in the feed, which is bounded.
void Session::pass_watched() {
  if (watcher_ != nullptr && phase_ == Phase::Open &&
      stream_->output_bytes() <= kOutputWindowBytes) {
    if (const std::string lines = watcher_->take(); !lines.empty()) {
      write(lines);
    }
  }
}

}  // namespace kvferry::front
