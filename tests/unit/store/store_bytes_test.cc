// What an item costs beyond its key, its value and what the protocol asks to be kept.
#include <string>

#include <gtest/gtest.h>

#include "store/record.h"
#include "store/store.h"
#include "tests/unit/store/store_probe.h"

namespace kvferry::store {
namespace {

/// CAS unique, last access, lengths of key and value.
constexpr std::size_t kNeededBytes = 8 + 4 + 1 + 4;
constexpr std::size_t kFlagsBytes = 4;
constexpr std::size_t kExptimeBytes = 4;
/// What we promise, whatever the lengths.
constexpr std::size_t kOverheadBytesMax = 24;

struct Fill {
  std::size_t items;
  std::size_t shards;
  std::size_t value_bytes;
  std::uint32_t client_flags = 0;
  Instant exptime = kNever;
};

constexpr std::size_t kKeyBytes = 20;

/// All memory of the store, divided by the items, less what they need. The limit is what we promise
/// to be enough, so that nothing may be evicted.
double overhead_of(const Fill& fill) {
  const std::size_t needed = kKeyBytes + fill.value_bytes + kNeededBytes +
                             (fill.client_flags != 0 ? kFlagsBytes : 0) +
                             (fill.exptime != kNever ? kExptimeBytes : 0);
  Store store(StoreConfig{.limit_bytes = fill.items * (needed + kOverheadBytesMax),
                          .shard_count = fill.shards});
  const std::string value(fill.value_bytes, 'v');
  const StoreOptions options{.client_flags = fill.client_flags, .exptime = fill.exptime};
  for (std::size_t i = 0; i < fill.items; ++i) {
    std::string key = numbered("key:", i);
    key.resize(kKeyBytes, '.');
    store.store(Key(key), options, value, kNow);
  }
  const StoreStats stats = store.snapshot();
  EXPECT_EQ(stats.curr_items, fill.items);
  EXPECT_EQ(stats.evictions, 0U);
  return static_cast<double>(stats.allocated_bytes) / static_cast<double>(fill.items) -
         static_cast<double>(needed);
}

TEST(StoreBytes, AMillionItemsCostLittleBeyondWhatIsKept) {
  // As many shards as a server of that size has: each has a frame or two that are not full.
  EXPECT_LE(overhead_of({.items = 1'000'000, .shards = 16, .value_bytes = 100}),
            static_cast<double>(kOverheadBytesMax));
}

TEST(StoreBytes, OneShardShowsWhatTheLayoutCosts) {
  // 9 bytes of index, 1 of ghost, 1 or 2 of padding; the head is 5 bytes shorter than what it
  // keeps.
  const double bytes = overhead_of({.items = 200'000, .shards = 1, .value_bytes = 100});
  EXPECT_LE(bytes, 9);
  EXPECT_GT(bytes, 0);
  const double full = overhead_of({.items = 200'000,
                                   .shards = 1,
                                   .value_bytes = 33,
                                   .client_flags = 7,
                                   .exptime = later(1000)});
  EXPECT_LE(full, 11);
}

TEST(StoreBytes, EveryLengthOfValueStaysWithinThePromise) {
  for (std::size_t value_bytes = 96; value_bytes < 100; ++value_bytes) {
    EXPECT_LE(overhead_of({.items = 50'000, .shards = 1, .value_bytes = value_bytes}),
              static_cast<double>(kOverheadBytesMax))
        << value_bytes;
  }
}

}  // namespace
}  // namespace kvferry::store
