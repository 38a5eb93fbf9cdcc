// The operations of the store, without any wire format.
#include "store/store.h"

#include <string>

#include <gtest/gtest.h>

#include "store/record.h"
#include "tests/unit/store/store_probe.h"

namespace kvferry::store {
namespace {

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

}  // namespace
}  // namespace kvferry::store
