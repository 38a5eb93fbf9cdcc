// What those see that look on: watchers, counters by prefix, dumps.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/route/store_conversation.h"
#include "watch/hub.h"

namespace kvferry::route {
namespace {

base::WallTime clock_at_five() {
  return base::WallTime(std::chrono::duration_cast<base::WallTime::duration>(base::Seconds(5)));
}

/// A conversation that is watched.
class StoreReports : public testing::Test {
 protected:
  explicit StoreReports(watch::StreamMask mask = ~watch::StreamMask{0})
      : feed_(hub_.subscribe(mask, [] {})) {}

  /// The lines since the last call, without their heads, which count up.
  std::string lines() {
    std::string taken = feed_->take();
    std::string rest;
    while (!taken.empty()) {
      const std::string head = "ts=5.0 gid=" + std::to_string(++gid_) + " type=";
      EXPECT_EQ(taken.substr(0, head.size()), head);
      const std::size_t end = taken.find('\n');
      rest += taken.substr(head.size(), end + 1 - head.size());
      taken.erase(0, end + 1);
    }
    return rest;
  }

  watch::Hub hub_{clock_at_five};
  PrefixStats prefixes_{':', false};
  EvictionReport evictions_{hub_};
  StoreConversation store_{store::StoreConfig{.observer = &evictions_},
                           StoreTargetOptions{.watch = &hub_, .prefixes = &prefixes_}};
  std::shared_ptr<watch::Feed> feed_;
  int gid_ = 0;
};

TEST_F(StoreReports, EachLookUpIsALine) {
  store_.say("set k/ 0 0 3\r\nabc\r\n");
  lines();
  store_.say("get k/ none\r\n");
  EXPECT_EQ(lines(),
            "item_get key=k%2F status=found clsid=1 cfd=0 size=3\n"
            "item_get key=none status=not_found clsid=0 cfd=0 size=0\n");
  store_.say("mg ay8= b v\r\nmg none\r\n");
  EXPECT_EQ(lines(),
            "item_get key=k%2F status=found clsid=1 cfd=0 size=3\n"
            "item_get key=none status=not_found clsid=0 cfd=0 size=0\n");
  store_.say("touch k/ 5\r\n");
  EXPECT_EQ(lines(), "item_get key=k%2F status=found clsid=1 cfd=0 size=3\n");
  store_.advance(5);
  store_.say("get k/\r\n");
  EXPECT_EQ(lines(), "item_get key=k%2F status=expired clsid=0 cfd=0 size=0\n");
}

TEST_F(StoreReports, LookingOnIsNoUse) {
  store_.say("set k 0 0 1\r\nv\r\nget other\r\nmd k I\r\n");
  EXPECT_EQ(store_.say("mg k h\r\n"), "HD h0 X W\r\n");
}

TEST_F(StoreReports, EachStoreIsALineWithItsResult) {
  store_.say("set k 0 100 3\r\nabc\r\nadd k 0 0 1\r\nx\r\nms n 2 MR\r\nxx\r\n");
  EXPECT_EQ(lines(),
            "item_get key=k status=not_found clsid=0 cfd=0 size=0\n"
            "item_store key=k status=stored cmd=set ttl=100 clsid=1 cfd=0 size=3\n"
            "item_get key=k status=found clsid=1 cfd=0 size=3\n"
            "item_store key=k status=not_stored cmd=add ttl=0 clsid=1 cfd=0 size=1\n"
            "item_get key=n status=not_found clsid=0 cfd=0 size=0\n"
            "item_store key=n status=not_stored cmd=replace ttl=0 clsid=1 cfd=0 size=2\n");
}

TEST_F(StoreReports, OnlyRealDeletesAreLines) {
  store_.say("set a 0 0 2\r\naa\r\nset b 0 0 1\r\nb\r\nset c 0 0 1\r\nc\r\n");
  lines();
  store_.say("delete a\r\nmd b\r\nmd c I\r\ndelete none\r\n");
  const std::string all = lines();
  EXPECT_NE(all.find("deleted key=a cmd=delete clsid=1 size=2\n"), std::string::npos) << all;
  EXPECT_NE(all.find("deleted key=b cmd=md clsid=1 size=1\n"), std::string::npos) << all;
  EXPECT_EQ(all.find("deleted key=c"), std::string::npos) << all;
  EXPECT_EQ(all.find("deleted key=none"), std::string::npos) << all;
}

TEST(StoreEvictionReports, EachEvictionIsALine) {
  watch::Hub hub(clock_at_five);
  EvictionReport report(hub);
  const auto feed = hub.subscribe(watch::mask_of(watch::Stream::Evictions), [] {});
  StoreConversation store(store::StoreConfig{
      .limit_bytes = store::kLimitBytesMin, .shard_count = 1, .observer = &report});
  const std::string value(1000, 'v');
  for (int i = 0; i < 2000; ++i) {
    store.say("set k" + std::to_string(i) + " 0 0 1000\r\n" + value + "\r\n");
  }
  ASSERT_GT(store.store().snapshot().evictions, 0U);
  EXPECT_EQ(hub.stats().written, store.store().snapshot().evictions);
  const std::string lines = feed->take();
  EXPECT_EQ(
      lines.find("ts=5.0 gid=1 type=eviction key=k0 fetch=no ttl=-1 la=0 clsid=1 size=1000\n"), 0U)
      << lines.substr(0, 100);
}

TEST_F(StoreReports, CountsByPrefixWhenTurnedOn) {
  store_.say("get off:1\r\n");
  prefixes_.turn(true);
  store_.say("set a:1 0 0 1\r\n1\r\nget a:1 a:2 b:1 plain\r\nmg a:1\r\ndelete a:1\r\nmd a:1\r\n");
  prefixes_.turn(false);
  store_.say("get a:1\r\n");
  std::string out;
  prefixes_.dump(out);
  EXPECT_EQ(out,
            "PREFIX a get 3 hit 2 set 1 del 2\r\n"
            "PREFIX b get 1 hit 0 set 0 del 0\r\n");
  prefixes_.reset();
  out.clear();
  prefixes_.dump(out);
  EXPECT_EQ(out, "");
}

TEST(StoreDumps, ListEveryItem) {
  StoreConversation store;
  store.say("set one 0 0 1\r\n1\r\nset a%b 0 50 3\r\n222\r\nms Zm9v 1 b\r\nx\r\nget one\r\n");
  const std::string keys = store.say("lru_crawler mgdump all\r\n");
  EXPECT_EQ(keys.find("OK\r\n"), 0U);
  EXPECT_EQ(keys.size(), std::string("OK\r\nmg one\r\nmg a%b\r\nmg Zm9v b\r\nEN\r\n").size());
  for (const char* line : {"mg one\r\n", "mg a%b\r\n", "mg Zm9v b\r\n"}) {
    EXPECT_NE(keys.find(line), std::string::npos) << keys;
  }
  const std::string meta = store.say("lru_crawler metadump all\r\n");
  EXPECT_NE(meta.find("key=one exp=-1 la=1700000000 cas="), std::string::npos) << meta;
  EXPECT_NE(meta.find(" fetch=yes cls=1 size="), std::string::npos) << meta;
  EXPECT_NE(meta.find("key=a%25b exp=1700000050 "), std::string::npos) << meta;
  EXPECT_TRUE(meta.ends_with("\nEND\r\n"));
}

TEST(StoreDumps, WaitForASlowClient) {
  StoreConversation store;
  std::set<std::string> missing;
  for (int i = 0; i < 5000; ++i) {
    const std::string key = "key" + std::to_string(i);
    missing.insert("mg " + key);
    store.say("set " + key + " 0 0 1\r\n1\r\n");
  }
  store.sink().pauses_left = 2;
  std::string all = store.say("lru_crawler mgdump all\r\n");
  EXPECT_LT(all.size(), 40'000U);
  while (store.sink().is_paused) {
    store.call().source->resume(store.call());
    all += store.take();
  }
  EXPECT_TRUE(all.ends_with("EN\r\n"));
  for (std::size_t at = 4; at < all.size();) {
    const std::size_t end = all.find("\r\n", at);
    missing.erase(all.substr(at, end - at));
    at = end + 2;
  }
  EXPECT_TRUE(missing.empty());
}

TEST(StoreDumps, AreDroppedWithTheirClient) {
  StoreConversation store;
  for (int i = 0; i < 5000; ++i) {
    store.say("set key" + std::to_string(i) + " 0 0 1\r\n1\r\n");
  }
  store.sink().pauses_left = 1;
  store.say("lru_crawler mgdump all\r\n");
  ASSERT_TRUE(store.sink().is_paused);
  const int finished = store.sink().finished;
  store.call().source->discard(store.call());
  EXPECT_EQ(store.sink().finished, finished + 1);
}

TEST(StoreDumps, CanBeRefused) {
  StoreConversation store({}, StoreTargetOptions{.is_dump_enabled = false});
  EXPECT_EQ(store.say("lru_crawler metadump all\r\n"), "ERROR metadump not allowed\r\n");
  EXPECT_EQ(store.say("lru_crawler metadump\r\n"), "ERROR\r\n");
}

}  // namespace
}  // namespace kvferry::route
