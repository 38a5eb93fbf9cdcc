#include "app/administration.h"

#include <string>

#include <gtest/gtest.h>

#include "protocol/memcache/request_parser.h"

namespace kvferry::app {
namespace {

class AdministrationTest : public testing::Test {
 protected:
  /// What `line` is answered; "?" when it is no command of the administration.
  std::string say(const std::string& line) {
    memcache::RequestParser parser{memcache::ParserLimits{}};
    const std::string bytes = line + "\r\n";
    const auto parsed = parser.parse(bytes);
    EXPECT_TRUE(!parsed.is_need_more() && !parsed.is_failed()) << line;
    std::string out;
    return Administration(setup_).run(parsed.value(), out) ? out : "?";
  }

  store::Store store_{store::StoreConfig{}};
  StoreClock clock_;
  int ends_ = 0;
  int clock_moves_ = 0;
  Administration::Setup setup_{.store = &store_,
                               .clock = &clock_,
                               .end = [this] { ++ends_; },
                               .on_clock_moved = [this] { ++clock_moves_; }};
};

TEST_F(AdministrationTest, AnswersInTheWordsOfMemcached) {
  const std::string bad = "CLIENT_ERROR bad command line format\r\n";
  const struct {
    const char* line;
    std::string answer;
  } table[] = {
      {"lru_crawler enable", "OK\r\n"},
      {"lru_crawler disable", "OK\r\n"},
      {"lru_crawler crawl all", "OK\r\n"},
      {"lru_crawler crawl", "ERROR\r\n"},
      {"lru_crawler sleep 1000000", "OK\r\n"},
      {"lru_crawler sleep 1000001", "CLIENT_ERROR sleep must be one second or less\r\n"},
      {"lru_crawler sleep x", bad},
      {"lru_crawler tocrawl 0", "OK\r\n"},
      {"lru_crawler tocrawl", bad},
      {"lru_crawler bogus", "?"},
      {"lru_crawler", "?"},
      {"lru mode flat", "OK\r\n"},
      {"lru mode segmented", "OK\r\n"},
      {"lru mode other", "ERROR\r\n"},
      {"lru tune 20 40 0.2 2.0", "OK\r\n"},
      {"lru tune 20 40 0.2", "ERROR\r\n"},
      {"lru temp_ttl 60", "OK\r\n"},
      {"lru temp_ttl -1", "OK\r\n"},
      {"lru", "ERROR\r\n"},
      {"slabs reassign 1 2", "OK\r\n"},
      {"slabs reassign 1 x", bad},
      {"slabs automove 1", "OK\r\n"},
      {"slabs automove", "ERROR\r\n"},
      {"slabs", "ERROR\r\n"},
      {"cache_memlimit", "ERROR\r\n"},
      {"cache_memlimit x", "ERROR\r\n"},
      {"cache_memlimit 7", "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n"},
      {"cache_memlimit 4294967295", "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n"},
      {"debugtime 5", "?"},
      {"extstore item_age 5", "?"},
      {"version", "?"},
  };
  for (const auto& row : table) {
    EXPECT_EQ(say(row.line), row.answer) << row.line;
  }
  EXPECT_EQ(store_.limit_bytes(), store::kLimitBytesDefault);
}

TEST_F(AdministrationTest, TheMemoryLimitChanges) {
  EXPECT_EQ(say("cache_memlimit 8"), "OK\r\n");
  EXPECT_EQ(store_.limit_bytes(), std::size_t{8} << 20);
}

TEST_F(AdministrationTest, ShutdownNeedsToBeAllowed) {
  EXPECT_EQ(say("shutdown"), "SERVER_ERROR: shutdown not enabled\r\n");
  EXPECT_EQ(ends_, 0);
  setup_.allows_shutdown = true;
  EXPECT_EQ(say("shutdown bogus"), "CLIENT_ERROR invalid shutdown mode\r\n");
  EXPECT_EQ(ends_, 0);
  EXPECT_EQ(say("shutdown"), "");
  EXPECT_EQ(say("shutdown graceful"), "");
  EXPECT_EQ(ends_, 2);
}

TEST_F(AdministrationTest, CertificatesAreReadAnewWhereThereAreAny) {
  EXPECT_EQ(say("refresh_certs"), "Error TLS not enabled\r\n");
  std::string problem = "cannot read 'x'";
  setup_.refresh_certificates = [&] { return problem; };
  EXPECT_EQ(say("refresh_certs"), "Error cannot read 'x'\r\n");
  problem.clear();
  EXPECT_EQ(say("refresh_certs"), "OK\r\n");
}

TEST_F(AdministrationTest, TheClockMovesForTestsOnly) {
  setup_.has_test_hooks = true;
  EXPECT_EQ(say("debugtime p"), "OK\r\n");
  const store::Instant before = clock_.now();
  EXPECT_EQ(say("debugtime 100"), "OK\r\n");
  EXPECT_EQ(clock_.now().get(), before.get() + 100);
  EXPECT_EQ(say("debugtime -30"), "OK\r\n");
  EXPECT_EQ(clock_.now().get(), before.get() + 70);
  EXPECT_EQ(say("debugtime r"), "OK\r\n");
  EXPECT_GE(clock_.now().get(), before.get() + 70);
  EXPECT_EQ(clock_moves_, 4);
  EXPECT_EQ(say("debugtime x"), "?");
  EXPECT_EQ(say("debugtime"), "?");
  EXPECT_EQ(clock_moves_, 4);
}

}  // namespace
}  // namespace kvferry::app
