// The operations of the store, without any wire format.
#include "store/store.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "store/record.h"

namespace kvferry::store {
namespace {

constexpr Instant kNow{1'700'000'000};

Instant later(std::uint32_t seconds) {
  return Instant{kNow.get() + seconds};
}

/// Copies what a visitor may keep.
struct Seen {
  std::string value;
  std::uint64_t cas = 0;
  Instant exptime{};
  bool is_stale = false;
  bool was_won = false;
  bool has_won = false;
  bool was_fetched = false;
  std::uint32_t idle_seconds = 0;
  ItemRef pieces;
  std::string rest;

  void on_item(const ItemView& item) {
    if (item.is_large) {
      pieces = item.pin();
    }
    rest = item.value;
    cas = item.cas;
    exptime = item.exptime;
    is_stale = item.is_stale;
    was_won = item.was_won;
    has_won = item.has_won;
    was_fetched = item.was_fetched;
    idle_seconds = item.idle_seconds;
  }
  void finish() {
    while (pieces.has_more()) {
      value += pieces.take();
    }
    value += rest;
    pieces.release();
  }
};

ReadResult read(Store& store, std::string_view key, Seen& seen, Instant now = kNow,
                const ReadOptions& options = {}) {
  const ReadResult result =
      store.read(Key(key), options, now, ItemVisitor::to<&Seen::on_item>(&seen));
  seen.finish();
  return result;
}

bool has(Store& store, std::string_view key, Instant now = kNow) {
  return store.read(Key(key), ReadOptions{}, now, {}).status == ReadStatus::Hit;
}

void set(Store& store, std::string_view key, std::string_view value, Instant now = kNow,
         Instant exptime = kNever) {
  ASSERT_EQ(store.store(Key(key), StoreOptions{.exptime = exptime}, value, now).status,
            StoreStatus::Stored);
}

std::string numbered(const char* prefix, std::size_t number) {
  return prefix + std::to_string(number);
}

TEST(Store, ReturnsValuesOfEveryLengthAsTheyWere) {
  Store store(StoreConfig{});
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, kInlineBytesMax - 1, kInlineBytesMax, kInlineBytesMax + 1,
        2 * kPieceBytes - 1, 2 * kPieceBytes, 2 * kPieceBytes + 1, std::size_t{1'000'000}}) {
    std::string value(size, 'x');
    for (std::size_t i = 0; i < size; ++i) {
      value[i] = static_cast<char>('a' + i % 23);
    }
    set(store, "k", value);
    Seen seen;
    ASSERT_EQ(read(store, "k", seen).status, ReadStatus::Hit) << size;
    EXPECT_EQ(seen.value, value) << size;
  }
}

TEST(Store, TakesItemsUpToTheLimitAndRemovesTheOldOneOfATooLargeSet) {
  const std::size_t limit = 100'000;
  Store store(StoreConfig{.item_bytes_max = limit});
  const std::size_t longest = limit - Record::kHeadBytes - 1;
  for (const std::size_t size : {longest - 1, longest}) {
    EXPECT_EQ(store.store(Key("k"), {}, std::string(size, 'x'), kNow).status, StoreStatus::Stored);
  }
  EXPECT_TRUE(has(store, "k"));
  EXPECT_EQ(store.store(Key("k"), {}, std::string(longest + 1, 'x'), kNow).status,
            StoreStatus::TooLarge);
  EXPECT_FALSE(has(store, "k"));
}

TEST(Store, KeepsThePreviousItemWhenAnAppendWouldBeTooLarge) {
  Store store(StoreConfig{.item_bytes_max = 20'000});
  set(store, "k", std::string(15'000, 'x'));
  const StoreOptions append{.mode = StoreMode::Append};
  EXPECT_EQ(store.store(Key("k"), append, std::string(6'000, 'y'), kNow).status,
            StoreStatus::TooLarge);
  EXPECT_TRUE(has(store, "k"));
}

TEST(Store, ExpiresAtTheSecondOfItsExptime) {
  Store store(StoreConfig{});
  set(store, "k", "v", kNow, later(10));
  EXPECT_TRUE(has(store, "k", later(9)));
  Seen seen;
  const ReadResult result = read(store, "k", seen, later(10));
  EXPECT_EQ(result.status, ReadStatus::Miss);
  EXPECT_EQ(result.miss, Miss::Expired);
  EXPECT_EQ(store.snapshot().curr_items, 0U);
}

TEST(Store, ReadsExptimesAsMemcachedDoes) {
  const struct {
    std::int64_t exptime;
    Instant expected;
  } cases[] = {
      {0, kNever},
      {1, later(1)},
      {kRelativeSecondsMax, later(kRelativeSecondsMax)},
      {kRelativeSecondsMax + 1, kLongAgo},
      {kNow.get(), kLongAgo},
      {kNow.get() + 1, later(1)},
      {-1, kLongAgo},
      {2'147'483'647, Instant{2'147'483'647}},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(instant_of_exptime(each.exptime, kNow), each.expected) << each.exptime;
  }
}

TEST(Store, TouchesItemsThatHadNoExptime) {
  // Key lengths decide whether the exptime fits into the padding or the record has to move.
  Store store(StoreConfig{});
  for (std::size_t length = 1; length <= 16; ++length) {
    const std::string key(length, 'k');
    set(store, key, "value");
    EXPECT_EQ(store.touch(Key(key), later(5), kNow), TouchStatus::Done);
    Seen seen;
    ASSERT_EQ(read(store, key, seen, later(4)).status, ReadStatus::Hit) << length;
    EXPECT_EQ(seen.value, "value");
    EXPECT_EQ(seen.exptime, later(5));
    EXPECT_FALSE(has(store, key, later(5))) << length;
  }
}

TEST(Store, GivesEveryChangeANewAndHigherCas) {
  Store store(StoreConfig{});
  std::uint64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    const StoreResult stored = store.store(Key("k"), {}, "1", kNow);
    EXPECT_GT(stored.cas, last);
    const ArithResult added = store.add_delta(Key("k"), {}, kNow);
    EXPECT_GT(added.cas, stored.cas);
    last = added.cas;
  }
  Seen seen;
  store.touch(Key("k"), later(100), kNow);
  read(store, "k", seen);
  EXPECT_EQ(seen.cas, last);
}

TEST(Store, ShowsNoCasWhenItIsOff) {
  Store store(StoreConfig{.has_cas = false});
  EXPECT_EQ(store.store(Key("k"), StoreOptions{.new_cas = 7}, "1", kNow).cas, 0U);
  const StoreOptions cas{.mode = StoreMode::Cas, .has_compare_cas = true};
  EXPECT_EQ(store.store(Key("k"), cas, "2", kNow).status, StoreStatus::Exists);
}

TEST(Store, FlushHidesWhatWasStoredBeforeAndNothingElse) {
  Store store(StoreConfig{});
  set(store, "before", "v");
  store.flush(kNever, kNow);
  set(store, "after", "v");
  Seen seen;
  const ReadResult result = read(store, "before", seen);
  EXPECT_EQ(result.status, ReadStatus::Miss);
  EXPECT_EQ(result.miss, Miss::Flushed);
  EXPECT_TRUE(has(store, "after"));
}

TEST(Store, DelayedFlushHappensAtItsTimeAndALaterCallReplacesIt) {
  Store store(StoreConfig{});
  set(store, "k", "v");
  store.flush(later(10), kNow);
  set(store, "k2", "v", later(5));
  EXPECT_TRUE(has(store, "k", later(9)));
  EXPECT_FALSE(has(store, "k", later(10)));
  EXPECT_FALSE(has(store, "k2", later(10)));

  set(store, "k", "v", later(11));
  store.flush(later(20), later(11));
  store.flush(later(40), later(12));
  EXPECT_TRUE(has(store, "k", later(20)));
  EXPECT_FALSE(has(store, "k", later(40)));
}

TEST(Store, SurvivesMoreFlushesThanThereAreGenerations) {
  Store store(StoreConfig{.shard_count = 1});
  set(store, "old", "v");
  for (int i = 0; i < 65'600; ++i) {
    store.flush(kNever, kNow);
    ASSERT_FALSE(has(store, "old")) << i;
  }
  set(store, "new", "v");
  EXPECT_TRUE(has(store, "new"));
}

TEST(Store, OnlyOneReaderWinsAStaleItem) {
  Store store(StoreConfig{});
  set(store, "k", "v");
  store.remove(Key("k"), DeleteOptions{.is_invalidation = true, .exptime = later(30)}, kNow);
  const ReadOptions lease{.is_leasing = true};
  Seen first;
  read(store, "k", first, kNow, lease);
  EXPECT_TRUE(first.is_stale && first.has_won && !first.was_won);
  Seen second;
  read(store, "k", second, kNow, lease);
  EXPECT_TRUE(second.is_stale && !second.has_won && second.was_won);
  set(store, "k", "new");
  Seen third;
  read(store, "k", third, kNow, lease);
  EXPECT_FALSE(third.is_stale || third.has_won || third.was_won);
}

TEST(Store, RecachesWhenTheRestIsBelowTheBoundAndNotAtIt) {
  Store store(StoreConfig{});
  set(store, "k", "v", kNow, later(30));
  const ReadOptions at_bound{.is_leasing = true, .recache_below = later(30)};
  const ReadOptions above{.is_leasing = true, .recache_below = later(31)};
  Seen seen;
  read(store, "k", seen, kNow, at_bound);
  EXPECT_FALSE(seen.has_won);
  seen = Seen{};
  read(store, "k", seen, kNow, above);
  EXPECT_TRUE(seen.has_won);
  set(store, "forever", "v");
  seen = Seen{};
  read(store, "forever", seen, kNow, above);
  EXPECT_FALSE(seen.has_won);
}

TEST(Store, TellsWhenAnItemWasReadLast) {
  Store store(StoreConfig{});
  set(store, "k", "v");
  Seen seen;
  read(store, "k", seen, later(7));
  EXPECT_FALSE(seen.was_fetched);
  EXPECT_EQ(seen.idle_seconds, 7U);
  seen = Seen{};
  read(store, "k", seen, later(9), ReadOptions{.is_use = false});
  EXPECT_TRUE(seen.was_fetched);
  EXPECT_EQ(seen.idle_seconds, 2U);
  seen = Seen{};
  read(store, "k", seen, later(10));
  EXPECT_EQ(seen.idle_seconds, 3U);
}

TEST(Store, PinnedValuesStayWhateverHappensToTheItem) {
  Store store(
      StoreConfig{.limit_bytes = kLimitBytesMin, .item_bytes_max = 200'000, .shard_count = 1});
  const std::string value(100'000, 'p');
  set(store, "k", value);
  Seen seen;
  store.read(Key("k"), {}, kNow, ItemVisitor::to<&Seen::on_item>(&seen));
  const std::uint64_t allocated = store.snapshot().allocated_bytes;
  for (std::size_t i = 0; i < 200; ++i) {
    set(store, numbered("other", i), std::string(100'000, 'o'));
  }
  EXPECT_FALSE(has(store, "k"));
  seen.finish();
  EXPECT_EQ(seen.value, value);
  EXPECT_LE(allocated, kLimitBytesMin);
}

TEST(Store, AHotSetSurvivesAScan) {
  Store store(StoreConfig{.limit_bytes = std::size_t{4} << 20, .shard_count = 1});
  const std::string value(500, 'v');
  constexpr std::size_t kHot = 1000;
  for (std::size_t round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < kHot; ++i) {
      if (!has(store, numbered("hot", i))) {
        set(store, numbered("hot", i), value);
      }
    }
  }
  for (std::size_t i = 0; i < 50'000; ++i) {
    set(store, numbered("scan", i), value);
    if (i % 10 == 0) {
      has(store, numbered("hot", i / 10 % kHot));
    }
  }
  std::size_t left = 0;
  for (std::size_t i = 0; i < kHot; ++i) {
    left += has(store, numbered("hot", i)) ? 1 : 0;
  }
  EXPECT_GT(left, kHot * 99 / 100);
  EXPECT_GT(store.snapshot().evictions, 30'000U);
}

TEST(Store, StaysWithinTheLimitWhateverTheSizes) {
  for (const std::size_t size : {1, 100, 1000, 8000, 20'000, 90'000}) {
    Store store(StoreConfig{.limit_bytes = std::size_t{2} << 20, .shard_count = 1});
    const std::string value(size, 'v');
    for (std::size_t i = 0; i < 60'000'000 / (size + 500); ++i) {
      set(store, numbered("key", i), value);
    }
    const StoreStats stats = store.snapshot();
    EXPECT_LE(stats.allocated_bytes, stats.limit_maxbytes) << size;
    // What is in use is most of what there is.
    EXPECT_GT(stats.bytes + stats.index_bytes, stats.limit_maxbytes * 7 / 10) << size;
    EXPECT_GT(stats.evictions, 0U) << size;
  }
}

TEST(Store, MemoryFollowsAChangeOfSizes) {
  Store store(StoreConfig{.limit_bytes = std::size_t{4} << 20, .shard_count = 1});
  char prefix[] = "a";
  for (const std::size_t size : {100, 50'000, 100, 3000, 50'000, 8000}) {
    ++prefix[0];
    const std::string value(size, 'v');
    const std::size_t fit = (std::size_t{4} << 20) * 6 / 10 / (size + 64);
    for (std::size_t i = 0; i < 20 * fit; ++i) {
      set(store, numbered(prefix, i), value);
    }
    std::size_t found = 0;
    for (std::size_t i = 19 * fit; i < 20 * fit; ++i) {
      found += has(store, numbered(prefix, i)) ? 1 : 0;
    }
    EXPECT_GT(found, fit * 9 / 10) << size;
  }
}

TEST(Store, OverwritesDoNotEvictWhatFits) {
  Store store(StoreConfig{.limit_bytes = std::size_t{4} << 20, .shard_count = 1});
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < 400'000; ++i) {
    state = state * 1664525 + 1013904223;
    // 2000 keys of about 600 bytes are a third of the memory; the sizes change all the time.
    set(store, numbered("key", (state >> 8) % 2000), std::string(100 + i * 31 % 1000, 'v'));
  }
  const StoreStats stats = store.snapshot();
  EXPECT_EQ(stats.evictions, 0U);
  EXPECT_EQ(stats.curr_items, 2000U);
  EXPECT_GT(stats.compacted_segments, 0U);
}

TEST(Store, RefusesWhenItIsFullAndMayNotEvict) {
  Store store(StoreConfig{.limit_bytes = kLimitBytesMin, .is_evicting = false, .shard_count = 1});
  std::size_t stored = 0;
  while (store.store(Key(numbered("key", stored)), {}, std::string(1000, 'v'), kNow).status ==
         StoreStatus::Stored) {
    ++stored;
  }
  EXPECT_GT(stored, 600U);
  EXPECT_TRUE(has(store, "key0"));
  EXPECT_EQ(store.snapshot().evictions, 0U);
  // A refused set removes what was there; what is freed can be used again.
  EXPECT_EQ(store.store(Key("key1"), {}, std::string(5000, 'v'), kNow).status,
            StoreStatus::NoMemory);
  EXPECT_FALSE(has(store, "key1"));
  for (std::size_t i = 0; i < stored; ++i) {
    store.remove(Key(numbered("key", i)), {}, kNow);
  }
  EXPECT_EQ(store.store(Key("key1"), {}, std::string(5000, 'v'), kNow).status, StoreStatus::Stored);
}

TEST(Store, ExpiredItemsLeaveWithoutBeingRead) {
  Store store(StoreConfig{});
  for (std::size_t i = 0; i < 20'000; ++i) {
    set(store, numbered("key", i), "value", kNow, i % 2 == 0 ? later(10) : kNever);
  }
  for (int i = 0; i < 1000; ++i) {
    store.maintain(later(10));
  }
  const StoreStats stats = store.snapshot();
  EXPECT_EQ(stats.curr_items, 10'000U);
  EXPECT_EQ(stats.crawler_reclaimed, 10'000U);
  EXPECT_EQ(stats.expired_unfetched, 10'000U);
}

TEST(Store, ALowerLimitIsReachedByMaintain) {
  Store store(StoreConfig{.limit_bytes = std::size_t{16} << 20});
  for (std::size_t i = 0; i < 20'000; ++i) {
    set(store, numbered("key", i), std::string(1000, 'v'));
  }
  store.set_memory_limit(std::size_t{4} << 20);
  for (int i = 0; i < 100; ++i) {
    store.maintain(kNow);
  }
  EXPECT_LE(store.snapshot().allocated_bytes, std::size_t{4} << 20);
  EXPECT_GT(store.snapshot().curr_items, 1000U);
  store.set_memory_limit(std::size_t{16} << 20);
  for (std::size_t i = 0; i < 20'000; ++i) {
    set(store, numbered("key", i), std::string(1000, 'v'));
  }
  EXPECT_GT(store.snapshot().curr_items, 10'000U);
}

TEST(Store, FreedMemoryGoesBackToTheSystem) {
  Store store(StoreConfig{});
  for (std::size_t i = 0; i < 400; ++i) {
    set(store, numbered("key", i), std::string(100'000, 'v'));
  }
  const std::uint64_t full = store.snapshot().allocated_bytes;
  for (std::size_t i = 0; i < 400; ++i) {
    store.remove(Key(numbered("key", i)), {}, kNow);
  }
  for (int i = 0; i < 50; ++i) {
    store.maintain(kNow);
  }
  EXPECT_LT(store.snapshot().allocated_bytes, full / 4);
}

TEST(Store, CountsNumbersOnceUnderFourThreads) {
  Store store(StoreConfig{.limit_bytes = std::size_t{16} << 20, .shard_count = 4});
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&store, t] {
      std::uint32_t state = t + 1;
      for (int i = 0; i < 8000; ++i) {
        state = state * 1664525 + 1013904223;
        const std::string key = numbered("key", state >> 8 & 0xfff);
        switch (state >> 24 & 7) {
          case 0:
            store.store(Key(key), {}, std::string(20'000 + (state >> 4 & 0x3ff), 'L'), kNow);
            break;
          case 1:
            store.remove(Key(key), {}, kNow);
            break;
          case 2:
            store.store(Key(key), StoreOptions{.mode = StoreMode::Append}, "tail", kNow);
            break;
          case 3:
            store.maintain(kNow);
            break;
          case 4:
          case 5: {
            Seen seen;
            read(store, key, seen);
            break;
          }
          default:
            store.store(Key(key), {}, std::string(state >> 16 & 0x1ff, 's'), kNow);
            break;
        }
        store.add_delta(Key("counter"), ArithOptions{.vivify = kNever}, kNow);
        has(store, "counter");
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  // The counter is always in use, so it is not evicted: all but the first call counted.
  Seen seen;
  ASSERT_EQ(read(store, "counter", seen).status, ReadStatus::Hit);
  EXPECT_EQ(std::stoul(seen.value), 4 * 8000 - 1U);
  EXPECT_GT(store.snapshot().evictions, 0U);
}

TEST(Store, AppendsOfManyThreadsToOneLargeValueAllArrive) {
  Store store(StoreConfig{});
  set(store, "k", std::string(20'000, 'x'));
  std::atomic<std::size_t> stored{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const StoreOptions append{.mode = i % 2 == 0 ? StoreMode::Append : StoreMode::Prepend};
        if (store.store(Key("k"), append, "123", kNow).status == StoreStatus::Stored) {
          ++stored;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  Seen seen;
  read(store, "k", seen);
  EXPECT_EQ(seen.value.size(), 20'000 + 3 * stored);
  EXPECT_GT(stored, 100U);
}

}  // namespace
}  // namespace kvferry::store
