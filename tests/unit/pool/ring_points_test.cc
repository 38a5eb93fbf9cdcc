#include "pool/ring_points.h"

#include <vector>

#include <gtest/gtest.h>

#include "pool/hash_ring.h"

namespace kvferry::pool {
namespace {

TEST(RingPoints, GiveEqualWeights160PointsButForRounding) {
  for (const std::size_t servers : {1U, 2U, 3U, 7U, 10U, 16U, 24U, 26U, 48U}) {
    EXPECT_EQ(ketama_point_count(1, servers, servers), 160U) << servers;
  }
  for (const std::size_t servers : {25U, 47U, 50U, 55U, 61U, 71U, 94U, 100U}) {
    EXPECT_EQ(ketama_point_count(1, servers, servers), 156U) << servers;
  }
}

TEST(RingPoints, FollowWeightsDownToNoPoint) {
  EXPECT_EQ(ketama_point_count(1, 8, 3), 60U);
  EXPECT_EQ(ketama_point_count(5, 8, 3), 300U);
  EXPECT_EQ(ketama_point_count(100000, 100001, 2), 316U);
  EXPECT_EQ(ketama_point_count(1, 100001, 2), 0U);
}

TEST(RingPoints, AreTheWordsOfTheDigestsOfLabels) {
  const std::vector<RingServer> servers = {{.label = "a", .weight = 1, .index = 1},
                                           {.label = "zeta", .weight = 3, .index = 0},
                                           {.label = "middle", .weight = 2, .index = 2}};
  const HashRing ring(ketama_points(servers));
  ASSERT_EQ(ring.points().size(), 480U);
  EXPECT_EQ(ring.points()[0], (HashRing::Point{.value = 3747649, .owner = 1}));
  EXPECT_EQ(ring.points()[1], (HashRing::Point{.value = 14691318, .owner = 2}));
  EXPECT_EQ(ring.points()[2], (HashRing::Point{.value = 22131398, .owner = 0}));
}

TEST(RingPoints, CountOnePointATextWithoutWeights) {
  const std::vector<RingServer> servers = {{.label = "10.0.0.1", .weight = 1, .index = 0},
                                           {.label = "10.0.0.2", .weight = 1, .index = 1}};
  EXPECT_EQ(unweighted_ketama_points(servers, HashKind::OneAtATime).size(), 200U);
}

TEST(RingPoints, RoundDownToWholeDigestsOnMemcachedsRing) {
  const std::vector<RingServer> servers = {{.label = "10.0.0.1:1", .weight = 1, .index = 0}};
  EXPECT_EQ(memcached_ring_points(servers, RingNaming::Default, 43).size(), 43U);
  EXPECT_EQ(memcached_ring_points(servers, RingNaming::Ketama, 43).size(), 40U);
  EXPECT_EQ(memcached_ring_points(servers, RingNaming::Evcache, 3).size(), 0U);
}

}  // namespace
}  // namespace kvferry::pool
