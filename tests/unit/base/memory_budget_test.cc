#include "base/memory_budget.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/byte_chain.h"

namespace kvferry::base {
namespace {

TEST(MemoryBudget, IsExhaustedFromItsLimitOn) {
  for (const std::size_t limit : {std::size_t{1}, std::size_t{100}}) {
    MemoryBudget budget(limit);
    budget.charge(limit - 1);
    EXPECT_FALSE(budget.is_exhausted());
    budget.charge(1);
    EXPECT_TRUE(budget.is_exhausted());
    budget.charge(1);
    EXPECT_TRUE(budget.is_exhausted());
    budget.release(2);
    EXPECT_FALSE(budget.is_exhausted());
  }
}

TEST(MemoryBudget, WithoutALimitIsNeverExhausted) {
  MemoryBudget budget(0);
  budget.charge(std::size_t{1} << 40);
  EXPECT_FALSE(budget.is_exhausted());
  EXPECT_EQ(budget.limit_bytes(), 0U);
}

TEST(MemoryBudget, TakesANewLimitAtOnce) {
  MemoryBudget budget(0);
  budget.charge(10);
  budget.set_limit(10);
  EXPECT_TRUE(budget.is_exhausted());
  budget.set_limit(11);
  EXPECT_FALSE(budget.is_exhausted());
}

TEST(MemoryBudget, CountsExactlyWhenThreadsShareIt) {
  MemoryBudget budget(0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&budget] {
      for (int step = 0; step < 10'000; ++step) {
        budget.charge(3);
        budget.release(2);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(budget.used_bytes(), 40'000U);
}

TEST(MemoryBudget, SeesTheSlabsOfBlockPools) {
  MemoryBudget budget(2 * kSlabBytes);
  BlockPool pool(budget);
  ByteChain chain;
  chain.append(pool, "a");
  EXPECT_EQ(budget.used_bytes(), kSlabBytes);
  EXPECT_FALSE(budget.is_exhausted());
  ByteChain large;
  large.append_output(pool, "b");
  EXPECT_TRUE(budget.is_exhausted());
  chain.clear();
  large.clear();
  pool.trim(true);
  EXPECT_EQ(budget.used_bytes(), 0U);
}

}  // namespace
}  // namespace kvferry::base
