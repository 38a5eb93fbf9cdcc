// Random operations on the store and on a map that does the same slowly.
#include "tests/unit/store/store_model.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

namespace kvferry::store {
namespace {

StoreStats run_model(std::uint64_t seed, int steps, const StoreConfig& config) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  StoreModel model(config);
  std::string_view difference;  // Ends the run.
  for (int i = 0; i < steps && difference.empty(); ++i) {
    difference = model.step([&] { return static_cast<std::uint32_t>(random()); });
    EXPECT_EQ(difference, "") << "step " << i;
  }
  return model.stats();
}

TEST(StoreModel, AgreesWithAMapWhenNothingIsEvicted) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const StoreStats stats = run_model(seed, 15'000, StoreConfig{.shard_count = 1});
    EXPECT_EQ(stats.evictions, 0U);
    EXPECT_GT(stats.total_items, 2000U);
  }
}

TEST(StoreModel, NeverReturnsAnythingElseThanTheLastValueWhenItEvicts) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const StoreStats stats = run_model(
        seed, 15'000,
        StoreConfig{.limit_bytes = kLimitBytesMin, .item_bytes_max = 100'000, .shard_count = 1});
    EXPECT_GT(stats.evictions, 200U);
    EXPECT_GT(stats.moves_to_main, 50U);
  }
}

TEST(StoreModel, AgreesWithAMapWithManyShards) {
  run_model(99, 20'000, StoreConfig{.shard_count = 16});
}

}  // namespace
}  // namespace kvferry::store
