#include "app/stats_lists.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvferry::app {
namespace {

using testing::HasSubstr;
using testing::Not;

base::WallTime clock_at_five() {
  return base::WallTime(std::chrono::duration_cast<base::WallTime::duration>(base::Seconds(5)));
}

class StatsLists : public testing::Test {
 protected:
  /// What `stats <words>` answers; "?" when it is unknown.
  std::string stats(std::string_view words) {
    std::string out;
    const StatsSources sources{.registry = registry_,
                               .store = store_,
                               .budget = budget_,
                               .threads = 3,
                               .clients = clients_,
                               .options = options_,
                               .prefixes = prefixes_,
                               .watch = watch_,
                               .now = kNow};
    return compose_stats(sources, words, out) ? out : "?";
  }
  void set(const std::string& key, const std::string& value, store::Instant exptime) {
    store_.store(store::Key(key), store::StoreOptions{.exptime = exptime}, value, kNow);
  }

  static constexpr store::Instant kNow{1'700'000'000};
  StatsRegistry registry_;
  store::Store store_{store::StoreConfig{}};
  base::MemoryBudget budget_{0};
  front::ClientLimit clients_{77};
  MemcachedOptions options_;
  route::PrefixStats prefixes_{':', false};
  watch::Hub watch_{clock_at_five};
};

TEST_F(StatsLists, WordsMayBeShortened) {
  EXPECT_EQ(find_stats_list("s"), "settings");
  EXPECT_EQ(find_stats_list("sl"), "slabs");
  EXPECT_EQ(find_stats_list("si"), "sizes");
  EXPECT_EQ(find_stats_list("con"), "conns");
  EXPECT_EQ(find_stats_list("proxyb"), "proxybe");
  EXPECT_EQ(find_stats_list("proxy"), "proxy");
  EXPECT_EQ(find_stats_list("bogus"), "");
  EXPECT_EQ(find_stats_list("settingsx"), "");
  EXPECT_EQ(find_stats_list(""), "");
}

TEST_F(StatsLists, PlainStatsHaveWhatMonitoringReads) {
  const std::string all = stats("");
  for (const char* name : {"max_connections 77", "auth_cmds 0", "accepting_conns 1", "threads 3",
                           "log_watchers 0", "lru_bumps_dropped 0", "curr_items 0"}) {
    EXPECT_THAT(all, HasSubstr("STAT " + std::string(name) + "\r\n"));
  }
  EXPECT_TRUE(all.ends_with("END\r\n"));
}

TEST_F(StatsLists, SettingsFollowTheOptions) {
  options_.idle_timeout_seconds = 9;
  options_.allows_dump = false;
  const std::string all = stats("settings");
  for (const char* name :
       {"maxbytes 67108864", "maxconns 77", "num_threads 3", "idle_timeout 9", "dump_enabled no",
        "flush_enabled yes", "evictions on", "proxy_enabled no"}) {
    EXPECT_THAT(all, HasSubstr("STAT " + std::string(name) + "\r\n"));
  }
}

TEST_F(StatsLists, ItemsAndSlabsAreOneClass) {
  EXPECT_EQ(stats("items"), "END\r\n");
  EXPECT_THAT(stats("slabs"), HasSubstr("STAT active_slabs 0\r\n"));
  set("a", "1", store::kNever);
  EXPECT_THAT(stats("items"), HasSubstr("STAT items:1:number 1\r\n"));
  EXPECT_THAT(stats("slabs"), HasSubstr("STAT 1:total_pages "));
  EXPECT_THAT(stats("slabs"), HasSubstr("STAT active_slabs 1\r\n"));
}

TEST_F(StatsLists, CachedumpListsItems) {
  set("a", "123", store::kNever);
  set("b", "4", store::Instant{kNow.get() + 5});
  const std::string all = stats("cachedump 1 0");
  EXPECT_THAT(all, HasSubstr("ITEM a [3 b; 0 s]\r\n"));
  EXPECT_THAT(all, HasSubstr("ITEM b [1 b; 1700000005 s]\r\n"));
  EXPECT_TRUE(all.ends_with("END\r\n"));
  EXPECT_EQ(stats("cachedump 2 0"), "END\r\n");
  const std::string one = stats("cachedump 1 1");
  EXPECT_NE(one.find("ITEM a"), one.find("ITEM b"));
  EXPECT_EQ(std::count(one.begin(), one.end(), '['), 1);
  EXPECT_EQ(stats("cachedump"), "CLIENT_ERROR bad command line\r\n");
  EXPECT_EQ(stats("cachedump 1"), "CLIENT_ERROR bad command line\r\n");
  EXPECT_EQ(stats("cachedump 1 x"), "CLIENT_ERROR bad command line format\r\n");
  EXPECT_EQ(stats("cachedump 64 1"), "CLIENT_ERROR Illegal slab id\r\n");
  options_.allows_dump = false;
  EXPECT_EQ(stats("cachedump 1 1"), "CLIENT_ERROR stats cachedump not allowed\r\n");
}

TEST_F(StatsLists, DetailIsTurnedOnAndOff) {
  EXPECT_EQ(stats("detail"), "CLIENT_ERROR usage: stats detail on|off|dump\r\n");
  EXPECT_EQ(stats("detail on"), "OK\r\n");
  EXPECT_TRUE(prefixes_.is_on());
  prefixes_.count_set("a:1");
  EXPECT_EQ(stats("detail dump"), "PREFIX a get 0 hit 0 set 1 del 0\r\nEND\r\n");
  EXPECT_EQ(stats("reset"), "RESET\r\n");
  EXPECT_EQ(stats("detail dump"), "END\r\n");
  EXPECT_EQ(stats("detail off"), "OK\r\n");
  EXPECT_FALSE(prefixes_.is_on());
}

TEST_F(StatsLists, WhatIsUnknownIsSaid) {
  EXPECT_EQ(stats("bogus"), "?");
  EXPECT_EQ(stats("sizes"), "STAT sizes_status disabled\r\nEND\r\n");
  EXPECT_THAT(stats("conns"), Not(HasSubstr("?")));
}

}  // namespace
}  // namespace kvferry::app
