#include "pool/mcp_pool.h"

#include "tests/unit/pool/mcp_rig.h"

namespace kvferry::pool {
namespace {

using test::Outcome;

class McpPoolTest : public McpRig {
 protected:
  McpPoolTest() : second_(loop()) {
    answer_version(second_);
    second_options_ = options_;
    second_options_.label = "b2";
    second_options_.port = std::to_string(second_.address().port());
  }
  ~McpPoolTest() override { pool_.reset(); }

  void make_pool(const std::vector<McpBackendOptions>& backends) {
    McpPoolOptions options;
    for (const McpBackendOptions& backend : backends) {
      options.backends.push_back(std::make_shared<McpBackendOptions>(backend));
    }
    options.placement.hash = HashKind::Xxh3;
    options.placement.distribution = DistributionKind::Jump;
    pool_ = std::make_unique<McpPool>(std::make_shared<McpPoolOptions>(options), backends_);
  }

  /// A key of backend `index`.
  std::string key_of(std::uint32_t index) const {
    for (int i = 0; i < 100; ++i) {
      const std::string key = "key:" + std::to_string(i);
      if (pool_->placement()->explain(key).index == index) {
        return key;
      }
    }
    ADD_FAILURE() << "no key for " << index;
    return {};
  }

  test::FakeBackend second_;
  McpBackendOptions second_options_;
  std::unique_ptr<McpPool> pool_;
};

TEST_P(McpPoolTest, SendsARequestAsItIsToTheBackendOfItsKey) {
  make_pool({options_, second_options_});
  const std::string meta = "mg  " + key_of(0) + " v  t\r\n";
  const std::string classic = "set " + key_of(1) + " 0 0 3 noreplY\r\nabc\r\n";
  Outcome& first = sink_.send(*pool_, meta);
  Outcome& second = sink_.send(*pool_, classic);
  ASSERT_TRUE(run_until([&] {
    return server_.received().size() + second_.received().size() == meta.size() + classic.size();
  }));
  EXPECT_EQ(server_.received(), meta);
  EXPECT_EQ(second_.received(), classic);
  server_.peer().send("EN\r\n");
  second_.peer().send("STORED\r\n");
  ASSERT_TRUE(run_until([&] { return first.is_done && second.is_done; }));
  EXPECT_EQ(first.bytes, "EN\r\n");
  EXPECT_EQ(second.bytes, "STORED\r\n");
}

TEST_P(McpPoolTest, ABackendInItTwiceIsConnectedToOnce) {
  make_pool({options_, second_options_, options_});
  ASSERT_TRUE(run_until([&] { return !server_.peers.empty() && !second_.peers.empty(); }));
  rig_.run_turns(5);
  EXPECT_EQ(pool_->backends()[0], pool_->backends()[2]);
  EXPECT_EQ(server_.peers.size(), 1U);
  EXPECT_EQ(stats_->backends.get(), 2U);
}

TEST_P(McpPoolTest, AnEmptyPoolFailsLikeABadBackend) {
  make_pool({});
  Outcome& a = sink_.send(*pool_, "mg a v\r\n");
  EXPECT_TRUE(a.is_done);
  EXPECT_EQ(a.bytes, kFailureText);
}

TEST_P(McpPoolTest, ABadBackendIsNotSkipped) {
  options_.failure_limit = 0;
  server_.stop();
  make_pool({options_, second_options_});
  ASSERT_TRUE(run_until([&] { return !recorder_.bads.empty() && second_.peers.size() == 1; }));
  int failed = 0;
  for (int i = 0; i < 40; ++i) {
    const std::string key = "k" + std::to_string(i);
    Outcome& outcome = sink_.send(*pool_, "mg " + key + " v\r\n");
    EXPECT_EQ(outcome.is_done, pool_->placement()->explain(key).index == 0) << key;
    failed += outcome.is_done ? 1 : 0;
  }
  EXPECT_GT(failed, 0);
  EXPECT_LT(failed, 40);
  second_.stop();
  ASSERT_TRUE(run_until([&] { return sink_.answered() == 40; }));
}

TEST_P(McpPoolTest, WorkersMayShareAPlacement) {
  McpPoolOptions options;
  options.backends.push_back(std::make_shared<McpBackendOptions>(options_));
  options.placed = place_mcp_pool(options).value();
  pool_ = std::make_unique<McpPool>(std::make_shared<McpPoolOptions>(options), backends_);
  EXPECT_EQ(pool_->placement(), options.placed.get());
}

TEST_P(McpPoolTest, PrefixesSeparateConnections) {
  make_pool({options_});
  McpPoolOptions other = pool_->options();
  other.prefix = "x";
  const McpPool separate(std::make_shared<McpPoolOptions>(other), backends_);
  ASSERT_TRUE(run_until([&] { return server_.peers.size() == 2; }));
}

TEST_P(McpPoolTest, APlacementThatCannotBeMadeIsAnErrorAndFailsAllRequests) {
  McpPoolOptions options;
  options.backends.push_back(std::make_shared<McpBackendOptions>(options_));
  options.backends.push_back(std::make_shared<McpBackendOptions>(second_options_));
  options.placement.distribution = DistributionKind::RingMemcached;
  options.placement.ring_points = 4'000'000'000U;
  EXPECT_FALSE(place_mcp_pool(options).has_value());
  pool_ = std::make_unique<McpPool>(std::make_shared<McpPoolOptions>(options), backends_);
  EXPECT_EQ(sink_.send(*pool_, "mg a v\r\n").bytes, kFailureText);
}

INSTANTIATE_TEST_SUITE_P(Engines, McpPoolTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::pool
