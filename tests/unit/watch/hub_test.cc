#include "watch/hub.h"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace kvferry::watch {
namespace {

base::WallTime clock_at_five() {
  return base::WallTime(
      std::chrono::duration_cast<base::WallTime::duration>(base::Seconds(5) + base::Micros(70)));
}

struct Watcher {
  explicit Watcher(Hub& hub, StreamMask mask) : hub_(hub) {
    feed = hub.subscribe(mask, [this] { ++wakes; });
  }
  ~Watcher() { hub_.unsubscribe(feed); }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  Hub& hub_;
  std::shared_ptr<Feed> feed;
  int wakes = 0;
};

TEST(Hub, WantsOnlyWhatIsWatched) {
  Hub hub(clock_at_five);
  EXPECT_FALSE(hub.wants(Stream::Fetchers));
  {
    const Watcher one(hub, mask_of(Stream::Fetchers));
    const Watcher two(hub, mask_of(Stream::ProxyUser) | mask_of(Stream::Deletions));
    EXPECT_TRUE(hub.wants(Stream::Fetchers));
    EXPECT_TRUE(hub.wants(Stream::ProxyUser));
    EXPECT_TRUE(hub.wants(Stream::Deletions));
    EXPECT_FALSE(hub.wants(Stream::Mutations));
  }
  EXPECT_FALSE(hub.wants(Stream::Fetchers));
  EXPECT_FALSE(hub.wants(Stream::ProxyUser));
}

TEST(Hub, ALineSaysWhenAndWhich) {
  Hub hub(clock_at_five);
  const Watcher one(hub, mask_of(Stream::Fetchers));
  hub.write(Stream::Mutations, "type=nobody");
  hub.write(Stream::Fetchers, "type=a");
  hub.write(Stream::Fetchers, "type=b");
  EXPECT_EQ(one.feed->take(), "ts=5.70 gid=1 type=a\nts=5.70 gid=2 type=b\n");
  EXPECT_EQ(one.feed->take(), "");
}

TEST(Hub, EachWatcherGetsItsStreamsOnly) {
  Hub hub(clock_at_five);
  const Watcher one(hub, mask_of(Stream::Fetchers));
  const Watcher two(hub, mask_of(Stream::Mutations));
  hub.write(Stream::Fetchers, "type=a");
  hub.write(Stream::Mutations, "type=b");
  EXPECT_EQ(one.feed->take(), "ts=5.70 gid=1 type=a\n");
  EXPECT_EQ(two.feed->take(), "ts=5.70 gid=2 type=b\n");
  const HubStats stats = hub.stats();
  EXPECT_EQ(stats.written, 2U);
  EXPECT_EQ(stats.sent, 2U);
  EXPECT_EQ(stats.watchers, 2U);
}

TEST(Hub, WakesOnceUntilLinesAreTaken) {
  Hub hub(clock_at_five);
  const Watcher one(hub, mask_of(Stream::Fetchers));
  hub.write(Stream::Fetchers, "type=a");
  hub.write(Stream::Fetchers, "type=b");
  EXPECT_EQ(one.wakes, 1);
  one.feed->take();
  hub.write(Stream::Fetchers, "type=c");
  EXPECT_EQ(one.wakes, 2);
}

TEST(Hub, AFullFeedSkipsLinesAndSaysHowMany) {
  Hub hub(clock_at_five);
  const Watcher one(hub, mask_of(Stream::Fetchers));
  const std::string fields(kFieldsBytesMax, 'x');
  const std::size_t line_bytes = std::string("ts=5.70 gid=10 ").size() + fields.size() + 1;
  const std::size_t fitting = kFeedBytesMax / line_bytes;
  for (std::size_t i = 0; i < fitting + 3; ++i) {
    hub.write(Stream::Fetchers, fields);
  }
  EXPECT_EQ(hub.stats().skipped, 3U);
  const std::string taken = one.feed->take();
  EXPECT_TRUE(taken.starts_with("skipped=3\nts=5.70 gid=1 "));
  EXPECT_LE(taken.size(), kFeedBytesMax + std::string("skipped=3\n").size());
  hub.write(Stream::Fetchers, "type=a");
  EXPECT_TRUE(one.feed->take().ends_with(" type=a\n"));
}

TEST(Hub, CutsLongFields) {
  Hub hub(clock_at_five);
  const Watcher one(hub, mask_of(Stream::Fetchers));
  hub.write(Stream::Fetchers, std::string(kFieldsBytesMax + 1, 'x'));
  EXPECT_EQ(one.feed->take(), "ts=5.70 gid=1 " + std::string(kFieldsBytesMax, 'x') + "\n");
}

TEST(Hub, TakesNoMoreWatchersThanItsLimit) {
  Hub hub(clock_at_five);
  std::vector<std::shared_ptr<Feed>> feeds;
  for (std::size_t i = 0; i < kWatchersMax; ++i) {
    feeds.push_back(hub.subscribe(mask_of(Stream::Fetchers), [] {}));
    ASSERT_NE(feeds.back(), nullptr);
  }
  EXPECT_EQ(hub.subscribe(mask_of(Stream::Fetchers), [] {}), nullptr);
  hub.unsubscribe(feeds.back());
  EXPECT_NE(hub.subscribe(mask_of(Stream::Fetchers), [] {}), nullptr);
}

TEST(Hub, OrderIsThatOfGidWhenManyThreadsWrite) {
  Hub hub(clock_at_five);
  const Watcher one(hub, mask_of(Stream::Fetchers));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&hub] {
      for (int line = 0; line < 100; ++line) {
        hub.write(Stream::Fetchers, "type=a");
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::string expected;
  for (int gid = 1; gid <= 400; ++gid) {
    expected += "ts=5.70 gid=" + std::to_string(gid) + " type=a\n";
  }
  EXPECT_EQ(one.feed->take(), expected);
}

}  // namespace
}  // namespace kvferry::watch
