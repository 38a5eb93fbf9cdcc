#include "route/passing_routes.h"

#include "tests/unit/route/native_rig.h"

namespace kvferry::route {
namespace {

using Bucket = RateLimitRoute::Bucket;

class PassingRoutesTest : public NativeRouteTest {
 protected:
  /// What `call` was told about the client's wish not to see the answer.
  call::Quiet quiet_of(call::Target& route, std::string_view bytes, std::string_view answer) {
    test::Outcome& outcome = send(route, bytes);
    const call::Quiet quiet = outcome.call->quiet;
    a_.answer(answer);
    EXPECT_EQ(outcome.bytes, answer);
    return quiet;
  }
};

TEST_F(PassingRoutesTest, DirectForwardsTheRequestAsItIs) {
  DirectRoute route(setup({{&a_}}));
  test::Outcome& outcome = send(route, "set k 0 0 1\r\nx\r\n");
  EXPECT_EQ(a_.take(), once("set k 0 0 1\r\nx\r\n"));
  EXPECT_FALSE(outcome.is_done);
  a_.answer("STORED\r\n");
  EXPECT_EQ(outcome.bytes, "STORED\r\n");
}

TEST_F(PassingRoutesTest, DirectMakesBackendsAnswerQuietRequests) {
  DirectRoute route(setup({{&a_}}));
  EXPECT_EQ(quiet_of(route, "mg k v q\r\n", "EN\r\n"), call::Quiet::Miss);
  EXPECT_EQ(quiet_of(route, "ms k 1 q\r\nx\r\n", "HD\r\n"), call::Quiet::Done);
  EXPECT_EQ(quiet_of(route, "set k 0 0 1 noreply\r\nx\r\n", "STORED\r\n"), call::Quiet::Good);
  EXPECT_EQ(quiet_of(route, "mg k v\r\n", "EN\r\n"), call::Quiet::No);
  EXPECT_EQ(a_.take(), (std::vector<std::string>{"mg k v  \r\n", "ms k 1  \r\nx\r\n",
                                                 "set k 0 0 1 noreplY\r\nx\r\n", "mg k v\r\n"}));
}

TEST_F(PassingRoutesTest, AQuietRequestReachesARouteUnchanged) {
  DirectRoute inner(setup({{&a_}}));
  DirectRoute outer(setup({{&inner, true}}));
  EXPECT_EQ(quiet_of(outer, "mg k v q\r\n", "EN\r\n"), call::Quiet::Miss);
  EXPECT_EQ(a_.take(), once("mg k v  \r\n"));
}

TEST_F(PassingRoutesTest, NullAnswersAsIfThereWereNoItems) {
  NullRoute route(setup({}));
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"get k\r\n", "END\r\n"},
      {"gat 1 k\r\n", "END\r\n"},
      {"mg k v\r\n", "EN\r\n"},
      {"ms k 1\r\nx\r\n", "NS\r\n"},
      {"md k\r\n", "NF\r\n"},
      {"ma k\r\n", "NF\r\n"},
      {"set k 0 0 1\r\nx\r\n", "NOT_STORED\r\n"},
      {"incr k 1\r\n", "NOT_FOUND\r\n"},
      {"touch k 1\r\n", "NOT_FOUND\r\n"},
      {"me k\r\n", "SERVER_ERROR backend failure\r\n"},
  };
  for (const auto& [request, answer] : cases) {
    EXPECT_EQ(send(route, request).bytes, answer) << request;
  }
}

TEST_F(PassingRoutesTest, RandomUsesAllChildren) {
  a_.answer_at_once = b_.answer_at_once = c_.answer_at_once = "HD\r\n";
  RandomRoute route(all(), 7);
  for (int i = 0; i < 300; ++i) {
    EXPECT_TRUE(send(route, "mg k\r\n").is_done);
  }
  EXPECT_GT(a_.received.size(), 60U);
  EXPECT_GT(b_.received.size(), 60U);
  EXPECT_GT(c_.received.size(), 60U);
  EXPECT_EQ(a_.received.size() + b_.received.size() + c_.received.size(), 300U);
}

TEST_F(PassingRoutesTest, ALimitRefusesWhatIsAboveIt) {
  a_.answer_at_once = "HD\r\n";
  const TokenBucketOptions options{.limit = 3, .fill_rate = 1, .tick = base::Millis(60000)};
  RateLimitRoute route(setup({{&a_}}), Bucket(TokenBucket(options, rig_.loop->now())), false);
  EXPECT_EQ(send(route, "mg k\r\n").bytes, "HD\r\n");
  EXPECT_EQ(send(route, "mg k\r\n").bytes, "HD\r\n");
  EXPECT_EQ(send(route, "mg k\r\n").bytes, "EN\r\n");
  EXPECT_EQ(send(route, "get k\r\n").bytes, "END\r\n");
  EXPECT_EQ(a_.received.size(), 2U);
  EXPECT_EQ(host_.counted, 2);
}

TEST_F(PassingRoutesTest, AnInvertedLimitOfAllWorkersForwardsWhatIsAboveIt) {
  a_.answer_at_once = "HD\r\n";
  const TokenBucketOptions options{.limit = 2, .fill_rate = 1, .tick = base::Millis(60000)};
  const auto shared = std::make_shared<SharedTokenBucket>(options, rig_.loop->now());
  RateLimitRoute route(setup({{&a_}}), Bucket(shared), true);
  EXPECT_EQ(send(route, "mg k\r\n").bytes, "EN\r\n");
  EXPECT_EQ(send(route, "mg k\r\n").bytes, "HD\r\n");
  EXPECT_EQ(host_.counted, 1);
}

TEST_F(PassingRoutesTest, TtlRewritesWhatStores) {
  a_.answer_at_once = "HD\r\n";
  TtlRoute route(setup({{&a_}}), "30");
  send(route, "ms k 1 T500 c\r\nx\r\n");
  send(route, "ms k 1 c\r\nx\r\n");
  send(route, "set k 5 0 1\r\nx\r\n");
  send(route, "add k 5 900 1 noreply\r\nx\r\n");
  send(route, "cas k 5 900 1 77\r\nx\r\n");
  EXPECT_EQ(a_.take(),
            (std::vector<std::string>{"ms k 1 T30 c\r\nx\r\n", "ms k 1 c T30\r\nx\r\n",
                                      "set k 5 30 1\r\nx\r\n", "add k 5 30 1 noreplY\r\nx\r\n",
                                      "cas k 5 30 1 77\r\nx\r\n"}));
  EXPECT_EQ(send(route, "mg k\r\n").bytes, "SERVER_ERROR invalid command for route_ttl\r\n");
  EXPECT_EQ(send(route, "append k 0 0 1\r\nx\r\n").bytes,
            "SERVER_ERROR invalid command for route_ttl\r\n");
  EXPECT_TRUE(a_.take().empty());
}

TEST_F(PassingRoutesTest, TtlGivesRoutesTheEditedRequestWithItsQuietFlag) {
  DirectRoute inner(setup({{&a_}}));
  TtlRoute route(setup({{&inner, true}}), "30");
  EXPECT_EQ(quiet_of(route, "ms k 1 q\r\nx\r\n", "HD\r\n"), call::Quiet::Done);
  EXPECT_EQ(a_.take(), once("ms k 1   T30\r\nx\r\n"));
}

TEST_F(PassingRoutesTest, TtlRefusesALineThatWouldBeTooLong) {
  TtlRoute route(setup({{&a_}}), "3000000000");
  std::string line = "ms k 1";
  // Room for the end of the line, but not for another flag.
  line += " O" + std::string(memcache::kLineBytesMax - line.size() - 10, 'o');
  EXPECT_EQ(send(route, line + "\r\nx\r\n").bytes,
            "SERVER_ERROR request too long for route_ttl\r\n");
}

}  // namespace
}  // namespace kvferry::route
