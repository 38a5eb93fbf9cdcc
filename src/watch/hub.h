// Hub: carries log lines from whoever reports to the clients that watch.
//
//   producer --write()--> Feed of each watcher of the stream --take()--> its session
//                            \--was empty: wake()--> the loop of that session
//
// Source:  memcache-protocol.md section 12. A line is "ts=S.U gid=N <fields>\n"; microseconds are
//          not padded, gid counts all lines of the process, and the order of lines is that of gid.
// Threads: any. A lock is taken only when somebody watches the stream.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "watch/streams.h"

namespace kvferry::watch {

inline constexpr std::size_t kWatchersMax = 20;
/// Bytes that one watcher may leave untaken; lines that do not fit are skipped and counted.
inline constexpr std::size_t kFeedBytesMax = std::size_t{256} * 1024;
/// Longer fields are cut.
inline constexpr std::size_t kFieldsBytesMax = 4096;

/// The lines of one watcher.
class Feed {
 public:
  using Wake = std::function<void()>;
  Feed(StreamMask mask, Wake wake) : mask_(mask), wake_(std::move(wake)) {}

  /// What has come since the last time; begins with "skipped=<n>\n" when lines were lost.
  std::string take();

 private:
  friend class Hub;
  /// False when the line was skipped.
  bool append(std::string_view line);

  const StreamMask mask_;
  const Wake wake_;
  std::mutex mutex_;  // Taken within the hub's.
  std::string lines_;
  std::uint64_t skipped_ = 0;
};

struct HubStats {
  std::uint64_t written = 0;  // Lines that somebody watched.
  std::uint64_t sent = 0;     // Copies of lines given to watchers.
  std::uint64_t skipped = 0;  // Copies that did not fit.
  std::uint64_t watchers = 0;
};

class Hub {
 public:
  /// `clock` gives the time of lines; called from any thread.
  using Clock = base::WallTime (*)();
  explicit Hub(Clock clock) noexcept : clock_(clock) {}

  /// Whether a line of `stream` would be read by anybody: ask before composing it.
  bool wants(Stream stream) const noexcept {
    return (mask_.load(std::memory_order_relaxed) & mask_of(stream)) != 0;
  }
  /// `fields` begin with "type=" and have no line end.
  void write(Stream stream, std::string_view fields);

  /// A new watcher, or null when there are kWatchersMax. `wake` is called, on any thread and not
  /// under a lock of its user's, when the feed has lines after it had none.
  std::shared_ptr<Feed> subscribe(StreamMask mask, Feed::Wake wake);
  /// `feed` gets no more lines, and its wake() is not called any more.
  void unsubscribe(const std::shared_ptr<Feed>& feed);

  HubStats stats();

 private:
  void renew_mask();

  const Clock clock_;
  std::atomic<StreamMask> mask_{0};
  std::mutex mutex_;
  std::vector<std::shared_ptr<Feed>> feeds_;
  std::uint64_t last_gid_ = 0;
  HubStats stats_;
};

}  // namespace kvferry::watch
