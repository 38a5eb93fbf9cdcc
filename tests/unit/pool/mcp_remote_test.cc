#include "pool/mcp_remote.h"

#include <optional>

#include "tests/unit/pool/mcp_rig.h"

namespace kvferry::pool {
namespace {

using test::Outcome;

/// The backends of a worker that owns the connections, and of one that does not. Both on one loop:
/// what crosses threads does so through the door alone.
class McpRemoteTest : public McpRig {
 protected:
  McpRemoteTest() : door_(std::make_shared<McpDoor>()) {}
  ~McpRemoteTest() override {
    server_handle_.reset();
    if (near_) {
      near_->shut();
      EXPECT_TRUE(run_until([&] { return near_->is_drained(); }));
    }
    if (owner_) {
      owner_->shut();
      EXPECT_TRUE(run_until([&] { return owner_->is_drained(); }));
    }
  }

  McpContext context(bool is_owner) {
    return McpContext{.loop = loop(),
                      .events = recorder_,
                      .stats = stats_,
                      .names = &recorder_,
                      .memory = &recorder_,
                      .process_door = door_,
                      .is_process_owner = is_owner,
                      .calls = &calls_};
  }
  void make_both() {
    owner_.emplace(context(true));
    near_.emplace(context(false));
    acquire();
  }
  void acquire() {
    server_handle_ = near_->acquire("", std::make_shared<McpBackendOptions>(options_), true);
  }
  Outcome& send(std::string_view request) {
    Outcome& outcome = sink_.make(memcache::Command::Mg);
    server_handle_->forward(*outcome.call, request);
    return outcome;
  }

  std::shared_ptr<McpDoor> door_;
  std::optional<McpBackends> owner_;
  std::optional<McpBackends> near_;
  std::shared_ptr<McpServer> server_handle_;
};

TEST_P(McpRemoteTest, RequestsAndRepliesCross) {
  make_both();
  Outcome& a = send("mg a v\r\n");
  Outcome& b = send("ms b 2\r\nhi\r\n");
  ASSERT_NE(a.call->answerer, nullptr);
  ASSERT_TRUE(wait_received("mg a v\r\nms b 2\r\nhi\r\n"));
  const std::string value = "VA 100000\r\n" + test::pattern(100000) + "\r\n";
  server_.peer().send(value + "HD\r\n");
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_TRUE(a.bytes == value);
  EXPECT_EQ(a.code, memcache::ReplyCode::MetaVa);
  EXPECT_EQ(b.bytes, "HD\r\n");
}

TEST_P(McpRemoteTest, AllWorkersShareOneSetOfConnections) {
  make_both();
  McpBackends third(context(false));
  {
    const auto options = std::make_shared<McpBackendOptions>(options_);
    const auto at_third = third.acquire("", options, true);
    const auto at_owner = owner_->acquire("", options, true);
    EXPECT_EQ(near_->acquire("", options, true), server_handle_);
    rig_.run_turns(10);
    EXPECT_EQ(server_.peers.size(), 1U);
    EXPECT_EQ(stats_->backends.get(), 1U);
    // Connections of workers are others.
    const auto own = near_->acquire("", options, false);
    ASSERT_TRUE(run_until([&] { return server_.peers.size() == 2; }));
  }
  EXPECT_TRUE(run_until([&] { return third.is_drained(); }));
}

TEST_P(McpRemoteTest, TheLastWorkerThatLetsGoClosesTheConnection) {
  make_both();
  ASSERT_TRUE(run_until([&] { return server_.peers.size() == 1; }));
  server_handle_.reset();
  ASSERT_TRUE(run_until([&] { return owner_->is_drained() && server_.peer().is_gone(); }));
}

TEST_P(McpRemoteTest, WhatIsAskedBeforeTheOwnerIsThereWaits) {
  near_.emplace(context(false));
  acquire();
  Outcome& a = send("mg a v\r\n");
  rig_.run_turns(5);
  EXPECT_FALSE(a.is_done);
  owner_.emplace(context(true));
  ASSERT_TRUE(wait_received("mg a v\r\n"));
  server_.peer().send("EN\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
}

TEST_P(McpRemoteTest, FailuresCrossAsFailures) {
  make_both();
  Outcome& a = send("mg a v\r\n");
  Outcome& b = send("mg b v\r\n");
  ASSERT_TRUE(wait_received("mg a v\r\nmg b v\r\n"));
  server_.peer().send("VA 100\r\npart");
  rig_.run_turns(10);
  server_.peer().close();
  ASSERT_TRUE(run_until([&] { return b.is_done; }));
  EXPECT_EQ(a.bytes, kFailureText);
  EXPECT_FALSE(a.is_broken);
  EXPECT_EQ(b.bytes, kFailureText);
}

TEST_P(McpRemoteTest, CallsOfSeveralRequestsAndWideOnesCross) {
  make_both();
  Outcome& row = sink_.make();
  row.call->reply_count = 2;
  server_handle_->forward(*row.call, "get a\r\nget b\r\n");
  Outcome& wide = sink_.make();
  wide.call->is_wide = true;
  server_handle_->forward(*wide.call, "get a b\r\n");
  ASSERT_TRUE(wait_received("get a\r\nget b\r\nget a b\r\n"));
  const std::string rows = "END\r\nVALUE b 0 1\r\n1\r\nEND\r\n";
  const std::string items = "VALUE a 0 1\r\n1\r\nVALUE b 0 1\r\n2\r\nEND\r\n";
  server_.peer().send(rows + items);
  ASSERT_TRUE(run_until([&] { return wide.is_done; }));
  EXPECT_EQ(row.bytes, rows);
  EXPECT_EQ(wide.bytes, items);
}

TEST_P(McpRemoteTest, WhatHasComeOfThemBeforeAFailureCrossesToo) {
  make_both();
  Outcome& row = sink_.make();
  row.call->reply_count = 2;
  server_handle_->forward(*row.call, "get a\r\nget b\r\n");
  ASSERT_TRUE(wait_received("get a\r\nget b\r\n"));
  server_.peer().send("END\r\nVALUE b 0 9\r\npart");
  rig_.run_turns(10);
  server_.peer().close();
  ASSERT_TRUE(run_until([&] { return row.is_done; }));
  EXPECT_EQ(row.bytes, "END\r\nVALUE b 0 9\r\npart");
  EXPECT_TRUE(row.is_broken);
  ASSERT_TRUE(run_until([&] { return server_.peers.size() == 2; }));
  Outcome& next = sink_.make();
  next.call->reply_count = 2;
  server_handle_->forward(*next.call, "get a\r\nget b\r\n");
  ASSERT_TRUE(wait_received("get a\r\nget b\r\n", 1));
  server_.peer(1).send("END\r\n");
  rig_.run_turns(10);
  server_.peer(1).close();
  ASSERT_TRUE(run_until([&] { return next.is_done; }));
  EXPECT_EQ(next.bytes, "END\r\n" + std::string(kFailureText));
  EXPECT_FALSE(next.is_broken);
}

TEST_P(McpRemoteTest, AnEndThatNobodyHoldsAnswersItsCallsFirst) {
  make_both();
  Outcome& a = send("mg a v\r\n");
  ASSERT_TRUE(wait_received("mg a v\r\n"));
  server_handle_.reset();
  rig_.run_turns(5);
  EXPECT_FALSE(near_->is_drained());
  server_.peer().send("HD\r\n");
  ASSERT_TRUE(run_until([&] { return near_->is_drained() && owner_->is_drained(); }));
  EXPECT_EQ(a.bytes, "HD\r\n");
}

TEST_P(McpRemoteTest, EitherSideMayEndFirst) {
  make_both();
  Outcome& a = send("mg a v\r\n");
  ASSERT_TRUE(wait_received("mg a v\r\n"));
  owner_->shut();
  ASSERT_TRUE(run_until([&] { return a.is_done && owner_->is_drained(); }));
  EXPECT_EQ(a.bytes, kFailureText);
  owner_.reset();
  Outcome& b = send("mg b v\r\n");
  rig_.run_turns(5);
  EXPECT_FALSE(b.is_done);  // Nobody is there.
  server_handle_.reset();
  near_->shut();
  EXPECT_EQ(b.bytes, kFailureText);
}

TEST_P(McpRemoteTest, LateRepliesToWhatWasShutReachNobody) {
  make_both();
  Outcome& a = send("mg a v\r\n");
  ASSERT_TRUE(wait_received("mg a v\r\n"));
  server_handle_.reset();
  near_->shut();
  EXPECT_EQ(a.bytes, kFailureText);
  ASSERT_TRUE(run_until([&] { return near_->is_drained(); }));
  near_.reset();
  server_.peer().send("HD\r\n");
  ASSERT_TRUE(run_until([&] { return owner_->is_drained(); }));
}

TEST_P(McpRemoteTest, WithoutAnOwnerEachWorkerHasItsOwn) {
  const auto options = std::make_shared<McpBackendOptions>(options_);
  const auto wide = backends_.acquire("", options, true);
  EXPECT_EQ(backends_.acquire("", options, false), wide);
}

INSTANTIATE_TEST_SUITE_P(Engines, McpRemoteTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::pool
