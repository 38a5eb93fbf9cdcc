#include "pool/hash_ring.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace kvferry::pool {
namespace {

using Point = HashRing::Point;

/// The rule itself: the first of the earliest points that are not before `hash`.
std::uint32_t owner_by_scan(const std::vector<Point>& points, std::uint32_t hash) {
  const Point* next = nullptr;
  const Point* lowest = nullptr;
  for (const Point& point : points) {
    if (point.value >= hash && (next == nullptr || point.value < next->value)) {
      next = &point;
    }
    if (lowest == nullptr || point.value < lowest->value) {
      lowest = &point;
    }
  }
  return next != nullptr ? next->owner : lowest->owner;
}

void expect_same_as_scan(const std::vector<Point>& points) {
  const HashRing ring(points);
  std::vector<std::uint32_t> hashes = {0, 1, 0x7fffffffU, 0x80000000U, 0xfffffffeU, 0xffffffffU};
  for (const Point& point : points) {
    hashes.insert(hashes.end(), {point.value - 1, point.value, point.value + 1});
  }
  for (const std::uint32_t hash : hashes) {
    EXPECT_EQ(ring.owner_of(hash), owner_by_scan(points, hash)) << hash;
    EXPECT_EQ(ring.point_at(hash).owner, owner_by_scan(points, hash)) << hash;
  }
}

TEST(HashRing, FindsTheNextPointAndWrapsAround) {
  expect_same_as_scan({{.value = 100, .owner = 3}});
  expect_same_as_scan({{.value = 0, .owner = 1}});
  expect_same_as_scan({{.value = 0xffffffffU, .owner = 1}, {.value = 5, .owner = 2}});
  expect_same_as_scan(
      {{.value = 900, .owner = 1}, {.value = 7, .owner = 2}, {.value = 8, .owner = 3}});
}

TEST(HashRing, FindsTheFirstGivenOfEqualPoints) {
  expect_same_as_scan(
      {{.value = 50, .owner = 9}, {.value = 50, .owner = 1}, {.value = 50, .owner = 5}});
  const HashRing ring({{.value = 50, .owner = 9}, {.value = 50, .owner = 1}});
  EXPECT_EQ(ring.owner_of(50), 9U);
  EXPECT_EQ(ring.owner_of(51), 9U);
}

TEST(HashRing, AgreesWithAScanForSpreadAndForCrowdedPoints) {
  std::mt19937 random(7);
  for (const std::uint32_t spread : {0xffffffffU, 0xffffU, 40U}) {
    for (const std::size_t count : {2U, 3U, 64U, 317U}) {
      std::vector<Point> points;
      for (std::size_t at = 0; at < count; ++at) {
        points.push_back({.value = static_cast<std::uint32_t>(random()) & spread,
                          .owner = static_cast<std::uint32_t>(at)});
      }
      expect_same_as_scan(points);
    }
  }
}

TEST(HashRing, ShowsItsPointsSorted) {
  const HashRing ring({{.value = 30, .owner = 0}, {.value = 10, .owner = 1}});
  const std::vector<Point> points(ring.points().begin(), ring.points().end());
  EXPECT_EQ(points, (std::vector<Point>{{.value = 10, .owner = 1}, {.value = 30, .owner = 0}}));
  EXPECT_TRUE(HashRing().points().empty());
  EXPECT_TRUE(HashRing(std::vector<Point>()).empty());
}

TEST(HashRing, GivesArcsThatEndInTheirPoints) {
  const HashRing ring({{.value = 0x40000000U, .owner = 0}, {.value = 0x80000000U, .owner = 1}});
  const std::vector<double> arcs = ring.arcs(3);
  EXPECT_DOUBLE_EQ(arcs[0], 0.75);
  EXPECT_DOUBLE_EQ(arcs[1], 0.25);
  EXPECT_DOUBLE_EQ(arcs[2], 0.0);
  EXPECT_DOUBLE_EQ(HashRing({{.value = 77, .owner = 0}}).arcs(1)[0], 1.0);
}

}  // namespace
}  // namespace kvferry::pool
