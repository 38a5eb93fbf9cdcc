#include "pool/mcp_backends.h"

#include "tests/unit/pool/mcp_rig.h"

namespace kvferry::pool {
namespace {

using test::Outcome;

class McpBackendsTest : public McpRig {
 protected:
  std::shared_ptr<McpServer> acquire(const std::string& prefix = "") {
    return backends_.acquire(prefix, std::make_shared<McpBackendOptions>(options_));
  }
};

TEST_P(McpBackendsTest, EqualOptionsShareOneBackend) {
  const auto one = acquire();
  EXPECT_EQ(acquire(), one);
  EXPECT_NE(acquire("other"), one);
  EXPECT_EQ(acquire(), one);
}

TEST_P(McpBackendsTest, AnyDifferenceMakesANewBackendAndPoolsKeepTheOldOne) {
  const std::vector<void (*)(McpBackendOptions&)> kChanges = {
      [](McpBackendOptions& options) { options.host = "127.0.0.2"; },
      [](McpBackendOptions& options) { options.port = "1"; },
      [](McpBackendOptions& options) { options.connections = 2; },
      [](McpBackendOptions& options) { options.is_down = true; },
      [](McpBackendOptions& options) { options.read_timeout = base::Seconds(9); },
      [](McpBackendOptions& options) { options.logging.tag = "t"; },
      [](McpBackendOptions& options) { options.tcp_keepalive = true; },
  };
  const McpBackendOptions before = options_;
  for (const auto change : kChanges) {
    options_ = before;
    const auto old = acquire();
    change(options_);
    const auto changed = acquire();
    EXPECT_NE(changed, old);
    EXPECT_EQ(acquire(), changed);  // It took the place of the old one.
    options_ = before;
    EXPECT_NE(acquire(), old);
  }
}

TEST_P(McpBackendsTest, AReloadWithoutChangeKeepsTheConnection) {
  auto old = acquire();
  ASSERT_TRUE(run_until([&] { return server_.peers.size() == 1; }));
  const auto kept = acquire();
  old.reset();
  rig_.run_turns(5);
  EXPECT_FALSE(server_.peer().is_gone());
  EXPECT_EQ(server_.peers.size(), 1U);
  EXPECT_EQ(stats_->backends.get(), 1U);
}

TEST_P(McpBackendsTest, ABackendThatNobodyHoldsCloses) {
  auto held = acquire();
  ASSERT_TRUE(run_until([&] { return server_.peers.size() == 1; }));
  held.reset();
  ASSERT_TRUE(run_until([&] { return server_.peer().is_gone() && backends_.is_drained(); }));
  EXPECT_EQ(stats_->backends.get(), 0U);
  EXPECT_TRUE(recorder_.errors.empty());
}

TEST_P(McpBackendsTest, ABackendThatNobodyHoldsAnswersItsCallsFirst) {
  make_ready();
  Outcome& a = ask("a");
  ASSERT_TRUE(wait_received("mg a v\r\n"));
  backend_.reset();
  rig_.run_turns(5);
  EXPECT_FALSE(server_.peer().is_gone());
  EXPECT_FALSE(backends_.is_drained());
  server_.peer().send("HD\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done && backends_.is_drained(); }));
  EXPECT_EQ(a.bytes, "HD\r\n");
  ASSERT_TRUE(run_until([&] { return server_.peer().is_gone(); }));
}

TEST_P(McpBackendsTest, ABackendThatNobodyHoldsDoesNotConnectAgain) {
  make_ready();
  Outcome& a = ask("a");
  ASSERT_TRUE(wait_received("mg a v\r\n"));
  backend_.reset();
  server_.peer().close();
  ASSERT_TRUE(run_until([&] { return backends_.is_drained(); }));
  EXPECT_EQ(a.bytes, kFailureText);
  rig_.run_turns(5);
  EXPECT_EQ(server_.peers.size(), 1U);
}

TEST_P(McpBackendsTest, ShutFailsWhatIsOutstanding) {
  make_ready();
  Outcome& a = ask("a");
  backend_.reset();
  backends_.shut();
  EXPECT_EQ(a.bytes, kFailureText);
}

/// Drops the last pool in the middle of a reply, as a script's garbage collector may.
class DropInReply final : public call::ReplySink {
 public:
  call::Flow on_reply(call::Call& call, const call::ReplyPart& /*part*/) override {
    held->reset();
    calls->release(call);
    return call::Flow::Continue;
  }
  std::shared_ptr<McpBackend>* held = nullptr;
  call::CallPool* calls = nullptr;
};

TEST_P(McpBackendsTest, ABackendMayBeDroppedFromWithinItsOwnReply) {
  for (const std::string_view reply : {"HD\r\n", "ERROR\r\n", "HD\r\ntrailing", "no answer\r\n"}) {
    make_ready();
    DropInReply sink;
    sink.held = &backend_;
    sink.calls = &calls_;
    call::Call& call = calls_.acquire();
    call.sink = &sink;
    backend_->forward(call, "mg a v\r\n");
    ASSERT_TRUE(wait_received("mg a v\r\n", server_.peers.size() - 1));
    server_.peers.back()->send(reply);
    ASSERT_TRUE(run_until([&] { return backends_.is_drained(); })) << reply;
  }
}

TEST_P(McpBackendsTest, EqualNamesForLogsAreOne) {
  const auto one = acquire("a");
  const auto two = acquire("b");
  test::Outcome& first = sink_.make();
  test::Outcome& second = sink_.make();
  one->forward(*first.call, "get k\r\n");
  two->forward(*second.call, "get k\r\n");
  EXPECT_EQ(first.call->answerer, second.call->answerer);
  server_.stop();
  ASSERT_TRUE(run_until([&] { return first.is_done && second.is_done; }));
}

INSTANTIATE_TEST_SUITE_P(Engines, McpBackendsTest, testing::ValuesIn(test::kEngines),
                         test::name_of);

}  // namespace
}  // namespace kvferry::pool
