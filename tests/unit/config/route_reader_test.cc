#include "config/route_reader.h"

#include <string>

#include <gtest/gtest.h>

#include "config/loader.h"

namespace kvferry::config {
namespace {

using route::RouteKind;
using route::RouteSpec;

constexpr const char* kPools =
    "a:\n  protocol: memcache\n  servers: [10.0.0.1:11211]\n"
    "b:\n  protocol: memcache\n  servers: [10.0.0.2:11211]\n"
    "c:\n  protocol: store\n";

Loaded load_routes(const std::string& entries) {
  return load_text("t.yml", kPools + std::string("kvferry:\n  routes:\n") + entries);
}

/// Of one entry whose keys all go one way. Every pool is named, so that none lacks a listener.
RouteSpec default_of(const std::string& text) {
  const Loaded loaded = load_routes("    - {listen: \"h:1\", default: " + text +
                                    ", map: {\"1\": a, \"2\": b, \"3\": c}}\n");
  EXPECT_TRUE(loaded.model) << loaded.text();
  return loaded.model ? loaded.model->process.routes.at(0).spec.children.at(3) : RouteSpec{};
}

TEST(RouteReader, ReadsAnEntry) {
  const Loaded loaded = load_routes(
      "    - name: front\n      listen: [h:1, {address: h:2, max_clients: 7}]\n      map:\n"
      "        \"user:\": a\n        \"sess:\": {failover: {children: [a, b]}}\n      default: c\n"
      "      client_idle_timeout: 90s\n");
  ASSERT_TRUE(loaded.model) << loaded.text();
  const RouteConfig& entry = loaded.model->process.routes.at(0);
  EXPECT_EQ(entry.name, "front");
  EXPECT_EQ(entry.where.line, 11U);
  EXPECT_EQ(entry.listeners.at(1).max_clients, 7U);
  EXPECT_EQ(entry.client_idle_timeout, base::Millis(90000));
  EXPECT_EQ(entry.spec.kind, RouteKind::Prefixes);
  EXPECT_EQ(entry.spec.prefixes, (std::vector<std::string>{"user:", "sess:"}));
  ASSERT_EQ(entry.spec.children.size(), 3U);
  EXPECT_EQ(entry.spec.children[0].text, "a");
  EXPECT_EQ(entry.spec.children[1].kind, RouteKind::Failover);
  EXPECT_EQ(entry.spec.children[1].counter, "front/sess:");
  EXPECT_EQ(entry.spec.children[2].text, "c");
}

TEST(RouteReader, ReadsTheArgumentsOfEachKind) {
  const RouteSpec failover = default_of(
      "{failover: {children: {east: a, west: b}, miss: true, failover_count: 2, shuffle: true,"
      " wait: 1500ms, local_zone: west, stats_name: x}}");
  EXPECT_EQ(failover.children[0].text, "b");
  EXPECT_EQ(failover.zones, (std::vector<std::string>{"west", "east"}));
  EXPECT_TRUE(failover.goes_on_after_miss && failover.shuffles);
  EXPECT_EQ(failover.tries_max, 2U);
  EXPECT_EQ(failover.fixed_children, 1U);
  EXPECT_EQ(failover.wait, base::Micros(1500000));
  EXPECT_EQ(failover.counter, "x");

  const RouteSpec limit = default_of(
      "{ratelim: {child: a, limit: 9, fillrate: 3, tickrate: 2s, global: true, stats: false,"
      " fail_until_limit: true}}");
  EXPECT_EQ(limit.bucket,
            (route::TokenBucketOptions{.limit = 9, .fill_rate = 3, .tick = base::Millis(2000)}));
  EXPECT_TRUE(limit.is_bucket_shared && limit.fails_until_limit);
  EXPECT_EQ(limit.counter, "");

  const RouteSpec commands = default_of("{commands: {get: a, all: b, mg: c}}");
  EXPECT_EQ(commands.commands,
            (std::vector<memcache::Command>{memcache::Command::Get, memcache::Command::Mg}));
  EXPECT_EQ(commands.children.at(2).text, "b");

  EXPECT_EQ(default_of("{ttl: {child: a, ttl: -1}}").text, "-1");
  EXPECT_EQ(default_of("{error: {text: no way}}").text, "no way");
  EXPECT_EQ(default_of("{null: {}}").kind, RouteKind::Null);
  const RouteSpec near = default_of(
      "{nearcache: {child: {coalesce: {child: a}}, ttl: 1500ms, max_value: 2kb, memory: 3mb}}");
  EXPECT_EQ(near.near_ttl, base::Millis(1500));
  EXPECT_EQ(near.near_value_bytes_max, 2048U);
  EXPECT_EQ(near.near_memory_bytes, 3U << 20U);
  EXPECT_EQ(near.counter, "routes/default");
  EXPECT_EQ(near.children.at(0).kind, RouteKind::Coalesce);
  EXPECT_EQ(near.children.at(0).counter, "routes/default");
  EXPECT_EQ(default_of("{nearcache: {child: a, ttl: 1s}}").near_value_bytes_max, 65536U);
  EXPECT_EQ(default_of("{nearcache: {child: a, ttl: 1s}}").near_memory_bytes, 64U << 20U);
  EXPECT_EQ(default_of("{split: {child_b: b, child_a: a}}").children[0].text, "a");
  EXPECT_TRUE(
      default_of("{zfailover: {children: {e: a, w: b}, local_zone: w}}").goes_on_after_miss);
  EXPECT_EQ(default_of("{ratelim: {child: a, limit: 9}}").bucket.tick, base::Millis(1000));
}

TEST(RouteReader, PoolsMayStandBehindRoutesAndInOtherFiles) {
  const Loaded loaded =
      load_texts({{"1.yml", "kvferry:\n  routes:\n    - {listen: \"h:1\", default: a}\n"},
                  {"2.yml", "a:\n  protocol: store\n"}});
  EXPECT_TRUE(loaded.model) << loaded.text();
}

TEST(RouteReader, TheNumberOfRoutesIsLimited) {
  std::string wide = "    - {listen: \"h:1\", default: {allsync: {children: &l [";
  for (std::size_t i = 0; i < kRouteChildrenMax; ++i) {
    wide += i == 0 ? "a" : ",a";
  }
  wide += "]}}, map: {";
  for (int i = 0; i < 12; ++i) {
    wide += "m" + std::to_string(i) + ": {allsync: {children: *l}}, ";
  }
  wide += "z: b, y: c}}\n";
  const Loaded loaded = load_routes(wide);
  EXPECT_FALSE(loaded.model);
  EXPECT_NE(loaded.text().find("may have up to 9999 routes"), std::string::npos) << loaded.text();
}

TEST(RouteReader, EveryKindHasAWord) {
  for (const RouteKindInfo& kind : route_kinds()) {
    EXPECT_EQ(route_kind_word(kind.kind), kind.word);
    EXPECT_FALSE(kind.doc.empty());
    for (const std::string_view required : kind.required) {
      EXPECT_TRUE(std::any_of(kind.keys.begin(), kind.keys.end(),
                              [&](const auto& key) { return key.info.name == required; }))
          << kind.word << " " << required;
    }
  }
}

}  // namespace
}  // namespace kvferry::config
