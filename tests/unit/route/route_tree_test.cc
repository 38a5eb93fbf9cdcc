#include "route/route_tree.h"

#include <map>

#include "route/selecting_routes.h"
#include "tests/unit/route/native_rig.h"

namespace kvferry::route {
namespace {

RouteSpec pool(std::string name) {
  RouteSpec spec;
  spec.text = std::move(name);
  return spec;
}

RouteSpec route(RouteKind kind, std::vector<RouteSpec> children) {
  RouteSpec spec;
  spec.kind = kind;
  spec.children = std::move(children);
  return spec;
}

RouteSpec prefixes(std::vector<std::string> texts, std::vector<RouteSpec> children) {
  RouteSpec spec = route(RouteKind::Prefixes, std::move(children));
  spec.prefixes = std::move(texts);
  return spec;
}

class RouteTreeTest : public NativeRouteTest {
 protected:
  std::unique_ptr<RouteTree> make(const RouteSpec& spec,
                                  std::span<const SharedBucket> buckets = {}) {
    return std::make_unique<RouteTree>(
        RouteTree::Setup{
            .loop = *rig_.loop,
            .calls = calls_,
            .budget = budget_,
            .pool = [this](std::string_view name) -> call::Target& {
              return name == "a" ? a_ : name == "b" ? b_ : c_;
            },
            .counter = [this](std::string_view name) { return &counters_[std::string(name)]; },
            .buckets = buckets,
            .near_spaces = near_spaces_,
            .near_stores = &near_stores_,
            .clock = &clock_,
            .writes = &writes_},
        spec);
  }

  base::MemoryBudget budget_{0};
  std::map<std::string, base::Counter> counters_;
  std::vector<NearSpace> near_spaces_;
  store::Store store_{store::StoreConfig{}};
  NearStores near_stores_{store::kItemBytesMaxDefault};
  StoreTarget clock_{store_, rig_.budget, StoreTargetOptions{}};
  WriteGenerations writes_;
};

TEST_F(RouteTreeTest, APoolAloneIsSentPlainRequests) {
  const auto tree = make(pool("a"));
  test::Outcome& outcome = send(*tree, "mg k v q\r\n");
  EXPECT_EQ(a_.take(), once("mg k v  \r\n"));
  EXPECT_EQ(outcome.call->quiet, call::Quiet::Miss);
  a_.answer("EN\r\n");
  EXPECT_EQ(outcome.bytes, "EN\r\n");
}

TEST_F(RouteTreeTest, AWideGetForOnePoolStaysOneRequest) {
  const auto tree = make(prefixes({"u:"}, {route(RouteKind::Direct, {pool("a")}), pool("b")}));
  send(*tree, "get u:1 u:2 u:3\r\n");
  EXPECT_EQ(a_.take(), once("get u:1 u:2 u:3\r\n"));
  a_.answer("END\r\n");
}

TEST_F(RouteTreeTest, AWideGetForSeveralPoolsIsCutAndPutTogetherInOrder) {
  const auto tree = make(prefixes({"u:"}, {pool("a"), pool("b")}));
  test::Outcome& outcome = send(*tree, "get u:1 x u:2\r\n");
  EXPECT_EQ(a_.take(), (std::vector<std::string>{"get u:1\r\n", "get u:2\r\n"}));
  EXPECT_EQ(b_.take(), once("get x\r\n"));
  b_.answer("VALUE x 0 1\r\nb\r\nEND\r\n");
  a_.answer("VALUE u:1 0 1\r\na\r\nEND\r\n");
  a_.answer("END\r\n");
  EXPECT_EQ(outcome.bytes, "VALUE u:1 0 1\r\na\r\nVALUE x 0 1\r\nb\r\nEND\r\n");
}

TEST_F(RouteTreeTest, AWideGetBehindAWaitingRouteIsCut) {
  const auto tree = make(route(RouteKind::Failover, {pool("a"), pool("b")}));
  test::Outcome& outcome = send(*tree, "get k l\r\n");
  EXPECT_EQ(a_.take(), (std::vector<std::string>{"get k\r\n", "get l\r\n"}));
  a_.fail();
  a_.answer("END\r\n");
  EXPECT_EQ(b_.take(), once("get k\r\n"));
  b_.answer("VALUE k 0 1\r\nx\r\nEND\r\n");
  EXPECT_EQ(outcome.bytes, "VALUE k 0 1\r\nx\r\nEND\r\n");
}

TEST_F(RouteTreeTest, NothingIsShownOfARequestWithNoreply) {
  const auto tree = make(route(RouteKind::Failover, {pool("a"), pool("b")}));
  test::Outcome& outcome = send(*tree, "set k 0 0 1 noreply\r\nx\r\n");
  EXPECT_FALSE(tree->is_idle());
  a_.fail();
  b_.fail();
  EXPECT_TRUE(outcome.is_failure());
  EXPECT_EQ(outcome.quiet, call::Quiet::All);
  EXPECT_TRUE(tree->is_idle());
}

TEST_F(RouteTreeTest, TheBudgetIsChargedForValuesWhileTheyAreKept) {
  const auto waiting = make(route(RouteKind::AllSync, {pool("a"), pool("b")}));
  const auto passing = make(route(RouteKind::Random, {pool("c")}));
  const std::string value(60'000, 'v');
  const std::string line = "set k 0 0 60000";
  for (int i = 0; i < 2; ++i) {
    send(*waiting, line + "\r\n" + value + "\r\n");
    send(*passing, line + " noreply\r\n" + value + "\r\n");
  }
  EXPECT_EQ(budget_.used_bytes(), 4 * value.size());
  for (int i = 0; i < 2; ++i) {
    for (FakeTarget* target : {&a_, &b_, &c_}) {
      target->answer("STORED\r\n");
    }
  }
  EXPECT_LT(budget_.used_bytes(), kChargeStepBytes);
}

TEST_F(RouteTreeTest, NearCachesHaveTheSpacesOfTheirPlaces) {
  const auto near = [](std::string name, std::string counter) {
    RouteSpec spec = route(RouteKind::NearCache, {route(RouteKind::Coalesce, {pool(name)})});
    spec.near_ttl = base::Millis(600'000);
    spec.counter = spec.children[0].counter = std::move(counter);
    return spec;
  };
  const RouteSpec spec = prefixes({"u:", "v:"}, {near("a", "x"), near("b", "y"), near("c", "z")});
  near_spaces_ = {{.number = 7}, {.number = 8}, {.number = 9}};
  const auto tree = make(spec);
  const auto again = make(spec);
  test::Outcome& first = send(*tree, "get u:1\r\n");
  test::Outcome& second = send(*tree, "get u:1\r\n");
  a_.answer("VALUE u:1 0 1\r\nx\r\nEND\r\n");
  EXPECT_EQ(first.bytes, second.bytes);
  EXPECT_EQ(send(*again, "get u:1\r\n").bytes, first.bytes);
  EXPECT_EQ(counters_["x_hits"].get(), 1U);
  EXPECT_EQ(counters_["x_misses"].get(), 2U);
  EXPECT_EQ(counters_["x_joined"].get(), 1U);
  near_spaces_ = {{.number = 8}, {.number = 7}, {.number = 9}};
  const auto other = make(spec);
  send(*other, "get u:1\r\n");
  EXPECT_EQ(a_.take().size(), 2U);
  a_.answer("END\r\n");
}

TEST_F(RouteTreeTest, CountsUnderTheNameOfTheRoute) {
  RouteSpec spec = route(RouteKind::Failover, {pool("a"), pool("b")});
  spec.counter = "front/default";
  const auto tree = make(spec);
  send(*tree, "get k\r\n");
  a_.fail();
  b_.answer("END\r\n");
  EXPECT_EQ(counters_["front/default"].get(), 1U);
}

TEST_F(RouteTreeTest, IsIdleOnceAllSubRequestsHaveEnded) {
  const auto tree = make(route(RouteKind::AllFastest, {pool("a"), pool("b")}));
  EXPECT_TRUE(tree->is_idle());
  test::Outcome& outcome = send(*tree, "get k\r\n");
  EXPECT_FALSE(tree->is_idle());
  a_.answer("VALUE k 0 1\r\nx\r\nEND\r\n");
  EXPECT_TRUE(outcome.is_done);
  EXPECT_FALSE(tree->is_idle()) << "b has not answered";
  b_.answer("END\r\n");
  EXPECT_TRUE(tree->is_idle());
}

TEST_F(RouteTreeTest, SharedBucketsAreThoseThatWereMadeForTheSpec) {
  RouteSpec limit = route(RouteKind::RateLimit, {pool("a")});
  limit.bucket = {.limit = 2, .fill_rate = 1, .tick = base::Millis(3600000)};
  limit.is_bucket_shared = true;
  const RouteSpec spec = prefixes({"x"}, {limit, pool("b")});
  const std::vector<SharedBucket> buckets = make_shared_buckets(spec, rig_.loop->now());
  ASSERT_EQ(buckets.size(), 1U);
  const auto one = make(spec, buckets);
  const auto other = make(spec, buckets);
  a_.answer_at_once = "END\r\n";
  send(*one, "get x1\r\n");
  EXPECT_EQ(a_.take(), once("get x1\r\n"));
  EXPECT_EQ(send(*other, "get x2\r\n").bytes, "END\r\n");
  EXPECT_TRUE(a_.take().empty()) << "the last token stays";
}

TEST_F(RouteTreeTest, EveryKindCanBeMade) {
  for (int kind = 0; kind <= static_cast<int>(RouteKind::Prefixes); ++kind) {
    RouteSpec spec = route(static_cast<RouteKind>(kind), {pool("a"), pool("b")});
    spec.bucket.limit = 1;
    if (spec.kind == RouteKind::Pool) {
      spec = pool("a");
    } else if (spec.kind == RouteKind::Ttl) {
      spec.text = "10";
    }
    const auto tree = make(spec);
    for (FakeTarget* target : {&a_, &b_}) {
      target->answer_at_once = "STORED\r\n";
    }
    EXPECT_TRUE(send(*tree, "set k 0 0 1\r\nx\r\n").is_done) << kind;
    EXPECT_TRUE(tree->is_idle()) << kind;
  }
}

}  // namespace
}  // namespace kvferry::route
