#include "app/stats_registry.h"

#include <gtest/gtest.h>

namespace kvferry::app {
namespace {

StatsRegistry::BackendEntry backend(const std::string& label) {
  return {.pool = "p",
          .label = label,
          .address = "127.0.0.1:1",
          .is_ejecting = false,
          .health = std::make_shared<pool::BackendHealth>(3),
          .stats = std::make_shared<pool::BackendStats>()};
}

TEST(StatsRegistry, KeepsTheOrderAndForgetsWhatIsGone) {
  StatsRegistry registry;
  std::vector<std::shared_ptr<front::ServiceStats>> owned;
  for (const char* address : {"a", "b", "c"}) {
    owned.push_back(std::make_shared<front::ServiceStats>());
    registry.add(
        StatsRegistry::ServiceEntry{.pool = "p", .address = address, .stats = owned.back()});
  }
  auto all = registry.services();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].address + all[1].address + all[2].address, "abc");
  EXPECT_EQ(all[1].stats, owned[1]);
  all.clear();
  owned.erase(owned.begin() + 1);
  all = registry.services();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].address + all[1].address, "ac");
}

TEST(StatsRegistry, TheSameCountersAgainOnlyRenewTheirWords) {
  StatsRegistry registry;
  StatsRegistry::BackendEntry one = backend("one");
  const StatsRegistry::BackendEntry two = backend("two");
  registry.add(one);
  registry.add(two);
  one.label = "uno";
  one.address = "127.0.0.1:2";
  one.is_ejecting = true;
  registry.add(one);
  const auto all = registry.backends();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].label, "uno");
  EXPECT_EQ(all[0].address, "127.0.0.1:2");
  EXPECT_TRUE(all[0].is_ejecting);
  EXPECT_EQ(all[1].label, "two");
}

TEST(StatsRegistry, ABackendLeavesWithItsCountersOrItsHealth) {
  StatsRegistry registry;
  StatsRegistry::BackendEntry one = backend("one");
  StatsRegistry::BackendEntry two = backend("two");
  registry.add(one);
  registry.add(two);
  one.health.reset();
  two.stats.reset();
  EXPECT_TRUE(registry.backends().empty());
}

TEST(StatsRegistry, SumsTheStoreCountersOfTheWorkersThatLive) {
  StatsRegistry registry;
  route::StoreCommandStats one;
  route::StoreCommandStats two;
  registry.add(one);
  registry.add(two);
  one.count(route::StoreCount::CmdGet);
  two.count(route::StoreCount::CmdGet);
  two.count(route::StoreCount::GetHits);
  auto totals = registry.store_totals();
  EXPECT_EQ(totals[static_cast<std::size_t>(route::StoreCount::CmdGet)], 2U);
  EXPECT_EQ(totals[static_cast<std::size_t>(route::StoreCount::GetHits)], 1U);
  registry.remove(two);
  totals = registry.store_totals();
  EXPECT_EQ(totals[static_cast<std::size_t>(route::StoreCount::CmdGet)], 1U);
  EXPECT_EQ(totals[static_cast<std::size_t>(route::StoreCount::GetHits)], 0U);
}

}  // namespace
}  // namespace kvferry::app
