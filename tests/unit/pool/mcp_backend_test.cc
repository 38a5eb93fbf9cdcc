#include "pool/mcp_backend.h"

#include "tests/unit/pool/mcp_rig.h"

namespace kvferry::pool {
namespace {

using base::Millis;
using base::Seconds;
using test::Outcome;

class McpBackendTest : public McpRig {
 protected:
  /// Sends `count` requests in one turn.
  std::vector<Outcome*> ask_batch(int count) {
    std::vector<Outcome*> batch;
    for (int i = 0; i < count; ++i) {
      batch.push_back(&ask("k"));
    }
    return batch;
  }
};

TEST_P(McpBackendTest, CallsAreAnsweredWithTheNameOfTheBackend) {
  options_.logging.tag = "tg";
  make();
  Outcome& a = ask("a");
  ASSERT_NE(a.call->answerer, nullptr);
  EXPECT_EQ(a.call->answerer->place, "127.0.0.1:" + options_.port);
  EXPECT_EQ(a.call->answerer->logging.tag, "tg");
  ASSERT_TRUE(wait_received("mg a v\r\n"));
  server_.peer().send("HD\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
}

TEST_P(McpBackendTest, ADownBackendIsCountedAndNeverConnectedTo) {
  options_.is_down = true;
  make();
  rig_.run_turns(5);
  EXPECT_TRUE(server_.peers.empty());
  EXPECT_EQ(stats_->backends.get(), 1U);
  Outcome& a = ask("a");
  EXPECT_TRUE(a.is_done);
  EXPECT_EQ(a.bytes, kFailureText);
  EXPECT_TRUE(recorder_.errors.empty());
  EXPECT_TRUE(stats_->bad_links().empty());
}

TEST_P(McpBackendTest, TheDepthLimitRefusesABatchThatFindsMoreThanTheLimit) {
  options_.depth_limit = 2;
  for (const int queued : {1, 2, 3}) {
    make_ready();
    const std::vector<Outcome*> first = ask_batch(queued);
    end_turn();
    const std::uint64_t refused = stats_->failed_depth.get();
    const std::vector<Outcome*> second = ask_batch(4);
    const bool is_refused = queued > 2;
    for (const Outcome* outcome : second) {
      EXPECT_EQ(outcome->is_done, is_refused) << queued;
    }
    EXPECT_EQ(stats_->failed_depth.get() - refused, is_refused ? 4U : 0U);
    EXPECT_EQ(link().inflight(), static_cast<std::uint32_t>(queued + (is_refused ? 0 : 4)));
    server_.peers.back()->close();
    ASSERT_TRUE(run_until([&] { return first.back()->is_done; }));
    ASSERT_TRUE(wait_ready());
    EXPECT_TRUE(recorder_.bads.empty());
  }
}

TEST_P(McpBackendTest, ABatchMayOvershootTheDepthLimit) {
  options_.depth_limit = 1;
  make_ready();
  const std::vector<Outcome*> batch = ask_batch(50);
  EXPECT_EQ(link().inflight(), 50U);
  EXPECT_EQ(stats_->failed_depth.get(), 0U);
  ASSERT_TRUE(run_until([&] { return server_.received().size() == 50 * 8; }));
  server_.peer().close();
  ASSERT_TRUE(run_until([&] { return batch.back()->is_done; }));
}

TEST_P(McpBackendTest, EachBatchGoesToTheFirstIdleConnectionElseToTheLeastLoaded) {
  options_.connections = 3;
  make_ready();
  const auto load = [&] {
    return std::vector{link(0).inflight(), link(1).inflight(), link(2).inflight()};
  };
  using Load = std::vector<std::uint32_t>;
  ask_batch(3);
  EXPECT_EQ(load(), (Load{3, 0, 0}));
  end_turn();
  ask_batch(1);
  EXPECT_EQ(load(), (Load{3, 1, 0}));
  end_turn();
  ask_batch(2);
  EXPECT_EQ(load(), (Load{3, 1, 2}));
  end_turn();
  ask_batch(4);
  EXPECT_EQ(load(), (Load{3, 5, 2}));
  end_turn();
  ask_batch(1);
  EXPECT_EQ(load(), (Load{3, 5, 3}));
  end_turn();
  ask_batch(1);  // Equal: the first of them.
  EXPECT_EQ(load(), (Load{4, 5, 3}));
  ASSERT_TRUE(run_until([&] { return server_.received().size() == 12 * 8; }));
  server_.stop();
  ASSERT_TRUE(run_until([&] { return load() == (Load{0, 0, 0}); }));
}

TEST_P(McpBackendTest, BadConnectionsAreNotChosen) {
  options_.connections = 2;
  options_.failure_limit = 0;
  make_ready();
  Outcome& a = ask("k");  // The first one, and only it.
  ASSERT_TRUE(run_until([&] { return server_.received() == "mg k v\r\n"; }));
  test::Peer& first = server_.peer(0).data.empty() ? server_.peer(1) : server_.peer(0);
  first.close();
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_TRUE(link(0).is_bad());
  EXPECT_EQ(stats_->bad_links(), (std::vector<std::pair<std::string, std::uint64_t>>{{"b1", 1}}));
  Outcome& b = ask("k");
  EXPECT_EQ(link(1).inflight(), 1U);
  end_turn();
  Outcome& c = ask("k");
  EXPECT_EQ(link(1).inflight(), 2U);
  server_.stop();
  ASSERT_TRUE(run_until([&] { return c.is_done && link(1).is_bad(); }));
  EXPECT_TRUE(b.is_failure());
  EXPECT_TRUE(ask("k").is_done);
  EXPECT_EQ(stats_->marked_bad.get(), 2U);
  EXPECT_EQ(stats_->bad_links().front().second, 2U);
}

TEST_P(McpBackendTest, ACallOfABatchWhoseConnectionTurnedBadMeanwhileFindsAnother) {
  options_.connections = 2;
  options_.failure_limit = 0;
  make_ready();
  Outcome& a = ask("k");
  EXPECT_EQ(link(0).inflight(), 1U);
  link(0).on_closed(0);  // Within the same turn.
  EXPECT_TRUE(a.is_failure());
  Outcome& b = ask("k");
  EXPECT_EQ(link(1).inflight(), 1U);
  server_.stop();
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
}

TEST_P(McpBackendTest, WaitsForTheAddressOfAName) {
  options_.host = "backend.example";
  make();
  Outcome& a = ask("a");
  rig_.run_turns(3);
  EXPECT_EQ(recorder_.asked.size(), 1U);
  EXPECT_EQ(recorder_.asked.front().first, "backend.example");
  EXPECT_EQ(std::to_string(recorder_.asked.front().second), options_.port);
  EXPECT_FALSE(a.is_done);
  backends_.on_resolved("other.example", backend_->port(), server_.address());
  EXPECT_EQ(link().phase(), McpLink::Phase::Starting);
  backends_.on_resolved("backend.example", backend_->port(), server_.address());
  ASSERT_TRUE(wait_received("mg a v\r\n"));
  server_.peer().send("HD\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_EQ(a.bytes, "HD\r\n");
  // The next attempt takes the known address at once, and asks again.
  server_.peer().close();
  ASSERT_TRUE(run_until([&] { return server_.peers.size() == 2; }));
  EXPECT_EQ(recorder_.asked.size(), 2U);
}

TEST_P(McpBackendTest, ANameWithoutAddressIsLikeAServerThatRefuses) {
  options_.host = "nowhere.example";
  options_.failure_limit = 1;
  make();
  Outcome& a = ask("a");
  rig_.run_turns(3);
  backends_.on_resolved("nowhere.example", backend_->port(), {});
  EXPECT_EQ(a.bytes, kFailureText);
  EXPECT_EQ(stats_->failed.get(), 1U);
  rig_.run_turns(3);
  ASSERT_EQ(recorder_.asked.size(), 2U);
  backends_.on_resolved("nowhere.example", backend_->port(), {});
  EXPECT_EQ(recorder_.bads.size(), 1U);
  EXPECT_EQ(recorder_.errors.front().failure, McpFailure::Connecting);
}

TEST_P(McpBackendTest, AnAnswerThatDoesNotComeIsConntimeout) {
  options_.host = "slow.example";
  options_.failure_limit = 0;
  options_.connect_timeout = Millis(40);
  make();
  Outcome& a = ask("a");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_EQ(recorder_.errors.front().failure, McpFailure::ConnTimeout);
  // It may come later, and is used by the next attempt.
  backends_.on_resolved("slow.example", backend_->port(), server_.address());
  EXPECT_EQ(link().phase(), McpLink::Phase::Resting);
}

INSTANTIATE_TEST_SUITE_P(Engines, McpBackendTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::pool
