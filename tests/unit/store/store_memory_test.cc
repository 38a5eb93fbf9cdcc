// Eviction, limits, expiry in the background, and many threads.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "store/store.h"
#include "tests/unit/store/store_probe.h"

namespace kvferry::store {
namespace {

TEST(StoreMemory, PinnedValuesStayWhateverHappensToTheItem) {
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

TEST(StoreMemory, AHotSetSurvivesAScan) {
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

TEST(StoreMemory, StaysWithinTheLimitWhateverTheSizes) {
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

TEST(StoreMemory, MemoryFollowsAChangeOfSizes) {
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

TEST(StoreMemory, OverwritesDoNotEvictWhatFits) {
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

TEST(StoreMemory, RefusesWhenItIsFullAndMayNotEvict) {
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

TEST(StoreMemory, ExpiredItemsLeaveWithoutBeingRead) {
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

TEST(StoreMemory, ALowerLimitIsReachedByMaintain) {
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

TEST(StoreMemory, FreedMemoryGoesBackToTheSystem) {
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

TEST(StoreMemory, CountsNumbersOnceUnderFourThreads) {
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

TEST(StoreMemory, AppendsOfManyThreadsToOneLargeValueAllArrive) {
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
