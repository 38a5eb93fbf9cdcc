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
  return make_route_plans(entries, before, 2, base::SteadyTime{});
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

}  // namespace
}  // namespace kvferry::app
