// Placement of memcached's built-in proxy: jump and ring distributions, seeds and key filters.
#include <array>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "pool/key_hash.h"
#include "pool/placement.h"
#include "tests/unit/pool/placement_data.h"

namespace kvferry::pool {
namespace {

constexpr std::array<std::string_view, 8> kKeys = {
    "foo",      "bar",       "a",      "key:1",
    "/test/42", "user:1000", "{tag}x", "averyveryverylongkeyaveryveryverylongkey"};

using Picks = std::array<std::uint32_t, kKeys.size()>;  // Counted from 1, as scripts do.

Picks picks_of(const PlacementPointer& placement) {
  Picks picks{};
  for (std::size_t at = 0; at < kKeys.size(); ++at) {
    picks[at] = select(placement, kKeys[at]) + 1;
  }
  return picks;
}

std::vector<ServerOptions> equal_servers(std::size_t count) {
  std::vector<ServerOptions> servers;
  for (std::size_t at = 0; at < count; ++at) {
    servers.push_back(server_of("127.0.0.1:" + std::to_string(20000 + at) + ":1"));
  }
  return servers;
}

TEST(MemcachedProxyPlacement, JumpsAsTheOriginal) {
  const struct {
    std::size_t servers;
    std::string_view seed;
    Picks picks;
  } rows[] = {
      {3, "", {3, 2, 2, 2, 2, 3, 2, 3}},      {4, "", {3, 4, 2, 2, 4, 3, 2, 3}},
      {5, "", {3, 4, 2, 2, 4, 3, 2, 3}},      {10, "", {3, 4, 9, 2, 7, 8, 2, 3}},
      {3, "a", {3, 2, 3, 3, 2, 2, 3, 2}},     {5, "a", {3, 2, 4, 4, 5, 2, 3, 4}},
      {3, "hello", {2, 2, 1, 3, 2, 3, 3, 2}}, {5, "hello", {5, 2, 5, 3, 5, 4, 5, 2}},
  };
  for (const auto& row : rows) {
    PlacementOptions options = options_of(HashKind::Xxh3, DistributionKind::Jump);
    options.hash_seed = row.seed.empty() ? 0 : hash_key(HashKind::Xxh3, row.seed);
    EXPECT_EQ(picks_of(place(options, equal_servers(row.servers))), row.picks)
        << row.servers << " servers, seed " << row.seed;
  }
}

TEST(MemcachedProxyPlacement, FiltersKeysBeforeItJumps) {
  PlacementOptions options = options_of(HashKind::Xxh3, DistributionKind::Jump, "{}");
  options.filter = KeyFilter::MemcachedTags;
  const auto tags = place(options, equal_servers(3));
  EXPECT_EQ(picks_of(tags), (Picks{3, 2, 2, 2, 2, 3, 1, 3}));
  EXPECT_EQ(select(tags, "x{bar}y"), 1U);
  EXPECT_EQ(select(tags, "a}{bar}"), 1U);
  EXPECT_EQ(select(tags, "{}x"), 0U);
  EXPECT_EQ(select(tags, "x{bar"), 0U);

  options.filter = KeyFilter::MemcachedStop;
  options.hash_tag = "|#|";
  const auto stop = place(options, equal_servers(3));
  EXPECT_EQ(select(stop, "foo|#|zzz"), 2U);
  EXPECT_EQ(select(stop, "foo|#|yyy"), 2U);
  EXPECT_EQ(select(stop, "bar|#|1"), 1U);
}

TEST(MemcachedProxyPlacement, RingsAsTheOriginal) {
  const auto servers = servers_of(
      {"127.0.0.1:21301:1", "127.0.0.1:21302:1", "127.0.0.1:21303:1", "127.0.0.1:11211:1"});
  const struct {
    RingNaming naming;
    std::uint32_t points;
    Picks md5;
    Picks xxh3;
  } rows[] = {
      {RingNaming::Default, 160, {2, 4, 4, 1, 3, 4, 1, 4}, {1, 4, 2, 4, 4, 2, 2, 3}},
      {RingNaming::Default, 40, {2, 3, 4, 2, 1, 4, 2, 1}, {1, 2, 2, 2, 2, 4, 2, 3}},
      {RingNaming::Ketama, 160, {3, 2, 2, 2, 2, 3, 3, 3}, {4, 1, 4, 4, 4, 1, 2, 1}},
      {RingNaming::Ketama, 40, {3, 2, 2, 3, 3, 3, 1, 4}, {2, 2, 4, 1, 2, 2, 2, 4}},
      {RingNaming::Twemproxy, 160, {4, 2, 4, 2, 4, 3, 3, 4}, {4, 1, 1, 4, 4, 4, 2, 4}},
      {RingNaming::Twemproxy, 40, {4, 2, 2, 3, 3, 3, 4, 4}, {2, 2, 1, 4, 2, 2, 2, 3}},
      {RingNaming::Evcache, 160, {1, 3, 1, 2, 3, 4, 2, 2}, {4, 4, 2, 1, 4, 1, 1, 3}},
      {RingNaming::Evcache, 40, {1, 3, 1, 1, 3, 3, 1, 3}, {1, 4, 2, 1, 2, 1, 3, 1}},
  };
  for (const auto& row : rows) {
    PlacementOptions options = options_of(HashKind::Md5, DistributionKind::RingMemcached);
    options.ring_naming = row.naming;
    options.ring_points = row.points;
    EXPECT_EQ(picks_of(place(options, servers)), row.md5) << static_cast<int>(row.naming);
    options.hash = HashKind::Xxh3;
    EXPECT_EQ(picks_of(place(options, servers)), row.xxh3) << static_cast<int>(row.naming);
  }
}

TEST(MemcachedProxyPlacement, AgreesWithTwemproxysKetamaInItsMode) {
  const auto servers = servers_of({"10.0.0.1:11211:1", "10.0.0.2:22121:1", "10.0.0.3:11211:1"});
  PlacementOptions options = options_of(HashKind::Md5, DistributionKind::RingMemcached);
  options.ring_naming = RingNaming::Twemproxy;
  const auto ring = place(options, servers);
  const auto ketama = place(options_of(HashKind::Md5, DistributionKind::Ketama), servers);
  for (int number = 0; number < 500; ++number) {
    const std::string key = "key:" + std::to_string(number);
    EXPECT_EQ(select(ring, key), select(ketama, key)) << key;
  }
}

}  // namespace
}  // namespace kvferry::pool
