#include "app/pool_keeper.h"

#include <gtest/gtest.h>

#include "tests/support/fake_backend.h"
#include "tests/support/loop_rig.h"

namespace kvferry::app {
namespace {

/// Keeps questions until the test answers them.
class HeldResolver final : public net::Resolver {
 public:
  void resolve(const std::string& host, std::uint16_t port, Callback callback) override {
    hosts.push_back(host + ":" + std::to_string(port));
    callbacks.push_back(std::move(callback));
  }
  void answer(std::size_t index, const std::vector<std::string>& addresses) {
    net::Resolution resolution;
    for (const std::string& address : addresses) {
      resolution.addresses.push_back(net::Address::from_ip(address, 11211).value());
    }
    callbacks.at(index)(std::move(resolution));
  }

  std::vector<std::string> hosts;
  std::vector<Callback> callbacks;
};

class PoolKeeperTest : public testing::Test {
 protected:
  PoolKeeperTest()
      : rig_(test::kEpoll),
        log_(base::Log::open(base::LogOptions{.file = "/dev/null", .level = base::LogLevel::Error})
                 .value()) {
    options_.name = "p";
    options_.on_down = pool::OnDown::Rehash;
    options_.retry_timeout = base::Millis(30);
    add("127.0.0.1", 11211, "a");
    add("127.0.0.1", 11212, "b");
  }

  void add(const std::string& host, std::uint16_t port, const std::string& label) {
    pool::ServerOptions server;
    server.host = host;
    server.port = port;
    server.label = server.point_label = label;
    options_.servers.push_back(server);
  }
  PoolKeeper::Context context() {
    return {.loop = *rig_.loop, .resolver = resolver_, .log = *log_, .publish = [this] {
              ++published_;
            }};
  }
  std::unique_ptr<PoolKeeper> make(const PoolKeeper* before = nullptr) {
    auto made = PoolKeeper::make(context(), options_, before);
    EXPECT_TRUE(made.has_value()) << made.error().text();
    return std::move(made).value();
  }
  /// Which servers get keys.
  static std::vector<bool> used(const PoolKeeper& keeper) {
    std::vector<bool> seen(keeper.options().servers.size());
    std::uint64_t random = 1;
    for (int i = 0; i < 200; ++i) {
      const std::uint32_t index =
          keeper.snapshot()->placement->select("key" + std::to_string(i), random);
      if (index != pool::kNoServer) {
        seen[index] = true;
      }
    }
    return seen;
  }
  static void fail(const PoolKeeper& keeper, std::size_t index) {
    while (!keeper.snapshot()->health[index]->on_failure()) {
    }
  }

  test::LoopRig rig_;
  HeldResolver resolver_;
  std::unique_ptr<base::Log> log_;
  pool::PoolOptions options_;
  int published_ = 0;
};

TEST_F(PoolKeeperTest, NumbersNeedNoLookUp) {
  const auto keeper = make();
  keeper->start();
  EXPECT_TRUE(resolver_.hosts.empty());
  EXPECT_EQ(keeper->snapshot()->addresses[1].to_string(), "127.0.0.1:11212");
  EXPECT_EQ(used(*keeper), (std::vector<bool>{true, true}));
}

TEST_F(PoolKeeperTest, ABackendThatIsDownLeavesThePlacementUntilAProbeFindsIt) {
  test::FakeBackend fake(*rig_.loop);
  options_.servers[1].port = fake.address().port();
  fake.stop();
  const auto keeper = make();
  keeper->start();
  fail(*keeper, 1);
  keeper->on_down("b");
  keeper->on_down("b");  // Told twice.
  EXPECT_EQ(published_, 1);
  EXPECT_EQ(keeper->ejections("b"), 1U);
  EXPECT_EQ(keeper->ejections("a"), 0U);
  EXPECT_EQ(used(*keeper), (std::vector<bool>{true, false}));
  rig_.run_for(base::Millis(100));  // Probes fail.
  EXPECT_EQ(published_, 1);
  fake.restart();
  fake.on_input = [](test::Peer& peer) { peer.send("VERSION 1\r\n"); };
  ASSERT_TRUE(rig_.run_until([&] { return published_ == 2; }));
  EXPECT_EQ(used(*keeper), (std::vector<bool>{true, true}));
  EXPECT_FALSE(keeper->snapshot()->health[1]->is_down());
}

TEST_F(PoolKeeperTest, UnderKeepNobodyIsEjected) {
  options_.on_down = pool::OnDown::Keep;
  const auto keeper = make();
  fail(*keeper, 0);
  keeper->on_down("a");
  EXPECT_EQ(published_, 0);
  EXPECT_EQ(keeper->ejections("a"), 0U);
}

TEST_F(PoolKeeperTest, UnknownLabelsAreIgnored) {
  const auto keeper = make();
  keeper->on_down("zzz");
  keeper->on_failed("zzz");
  EXPECT_EQ(published_, 0);
}

TEST_F(PoolKeeperTest, ANameIsLookedUpOnlyAfterTheStart) {
  options_.servers[0].host = "cache.example";
  const auto keeper = make();
  EXPECT_TRUE(resolver_.hosts.empty()) << "a configuration that is refused must ask nobody";
  EXPECT_FALSE(keeper->snapshot()->addresses[0].is_set());
  keeper->start();
  ASSERT_EQ(resolver_.hosts, std::vector<std::string>{"cache.example:11211"});
  resolver_.answer(0, {"10.0.0.1", "10.0.0.2"});
  EXPECT_EQ(published_, 1);
  EXPECT_EQ(keeper->snapshot()->addresses[0].to_string(), "10.0.0.1:11211");
}

TEST_F(PoolKeeperTest, TheAddressInUseIsKeptWhileTheNameHasIt) {
  options_.servers[0].host = "cache.example";
  const auto keeper = make();
  keeper->start();
  resolver_.answer(0, {"10.0.0.1", "10.0.0.2"});
  ASSERT_TRUE(rig_.run_until([&] {  // Failures ask again, a second after the last time at most.
    keeper->on_failed("a");
    rig_.run_for(base::Millis(50));
    return resolver_.hosts.size() == 2;
  }));
  keeper->on_failed("a");
  EXPECT_EQ(resolver_.hosts.size(), 2U) << "one look-up at a time";
  resolver_.answer(1, {"10.0.0.2", "10.0.0.1"});
  EXPECT_EQ(published_, 1);
  EXPECT_EQ(keeper->snapshot()->addresses[0].to_string(), "10.0.0.1:11211");
}

TEST_F(PoolKeeperTest, AnswersThatComeAfterItsEndReachNobody) {
  options_.servers[0].host = "cache.example";
  auto keeper = make();
  keeper->start();
  keeper.reset();
  resolver_.answer(0, {"10.0.0.1"});
  EXPECT_EQ(published_, 0);
}

TEST_F(PoolKeeperTest, AFailedLookUpKeepsTheAddress) {
  options_.servers[0].host = "cache.example";
  auto before = make();
  before->start();
  resolver_.answer(0, {"10.0.0.1"});
  const auto keeper = make(before.get());
  before.reset();
  EXPECT_EQ(keeper->snapshot()->addresses[0].to_string(), "10.0.0.1:11211")
      << "a reload forgets addresses";
  keeper->start();
  resolver_.callbacks.at(1)(base::Error::from_errno("no name server", EIO));
  EXPECT_EQ(keeper->snapshot()->addresses[0].to_string(), "10.0.0.1:11211");
}

TEST_F(PoolKeeperTest, AReloadKeepsHealthAndEjectionOfKeptServers) {
  auto before = make();
  before->start();
  fail(*before, 1);
  before->on_down("b");
  add("127.0.0.1", 11213, "c");
  options_.retry_timeout = base::Millis(60'000);
  const auto keeper = make(before.get());
  EXPECT_EQ(keeper->snapshot()->health[1], before->snapshot()->health[1]);
  before.reset();
  EXPECT_EQ(used(*keeper), (std::vector<bool>{true, false, true}));
}

TEST_F(PoolKeeperTest, TheFailureLimitChangesOnlyWhenItStarts) {
  options_.failure_limit = 2;
  const auto before = make();
  options_.failure_limit = 1;
  const auto keeper = make(before.get());
  EXPECT_FALSE(before->snapshot()->health[0]->on_failure())
      << "the limit of a configuration that may yet be refused holds";
  keeper->start();
  before->snapshot()->health[0]->on_reply();
  EXPECT_TRUE(before->snapshot()->health[0]->on_failure());
}

TEST_F(PoolKeeperTest, AUnixPathThatDoesNotFitIsRefused) {
  options_.servers[0].host = std::string(200, 'x');
  options_.servers[0].is_unix = true;
  EXPECT_FALSE(PoolKeeper::make(context(), options_, nullptr).has_value());
}

}  // namespace
}  // namespace kvferry::app
