#include "app/route_plan.h"

#include <gtest/gtest.h>

namespace kvferry::app {
namespace {

config::RouteConfig entry(const std::string& name, const std::string& counter) {
  config::RouteConfig config;
  config.name = name;
  config.spec.kind = route::RouteKind::RateLimit;
  config.spec.is_bucket_shared = true;
  config.spec.bucket.limit = 5;
  config.spec.counter = counter;
  config.spec.children.resize(1);
  return config;
}

RoutePlans plans_of(const std::vector<config::RouteConfig>& entries,
                    const RoutePlans& before = {}) {
  NearSpaces spaces;
  return make_route_plans(entries, before, 2, base::SteadyTime{}, spaces);
}

config::RouteConfig near_entry(const std::string& name, const std::string& pool) {
  config::RouteConfig config;
  config.name = name;
  config.spec.kind = route::RouteKind::NearCache;
  config.spec.counter = name;
  config.spec.children.resize(1);
  config.spec.children[0].text = pool;
  return config;
}

/// The number of the only near cache of each entry.
std::vector<std::uint32_t> numbers_of(const RoutePlans& plans) {
  std::vector<std::uint32_t> numbers;
  for (const auto& plan : plans) {
    numbers.push_back(plan->near_spaces.at(0).number);
  }
  return numbers;
}

TEST(RoutePlan, WhatHasNotChangedKeepsItsPlan) {
  const RoutePlans before = plans_of({entry("a", "x"), entry("b", "y")});
  auto changed = entry("b", "y");
  changed.spec.bucket.limit = 6;
  const RoutePlans after = plans_of({changed, entry("a", "x")}, before);
  EXPECT_EQ(after[1], before[0]);
  EXPECT_NE(after[0], before[1]);
  EXPECT_NE(after[0]->buckets.at(0), before[1]->buckets.at(0));
}

TEST(RoutePlan, CountersGoOnByName) {
  const RoutePlans before = plans_of({entry("a", "x")});
  before[0]->counters.at("x")->of(0).add(3);
  before[0]->counters.at("x")->of(1).add(4);
  const RoutePlans after = plans_of({entry("renamed", "x"), entry("new", "z")}, before);
  EXPECT_EQ(after[0]->counters.at("x")->sum(), 7U);
  EXPECT_EQ(after[1]->counters.at("z")->sum(), 0U);
}

TEST(RoutePlan, RoutesOfOneNameCountTogether) {
  const RoutePlans plans = plans_of({entry("a", "x"), entry("b", "x")});
  EXPECT_EQ(plans[0]->counters.at("x"), plans[1]->counters.at("x"));
}

TEST(RoutePlan, HitsAndMissesOfNearCachesAreCountedApart) {
  const RoutePlans plans = plans_of({near_entry("n", "a")});
  EXPECT_TRUE(plans[0]->counters.contains("n_hits"));
  EXPECT_TRUE(plans[0]->counters.contains("n_misses"));
  EXPECT_EQ(plans[0]->counters.size(), 2U);
}

TEST(NearSpaces, BelongToWhatStandsBehindTheNearCache) {
  NearSpaces spaces;
  const auto plans = [&](const std::vector<config::RouteConfig>& entries,
                         const RoutePlans& before) {
    return make_route_plans(entries, before, 2, base::SteadyTime{}, spaces);
  };
  const RoutePlans first =
      plans({near_entry("x", "a"), near_entry("y", "b"), near_entry("z", "a")}, {});
  EXPECT_EQ(numbers_of(first), (std::vector<std::uint32_t>{1, 2, 1}));
  auto longer = near_entry("x", "a");
  longer.spec.near_ttl = base::Millis(5);
  const RoutePlans second = plans({near_entry("y", "c"), longer}, first);
  EXPECT_EQ(numbers_of(second), (std::vector<std::uint32_t>{3, 1}));
  // b was not there for one configuration: what is in its copies is nobody's any more.
  const RoutePlans third = plans({near_entry("x", "c")}, second);
  const RoutePlans fourth = plans({near_entry("x", "b")}, third);
  EXPECT_EQ(numbers_of(fourth), (std::vector<std::uint32_t>{4}));
  auto smaller = near_entry("x", "b");
  smaller.spec.near_memory_bytes /= 2;
  EXPECT_EQ(numbers_of(plans({smaller, near_entry("y", "b")}, fourth)),
            (std::vector<std::uint32_t>{5, 4}));
}

}  // namespace
}  // namespace kvferry::app
