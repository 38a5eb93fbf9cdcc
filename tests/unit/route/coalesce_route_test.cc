#include "route/coalesce_route.h"

#include <memory>
#include <string>
#include <vector>

#include "tests/unit/route/native_rig.h"

namespace kvferry::route {
namespace {

constexpr std::string_view kReply = "VALUE k 0 1\r\nx\r\nEND\r\n";

class CoalesceRouteTest : public NativeRouteTest {
 protected:
  std::unique_ptr<CoalesceRoute> make() {
    return std::make_unique<CoalesceRoute>(setup({{&a_}}), writes_);
  }

  WriteGenerations writes_;
};

TEST_F(CoalesceRouteTest, IdenticalReadsBecomeOne) {
  const auto route = make();
  std::vector<test::Outcome*> outcomes;
  for (int i = 0; i < 5; ++i) {
    outcomes.push_back(&send(*route, "get k\r\n"));
  }
  EXPECT_EQ(a_.take(), once("get k\r\n"));
  a_.answer(kReply);
  for (const test::Outcome* outcome : outcomes) {
    EXPECT_EQ(outcome->bytes, kReply);
    EXPECT_EQ(outcome->code, memcache::ReplyCode::Value);
  }
  EXPECT_EQ(host_.of(RouteEvent::Joined), 4);
  send(*route, "get k\r\n");
  EXPECT_EQ(a_.take(), once("get k\r\n"));
  a_.answer("END\r\n");
}

TEST_F(CoalesceRouteTest, OtherReadsDoNotJoin) {
  const auto route = make();
  for (const std::string_view request :
       {"get k\r\n", "get l\r\n", "gets k\r\n", "mg k v\r\n", "mg k v O1\r\n", "mg k v t\r\n"}) {
    send(*route, request);
    EXPECT_EQ(a_.take(), once(request));
  }
  for (int i = 0; i < 6; ++i) {
    a_.answer("EN\r\n");
  }
  EXPECT_EQ(host_.of(RouteEvent::Joined), 0);
}

TEST_F(CoalesceRouteTest, QuietAndLoudReadsShareButHideApart) {
  const auto route = make();
  test::Outcome& loud = send(*route, "mg k v\r\n");
  test::Outcome& quiet = send(*route, "mg k v q\r\n");
  EXPECT_EQ(a_.take(), once("mg k v\r\n"));
  a_.answer("EN\r\n");
  EXPECT_EQ(loud.quiet, call::Quiet::No);
  EXPECT_EQ(quiet.quiet, call::Quiet::Miss);
  EXPECT_EQ(quiet.bytes, "EN\r\n");
}

TEST_F(CoalesceRouteTest, AReadAfterAWriteDoesNotJoinOneBeforeIt) {
  const auto route = make();
  test::Outcome& before = send(*route, "get k\r\n");
  send(*route, "set k 0 0 1\r\ny\r\n");
  test::Outcome& during = send(*route, "get k\r\n");
  test::Outcome& with_it = send(*route, "get k\r\n");
  EXPECT_EQ(a_.take().size(), 3U);
  // The read that began during the write may have seen either value.
  const std::string old_reply(kReply);
  a_.answer(old_reply);
  a_.answer("STORED\r\n");
  test::Outcome& after = send(*route, "get k\r\n");
  EXPECT_EQ(a_.take(), once("get k\r\n"));
  a_.answer(old_reply);
  a_.answer("VALUE k 0 1\r\ny\r\nEND\r\n");
  EXPECT_EQ(before.bytes, old_reply);
  EXPECT_EQ(during.bytes, old_reply);
  EXPECT_EQ(with_it.bytes, old_reply);
  EXPECT_EQ(after.bytes, "VALUE k 0 1\r\ny\r\nEND\r\n");
}

TEST_F(CoalesceRouteTest, WritesOfOtherWorkersCountAsWell) {
  const auto one = make();
  const auto two = make();
  send(*one, "get k\r\n");
  send(*two, "md aw== b\r\n");
  send(*one, "get k\r\n");
  EXPECT_EQ(a_.take().size(), 3U);
  a_.answer("END\r\n");
  a_.answer("HD\r\n");
  send(*one, "get k\r\n");
  EXPECT_EQ(a_.take().size(), 1U);
  a_.answer("END\r\n");
  a_.answer("END\r\n");
}

TEST_F(CoalesceRouteTest, AFailureIsThatOfAll) {
  const auto route = make();
  test::Outcome& first = send(*route, "get k\r\n");
  test::Outcome& second = send(*route, "get k\r\n");
  a_.fail();
  EXPECT_EQ(first.bytes, kBackendFailureLine);
  EXPECT_EQ(second.bytes, kBackendFailureLine);
  test::Outcome& third = send(*route, "get k\r\n");
  test::Outcome& fourth = send(*route, "get k\r\n");
  a_.answer("SERVER_ERROR busy\r\n");
  EXPECT_EQ(third.bytes, "SERVER_ERROR busy\r\n");
  EXPECT_EQ(fourth.bytes, "SERVER_ERROR busy\r\n");
}

TEST_F(CoalesceRouteTest, TheWordToRecacheIsForOneOnly) {
  const auto route = make();
  test::Outcome& first = send(*route, "mg k v\r\n");
  test::Outcome& second = send(*route, "mg k v\r\n");
  EXPECT_EQ(a_.take().size(), 1U);
  a_.answer("VA 1 W X\r\nx\r\n");
  EXPECT_EQ(first.bytes, "VA 1 W X\r\nx\r\n");
  EXPECT_EQ(a_.take(), once("mg k v\r\n"));
  a_.answer("VA 1 X Z\r\nx\r\n");
  EXPECT_EQ(second.bytes, "VA 1 X Z\r\nx\r\n");
}

TEST_F(CoalesceRouteTest, SoManyMayJoinAndThenANewOneIsSent) {
  const auto route = make();
  std::vector<test::Outcome*> outcomes;
  for (std::size_t i = 0; i < kJoinedReadsMax + 3; ++i) {
    outcomes.push_back(&send(*route, "get k\r\n"));
    EXPECT_EQ(a_.received.size(), i <= kJoinedReadsMax ? 1U : 2U);
  }
  a_.answer(kReply);
  EXPECT_TRUE(outcomes[kJoinedReadsMax]->is_done);
  EXPECT_FALSE(outcomes[kJoinedReadsMax + 1]->is_done);
  a_.answer("END\r\n");
  EXPECT_EQ(outcomes.back()->bytes, "END\r\n");
}

TEST_F(CoalesceRouteTest, FlightsAreGivenUpAfterABurst) {
  const auto route = make();
  const std::size_t count = kFreeFlightsMax + 10;
  for (std::size_t i = 0; i < count; ++i) {
    send(*route, "get k" + std::to_string(i) + "\r\n");
  }
  EXPECT_EQ(route->flights_for_test(), count);
  for (std::size_t i = 0; i < count; ++i) {
    a_.answer("END\r\n");
  }
  EXPECT_EQ(route->flights_for_test(), kFreeFlightsMax);
}

TEST_F(CoalesceRouteTest, AnswersThatComeAtOnceLeaveNothingToJoin) {
  a_.answer_at_once = "END\r\n";
  const auto route = make();
  EXPECT_EQ(send(*route, "get k\r\n").bytes, "END\r\n");
  EXPECT_EQ(send(*route, "get k\r\n").bytes, "END\r\n");
  EXPECT_EQ(a_.take().size(), 2U);
}

}  // namespace
}  // namespace kvferry::route
