#include "route/failover_routes.h"
#include "route/passing_routes.h"
#include "route/replicating_routes.h"
#include "route/waiting_route.h"
#include "tests/unit/route/native_rig.h"

namespace kvferry::route {
namespace {

using FailoverRouteTest = NativeRouteTest;
using ReplicatingRoutesTest = NativeRouteTest;
using WaitingRouteTest = NativeRouteTest;
using ZoneFailoverRouteTest = NativeRouteTest;

constexpr std::string_view kFailure = "SERVER_ERROR backend failure\r\n";

TEST_F(FailoverRouteTest, StopsAtTheFirstAnswerThatIsNoError) {
  FailoverRoute route(all(), {});
  test::Outcome& outcome = send(route, "mg k v\r\n");
  a_.fail();
  EXPECT_EQ(b_.take(), once("mg k v\r\n"));
  b_.answer("EN\r\n");
  EXPECT_EQ(outcome.bytes, "EN\r\n");
  EXPECT_TRUE(c_.received.empty());
  EXPECT_EQ(host_.counted, 1);
}

TEST_F(FailoverRouteTest, GoesOnAfterMissesWhenTold) {
  FailoverRoute route(all(), {.goes_on_after_miss = true});
  test::Outcome& hit = send(route, "mg k v\r\n");
  a_.answer("EN\r\n");
  b_.answer("VA 1\r\nx\r\n");
  EXPECT_EQ(hit.bytes, "VA 1\r\nx\r\n");
  test::Outcome& miss = send(route, "mg k v\r\n");
  a_.answer("EN\r\n");
  b_.answer("EN\r\n");
  c_.answer("SERVER_ERROR z\r\n");
  EXPECT_EQ(miss.bytes, "EN\r\n");
}

TEST_F(FailoverRouteTest, GivesTheLastAnswerWhenNoneIsGood) {
  FailoverRoute route(all(), {.tries_max = 2});
  test::Outcome& error = send(route, "mg k v\r\n");
  a_.fail();
  b_.answer("SERVER_ERROR y\r\n");
  EXPECT_EQ(error.bytes, "SERVER_ERROR y\r\n");
  EXPECT_TRUE(c_.received.empty());
  test::Outcome& failure = send(route, "mg k v\r\n");
  a_.answer("SERVER_ERROR x\r\n");
  b_.fail();
  EXPECT_EQ(failure.bytes, kFailure);
  EXPECT_EQ(host_.counted, 2);
}

TEST_F(FailoverRouteTest, WaitsForEachOnlySoLong) {
  FailoverRoute route(setup({{&a_}, {&b_}}), {.wait = base::Micros(2000)});
  test::Outcome& outcome = send(route, "mg k v\r\n");
  ASSERT_TRUE(rig_.run_until([&] { return !b_.received.empty(); }));
  b_.answer("HD\r\n");
  EXPECT_EQ(outcome.bytes, "HD\r\n");
  EXPECT_EQ(host_.lingering, 1);
  EXPECT_EQ(host_.held, 1);
  a_.answer("HD\r\n");
  EXPECT_EQ(host_.lingering, 0);
}

TEST_F(FailoverRouteTest, TakesALateGoodAnswerRatherThanNone) {
  FailoverRoute route(setup({{&a_}, {&b_}}), {.wait = base::Micros(2000)});
  test::Outcome& outcome = send(route, "mg k v\r\n");
  ASSERT_TRUE(rig_.run_until([&] { return !b_.received.empty(); }));
  a_.answer("VA 1\r\nx\r\n");
  b_.fail();
  EXPECT_EQ(outcome.bytes, "VA 1\r\nx\r\n");
}

TEST_F(FailoverRouteTest, FailsWhenNobodyAnswersInTime) {
  FailoverRoute route(setup({{&a_}}), {.wait = base::Micros(1000)});
  test::Outcome& outcome = send(route, "mg k v\r\n");
  ASSERT_TRUE(rig_.run_until([&] { return outcome.is_done; }));
  EXPECT_EQ(outcome.bytes, kFailure);
  a_.answer("HD\r\n");
}

TEST_F(FailoverRouteTest, ShufflesAllButTheFixedChildren) {
  a_.answer_at_once = b_.answer_at_once = c_.answer_at_once = "HD\r\n";
  FailoverRoute route(all(), {.shuffles = true, .seed = 3});
  FailoverRoute zoned(all(), {.shuffles = true, .fixed_children = 1, .seed = 3});
  for (int i = 0; i < 300; ++i) {
    send(route, "mg k\r\n");
  }
  EXPECT_GT(a_.take().size(), 60U);
  EXPECT_GT(b_.take().size(), 60U);
  EXPECT_GT(c_.take().size(), 60U);
  a_.answer_at_once = "SERVER_ERROR x\r\n";
  for (int i = 0; i < 100; ++i) {
    send(zoned, "mg k\r\n");
  }
  EXPECT_EQ(a_.take().size(), 100U);
  EXPECT_GT(b_.take().size(), 20U);
  EXPECT_GT(c_.take().size(), 20U);
}

TEST_F(FailoverRouteTest, AsksInTheSameTurnWhenAnswersComeAtOnce) {
  a_.answer_at_once = "SERVER_ERROR x\r\n";
  b_.answer_at_once = "HD\r\n";
  FailoverRoute route(all(), {});
  EXPECT_EQ(send(route, "mg k\r\n").bytes, "HD\r\n");
}

TEST_F(ZoneFailoverRouteTest, AsksTheOthersAtOnceAndTakesTheFirstHit) {
  ZoneFailoverRoute route(all(), true);
  test::Outcome& outcome = send(route, "mg k v\r\n");
  EXPECT_TRUE(b_.received.empty());
  a_.answer("EN\r\n");
  EXPECT_EQ(b_.received.size(), 1U);
  EXPECT_EQ(c_.received.size(), 1U);
  c_.answer("EN O3\r\n");
  EXPECT_FALSE(outcome.is_done);
  b_.answer("VA 1\r\nx\r\n");
  EXPECT_EQ(outcome.bytes, "VA 1\r\nx\r\n");
  EXPECT_EQ(host_.counted, 1);
}

TEST_F(ZoneFailoverRouteTest, TakesTheMissNearbyWhenTheOthersFail) {
  ZoneFailoverRoute route(all(), true);
  test::Outcome& outcome = send(route, "mg k v\r\n");
  a_.answer("EN O1\r\n");
  b_.fail();
  EXPECT_FALSE(outcome.is_done);
  c_.fail();
  EXPECT_EQ(outcome.bytes, "EN O1\r\n");
}

TEST_F(ZoneFailoverRouteTest, AMissNearbyIsEnoughWithoutMiss) {
  ZoneFailoverRoute route(all(), false);
  test::Outcome& outcome = send(route, "mg k v\r\n");
  a_.answer("EN\r\n");
  EXPECT_EQ(outcome.bytes, "EN\r\n");
  EXPECT_EQ(host_.counted, 0);
}

TEST_F(ReplicatingRoutesTest, AllFastestTakesTheFirstThatIsNoError) {
  AllFastestRoute route(all(), false, std::nullopt);
  test::Outcome& outcome = send(route, "mg k v\r\n");
  b_.answer("SERVER_ERROR x\r\n");
  EXPECT_FALSE(outcome.is_done);
  c_.answer("EN\r\n");
  EXPECT_EQ(outcome.bytes, "EN\r\n");
  EXPECT_EQ(host_.lingering, 1);
  a_.answer("VA 1\r\nx\r\n");
  EXPECT_EQ(host_.lingering, 0);
}

TEST_F(ReplicatingRoutesTest, AllFastestWaitsForAHitWhenTold) {
  AllFastestRoute route(all(), true, std::nullopt);
  test::Outcome& hit = send(route, "mg k v\r\n");
  a_.answer("EN\r\n");
  EXPECT_FALSE(hit.is_done);
  b_.answer("VA 1\r\nx\r\n");
  EXPECT_EQ(hit.bytes, "VA 1\r\nx\r\n");
  c_.answer("EN\r\n");
  test::Outcome& miss = send(route, "mg k v\r\n");
  a_.answer("EN\r\n");
  b_.fail();
  c_.fail();
  EXPECT_EQ(miss.bytes, "EN\r\n");
}

TEST_F(ReplicatingRoutesTest, AllFastestGivesUpAfterItsWait) {
  AllFastestRoute route(all(), true, base::Micros(1000));
  test::Outcome& outcome = send(route, "mg k v\r\n");
  a_.answer("EN\r\n");
  ASSERT_TRUE(rig_.run_until([&] { return outcome.is_done; }));
  EXPECT_EQ(outcome.bytes, "EN\r\n");
  b_.fail();
  c_.fail();
}

TEST_F(ReplicatingRoutesTest, AllSyncPutsTheFirstErrorBeforeTheLastAnswer) {
  AllSyncRoute route(all());
  test::Outcome& good = send(route, "ms k 1\r\nx\r\n");
  c_.answer("HD O3\r\n");
  a_.answer("HD O1\r\n");
  EXPECT_FALSE(good.is_done);
  b_.answer("HD O2\r\n");
  EXPECT_EQ(good.bytes, "HD O3\r\n");
  test::Outcome& bad = send(route, "ms k 1\r\nx\r\n");
  a_.answer("HD\r\n");
  c_.fail();
  b_.answer("SERVER_ERROR second\r\n");
  EXPECT_EQ(bad.bytes, "SERVER_ERROR second\r\n");
}

TEST_F(ReplicatingRoutesTest, AllAsyncWaitsForNobody) {
  AllAsyncRoute route(all());
  EXPECT_EQ(send(route, "ms k 1\r\nx\r\n").bytes, "NS\r\n");
  EXPECT_EQ(a_.take(), once("ms k 1\r\nx\r\n"));
  EXPECT_EQ(host_.lingering, 1);
  a_.answer("HD\r\n");
  b_.fail();
  c_.answer("HD\r\n");
  EXPECT_EQ(host_.lingering, 0);
  rig_.run_turns(2);
}

TEST_F(ReplicatingRoutesTest, SplitTakesTheFirstChildsAnswer) {
  SplitRoute route(setup({{&a_}, {&b_}}));
  test::Outcome& outcome = send(route, "mg k v\r\n");
  b_.answer("VA 1\r\nx\r\n");
  EXPECT_FALSE(outcome.is_done);
  a_.answer("EN\r\n");
  EXPECT_EQ(outcome.bytes, "EN\r\n");
}

TEST_F(WaitingRouteTest, ServesManyRequestsAtOnceInAnyOrder) {
  FailoverRoute route(all(), {});
  std::vector<test::Outcome*> outcomes;
  for (int i = 0; i < 20; ++i) {
    outcomes.push_back(&send(route, "mg k" + std::to_string(i) + "\r\n"));
  }
  for (int i = 0; i < 20; ++i) {
    a_.fail();
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(b_.received[static_cast<std::size_t>(i)], "mg k" + std::to_string(i) + "\r\n");
    b_.answer("HD O" + std::to_string(i) + "\r\n");
    EXPECT_EQ(outcomes[static_cast<std::size_t>(i)]->bytes, "HD O" + std::to_string(i) + "\r\n");
  }
  EXPECT_EQ(route.free_runs_for_test(), 20U);
}

TEST_F(WaitingRouteTest, KeepsOnlySoManyFreeRuns) {
  SplitRoute route(setup({{&a_}}));
  constexpr int kMany = static_cast<int>(kFreeRunsMax) + 50;
  for (int i = 0; i < kMany; ++i) {
    send(route, "mg k\r\n");
  }
  for (int i = 0; i < kMany; ++i) {
    a_.answer("HD\r\n");
  }
  rig_.run_turns(2);
  EXPECT_EQ(route.free_runs_for_test(), kFreeRunsMax);
}

TEST_F(WaitingRouteTest, TellsWhatTheClientDoesNotWantToSee) {
  AllSyncRoute route(setup({{&a_}, {&b_}}));
  test::Outcome& outcome = send(route, "set k 0 0 1 noreply\r\nx\r\n");
  EXPECT_EQ(a_.take(), once("set k 0 0 1 noreplY\r\nx\r\n"));
  call::Call* const call = outcome.call;
  a_.answer("STORED\r\n");
  EXPECT_EQ(call->quiet, call::Quiet::No);  // Until the answer.
  b_.answer("STORED\r\n");
  EXPECT_EQ(outcome.bytes, "STORED\r\n");
}

TEST_F(WaitingRouteTest, RoutesMayBeChildrenOfRoutes) {
  AllSyncRoute inner(setup({{&b_}, {&c_}}));
  FailoverRoute outer(setup({{&a_}, {&inner, true}}), {.goes_on_after_miss = true});
  test::Outcome& outcome = send(outer, "mg k v q\r\n");
  EXPECT_EQ(a_.take(), once("mg k v  \r\n"));
  a_.answer("EN\r\n");
  EXPECT_EQ(b_.take(), once("mg k v  \r\n"));
  b_.answer("VA 1\r\n2\r\n");
  c_.answer("VA 1\r\n3\r\n");
  EXPECT_EQ(outcome.bytes, "VA 1\r\n3\r\n");
}

TEST_F(WaitingRouteTest, AChildMayOutlastItsParentsRequest) {
  AllAsyncRoute inner(setup({{&b_}}));
  SplitRoute outer(setup({{&a_}, {&inner, true}}));
  test::Outcome& outcome = send(outer, "ms k 1\r\nx\r\n");
  a_.answer("HD\r\n");
  EXPECT_EQ(outcome.bytes, "HD\r\n");
  EXPECT_EQ(outer.free_runs_for_test(), 1U);
  EXPECT_EQ(inner.free_runs_for_test(), 0U);
  b_.answer("HD\r\n");
  EXPECT_EQ(inner.free_runs_for_test(), 1U);
}

TEST_F(WaitingRouteTest, ARouteThatEditsGivesOthersTheUneditedRequest) {
  a_.answer_at_once = b_.answer_at_once = "HD\r\n";
  TtlRoute ttl(setup({{&a_}}), "5");
  AllSyncRoute both(setup({{&ttl, true}, {&b_}}));
  EXPECT_EQ(send(both, "ms k 1 T60\r\nx\r\n").bytes, "HD\r\n");
  EXPECT_EQ(a_.take(), once("ms k 1 T5\r\nx\r\n"));
  EXPECT_EQ(b_.take(), once("ms k 1 T60\r\nx\r\n"));
}

TEST_F(WaitingRouteTest, AnswersOfAScriptArePassedOnAsTheyAre) {
  class Script final : public call::Target {
   public:
    void send(call::Call& call, const memcache::Request& /*request*/) override {
      call.sink->on_reply(call, call::ReplyPart{.bytes = "whatever\r\n",
                                                .code = memcache::ReplyCode::Other,
                                                .is_first = true,
                                                .is_last = true,
                                                .origin = call::ReplyOrigin::Script});
    }
  } script;
  SplitRoute route(setup({{&script, true}}));
  EXPECT_EQ(send(route, "mg k\r\n").bytes, "whatever\r\n");
}

}  // namespace
}  // namespace kvferry::route
