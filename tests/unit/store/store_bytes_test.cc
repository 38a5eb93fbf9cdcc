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
constexpr double kOverheadBytesMax = 24;

struct Fill {
  std::size_t items;
  std::size_t shards;
  std::size_t value_bytes;
  std::uint32_t client_flags = 0;
  Instant exptime = kNever;
};

/// Keys are 20 bytes long. Returns all memory of the store, divided by the items, less what they
/// need.
double overhead_of(const Fill& fill) {
  Store store(StoreConfig{.limit_bytes = std::size_t{1} << 30, .shard_count = fill.shards});
  const std::string value(fill.value_bytes, 'v');
  const StoreOptions options{.client_flags = fill.client_flags, .exptime = fill.exptime};
  std::size_t key_bytes = 0;
  for (std::size_t i = 0; i < fill.items; ++i) {
    std::string key = numbered("key:", i);
    key.resize(20, '.');
    key_bytes = key.size();
    EXPECT_EQ(store.store(Key(key), options, value, kNow).status, StoreStatus::Stored);
  }
  const StoreStats stats = store.snapshot();
  EXPECT_EQ(stats.curr_items, fill.items);
  EXPECT_EQ(stats.evictions, 0U);
  const std::size_t needed = key_bytes + fill.value_bytes + kNeededBytes +
                             (fill.client_flags != 0 ? kFlagsBytes : 0) +
                             (fill.exptime != kNever ? kExptimeBytes : 0);
  return static_cast<double>(stats.allocated_bytes) / static_cast<double>(fill.items) -
         static_cast<double>(needed);
}

TEST(StoreBytes, AMillionItemsCostLittleBeyondWhatIsKept) {
  // Shards have a frame or two that are not full; here there are 64 of them.
  EXPECT_LE(overhead_of({.items = 1'000'000, .shards = 64, .value_bytes = 100}), kOverheadBytesMax);
}

TEST(StoreBytes, OneShardShowsWhatTheLayoutCosts) {
  // About 9 bytes of index, 1 or 2 of padding; the head is 5 bytes shorter than what it keeps.
  const double bytes = overhead_of({.items = 200'000, .shards = 1, .value_bytes = 100});
  EXPECT_LE(bytes, 8);
  EXPECT_GT(bytes, 0);
  const double full = overhead_of({.items = 200'000,
                                   .shards = 1,
                                   .value_bytes = 33,
                                   .client_flags = 7,
                                   .exptime = later(1000)});
  EXPECT_LE(full, 10);
}

TEST(StoreBytes, EveryLengthOfValueStaysWithinThePromise) {
  for (std::size_t value_bytes = 90; value_bytes < 100; ++value_bytes) {
    EXPECT_LE(overhead_of({.items = 50'000, .shards = 1, .value_bytes = value_bytes}),
              kOverheadBytesMax)
        << value_bytes;
  }
}

}  // namespace
}  // namespace kvferry::store
