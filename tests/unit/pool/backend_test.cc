#include "pool/backend.h"

#include "tests/unit/pool/pool_rig.h"

namespace kvferry::pool {
namespace {

using test::Outcome;

class BackendTest : public PoolRig {
 protected:
  BackendTest() : fake_(loop()), health_(std::make_shared<BackendHealth>(3)) {
    options_.failure_limit = 3;
  }
  ~BackendTest() override {
    if (backend_) {
      backend_->shut();
    }
  }

  Backend::Setup setup() {
    ServerOptions server;
    server.host = "127.0.0.1";
    server.label = "b";
    return {.options = &options_, .server = server, .address = fake_.address(), .health = health_};
  }
  void make() { backend_ = std::make_unique<Backend>(setup(), loop(), events_, 7); }

  Outcome& get(std::string_view key, std::uint64_t lane = 1) {
    Outcome& outcome = sink_.make(memcache::Command::Get, lane);
    backend_->forward(*outcome.call, "get " + std::string(key) + "\r\n");
    return outcome;
  }
  Outcome& upload(std::string_view key) {
    Outcome& outcome = sink_.make(memcache::Command::Set);
    backend_->start_upload(*outcome.call, "set " + std::string(key) + " 0 0 100000\r\n");
    return outcome;
  }
  std::uint64_t failed(FailureKind kind) {
    return backend_->stats().failures[static_cast<std::size_t>(kind)].get();
  }
  /// Waits until connection `index` has received just `bytes`, and takes them.
  void expect_received(std::string_view bytes, std::size_t index) {
    ASSERT_TRUE(run_until([&] {
      return fake_.peers.size() > index && fake_.peer(index).data.size() >= bytes.size();
    }));
    ASSERT_EQ(fake_.peer(index).take(), bytes);
  }

  PoolOptions options_ = quick_options();
  test::FakeBackend fake_;
  std::shared_ptr<BackendHealth> health_;
  RecordedEvents events_;
  std::unique_ptr<Backend> backend_;
};

TEST_P(BackendTest, SpreadsLanesOverItsLinksAndKeepsEachOnOne) {
  options_.server_connections = 2;
  make();
  get("a", 4);
  get("b", 5);
  get("c", 4);
  ASSERT_TRUE(run_until([&] { return fake_.received().size() == 21; }));
  ASSERT_EQ(fake_.peers.size(), 2U);
  std::vector<std::string> got{fake_.peer(0).data, fake_.peer(1).data};
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, (std::vector<std::string>{"get a\r\nget c\r\n", "get b\r\n"}));
}

TEST_P(BackendTest, AStalledLinkIsSetAsideAndItsLanesStayThere) {
  make();
  Outcome& slow = get("slow", 1);
  slow.pauses_left = 1;
  expect_received("get slow\r\n", 0);
  fake_.peer(0).send("VALUE slow 0 10\r\n01234");
  ASSERT_TRUE(run_until([&] { return slow.is_paused; }));
  Outcome& behind = get("behind", 2);
  ASSERT_TRUE(run_until([&] { return backend_->stats().stalls.get() == 1; }));
  Outcome& same_lane = get("same", 2);  // Must not overtake `behind`.
  Outcome& fresh = get("fresh", 3);
  expect_received("get fresh\r\n", 1);
  fake_.peer(1).send("END\r\n");
  ASSERT_TRUE(run_until([&] { return fresh.is_done; }));
  EXPECT_FALSE(behind.is_done || same_lane.is_done);
  sink_.resume(slow);
  expect_received("get behind\r\nget same\r\n", 0);
  fake_.peer(0).send("56789\r\nEND\r\nEND\r\nEND\r\n");
  ASSERT_TRUE(run_until([&] { return same_lane.is_done; }));
  EXPECT_LT(behind.order, same_lane.order);
  // The old connection ends, and the lane moves to the fresh one.
  ASSERT_TRUE(run_until([&] { return fake_.peer(0).is_gone(); }));
  Outcome& after = get("after", 2);
  expect_received("get after\r\n", 1);
  fake_.peer(1).send("END\r\n");
  ASSERT_TRUE(run_until([&] { return after.is_done; }));
  EXPECT_TRUE(events_.failures.empty());
}

TEST_P(BackendTest, FailuresInARowTakeItDownOnce) {
  fake_.stop();
  make();
  get("a");
  ASSERT_TRUE(run_until([&] { return health_->is_down(); }));
  ASSERT_TRUE(run_until([&] { return events_.failures.size() >= 5; }));
  EXPECT_EQ(events_.downs, std::vector<std::string>{"b"});
}

TEST_P(BackendTest, UnderKeepAReplyMakesItWellAgain) {
  fake_.stop();
  make();
  get("a");
  ASSERT_TRUE(run_until([&] { return health_->is_down(); }));
  fake_.restart();
  fake_.on_input = [](test::Peer& peer) {
    peer.take();
    peer.send("END\r\n");
  };
  // Connections that were made before the restart do not count.
  Outcome* outcome = nullptr;
  ASSERT_TRUE(run_until([&] {
    if (outcome == nullptr || outcome->is_done) {
      outcome = &get("b");
    }
    return !health_->is_down();
  }));
  ASSERT_TRUE(run_until([&] { return outcome->is_done; }));
}

TEST_P(BackendTest, UnderRehashOnlyAProbeBringsItBack) {
  options_.on_down = OnDown::Rehash;
  fake_.stop();
  make();
  get("a");
  ASSERT_TRUE(run_until([&] { return health_->is_down(); }));
  fake_.restart();
  const std::size_t failures = events_.failures.size();
  rig_.run_for(base::Millis(100));
  EXPECT_EQ(events_.failures.size(), failures) << "it was tried although it is ejected";
  EXPECT_TRUE(fake_.peers.empty());
  EXPECT_TRUE(get("b").is_failure());
  health_->on_probed();
  backend_->configure(setup());  // As the worker does when the new snapshot comes.
  Outcome& c = get("c");
  EXPECT_FALSE(c.is_done) << "the back-off must be over";
  expect_received("get c\r\n", 0);
  fake_.peer(0).send("END\r\n");
  ASSERT_TRUE(run_until([&] { return c.is_done; }));
}

TEST_P(BackendTest, NewLimitsOfTheBackOffReachLinksThatWait) {
  options_.failure_limit = 1;
  options_.backoff_min = options_.backoff_max = base::Millis(3'600'000);
  health_ = std::make_shared<BackendHealth>(options_.failure_limit);
  fake_.stop();
  make();
  get("a");
  upload("u");
  ASSERT_TRUE(run_until([&] { return events_.failures.size() == 2 && health_->is_down(); }));
  options_ = quick_options();
  backend_->configure(setup());
  ASSERT_TRUE(run_until([&] { return events_.failures.size() >= 6; }));
}

TEST_P(BackendTest, UploadsHaveConnectionsOfTheirOwn) {
  make();
  Outcome& up = upload("u");
  Outcome& plain = get("a");
  ASSERT_TRUE(run_until([&] { return fake_.received().size() == 25; }));
  ASSERT_EQ(fake_.peers.size(), 2U);
  EXPECT_FALSE(up.call->body_waits);
  up.call->body_sink->on_body_lost(*up.call);
  EXPECT_TRUE(up.is_failure());
  EXPECT_FALSE(plain.is_done);
}

TEST_P(BackendTest, MoreUploadsThanLinksWaitForOneToBeFree) {
  make();
  std::vector<Outcome*> running;
  for (std::size_t i = 0; i < kUploadLinksMax; ++i) {
    running.push_back(&upload("u" + std::to_string(i)));
    EXPECT_FALSE(running.back()->call->body_waits);
  }
  Outcome& ninth = upload("late1");
  Outcome& tenth = upload("late2");
  EXPECT_TRUE(ninth.call->body_waits);
  ASSERT_TRUE(run_until([&] { return fake_.received().size() == 8 * 19; }));
  // An early answer ends the connection, but frees the place.
  fake_.peer(0).send("SERVER_ERROR out of memory storing object\r\n");
  ASSERT_TRUE(run_until([&] { return ninth.body_resumes == 1; }));
  EXPECT_FALSE(ninth.call->body_waits);
  EXPECT_TRUE(tenth.call->body_waits) << "first come, first served";
  expect_received("set late1 0 0 100000\r\n", 8);
  ninth.call->body_sink->on_body(*ninth.call, std::string(100'002, 'x'), true);
  ASSERT_TRUE(run_until([&] { return fake_.peer(8).data.size() == 100'002; }));
  fake_.peer(8).send("STORED\r\n");
  ASSERT_TRUE(run_until([&] { return tenth.body_resumes == 1; }));
  expect_received(std::string(100'002, 'x') + "set late2 0 0 100000\r\n", 8);
}

TEST_P(BackendTest, AnUploadThatWaitsTooLongIsRefused) {
  options_.timeout = base::Millis(50);
  make();
  for (std::size_t i = 0; i < kUploadLinksMax; ++i) {
    upload("u");
  }
  Outcome& ninth = upload("late");
  ASSERT_TRUE(run_until([&] { return ninth.is_done; }));
  EXPECT_EQ(ninth.bytes, "SERVER_ERROR kvferry: backend queue is full (pool p, backend b)\r\n");
  EXPECT_EQ(failed(FailureKind::Overload), 1U);
}

TEST_P(BackendTest, AnUploadMayBeLostWhileItWaits) {
  make();
  std::vector<Outcome*> running;
  for (std::size_t i = 0; i < kUploadLinksMax; ++i) {
    running.push_back(&upload("u"));
  }
  Outcome& ninth = upload("nine");
  Outcome& tenth = upload("ten");
  ninth.call->body_sink->on_body_lost(*ninth.call);
  EXPECT_TRUE(ninth.is_failure());
  running[0]->call->body_sink->on_body_lost(*running[0]->call);
  ASSERT_TRUE(run_until([&] { return tenth.body_resumes == 1; }));
}

TEST_P(BackendTest, WaitingUploadsAreRefusedWhenTheBackendGoesAway) {
  make();
  std::vector<Outcome*> running;
  for (std::size_t i = 0; i < kUploadLinksMax; ++i) {
    running.push_back(&upload("u"));
  }
  Outcome& ninth = upload("nine");
  ASSERT_TRUE(run_until([&] { return fake_.received().size() == 8 * 18; }));
  fake_.stop();
  ASSERT_TRUE(run_until([&] { return ninth.is_done; }));
  EXPECT_TRUE(ninth.is_failure());
  for (const Outcome* outcome : running) {
    EXPECT_TRUE(outcome->is_failure());
  }
}

TEST_P(BackendTest, AnotherAddressTakesNewCallsWhileOldOnesEnd) {
  make();
  Outcome& a = get("a");
  expect_received("get a\r\n", 0);
  test::FakeBackend other(loop());
  Backend::Setup moved = setup();
  moved.address = other.address();
  backend_->configure(std::move(moved));
  Outcome& b = get("b", 2);
  ASSERT_TRUE(run_until([&] { return other.received() == "get b\r\n"; }));
  fake_.peer(0).send("END\r\n");
  other.peer(0).send("END\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done && b.is_done; }));
  EXPECT_EQ(a.bytes, "END\r\n");
  ASSERT_TRUE(run_until([&] { return fake_.peer(0).is_gone(); }));
  backend_->shut();
  backend_.reset();
}

TEST_P(BackendTest, TheNumberOfLinksFollowsTheOptions) {
  make();
  options_.server_connections = 3;
  backend_->configure(setup());
  backend_->preconnect();
  ASSERT_TRUE(run_until([&] { return backend_->stats().links_up.get() == 3; }));
  options_.server_connections = 1;
  backend_->configure(setup());
  EXPECT_EQ(backend_->stats().links_up.get(), 1U);
}

TEST_P(BackendTest, RetiredDrainsThenHoldsNothing) {
  make();
  Outcome& a = get("a");
  expect_received("get a\r\n", 0);
  backend_->retire();
  EXPECT_FALSE(backend_->is_drained());
  fake_.peer(0).send("END\r\n");
  ASSERT_TRUE(run_until([&] { return a.is_done; }));
  EXPECT_TRUE(backend_->is_drained());
  EXPECT_TRUE(get("b").is_failure());
}

TEST_P(BackendTest, ShutAnswersEverything) {
  make();
  Outcome& a = get("a");
  for (std::size_t i = 0; i <= kUploadLinksMax; ++i) {
    upload("u");
  }
  backend_->shut();
  EXPECT_TRUE(a.is_failure());
  EXPECT_TRUE(backend_->is_drained());
  EXPECT_EQ(calls_.live(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Engines, BackendTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::pool
