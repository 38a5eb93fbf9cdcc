#include "pool/placement.h"

#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pool/key_hash.h"
#include "pool/spread_hash.h"
#include "tests/unit/pool/placement_data.h"

namespace kvferry::pool {
namespace {

constexpr DistributionKind kDistributions[] = {
    DistributionKind::Ketama, DistributionKind::Modula,     DistributionKind::Random,
    DistributionKind::Jump,   DistributionKind::Rendezvous, DistributionKind::RingMemcached};

std::vector<ServerOptions> make_servers(std::size_t count) {
  std::vector<ServerOptions> servers;
  for (std::size_t at = 0; at < count; ++at) {
    servers.push_back(server_of("10.0.0." + std::to_string(at + 1) + ":22121:1"));
  }
  return servers;
}

std::string key_number(std::uint64_t number) {
  return "key:" + std::to_string(number);
}

// The example of the rules: weights 3, 1, 2 and names of three lengths.
std::vector<ServerOptions> zeta_a_middle() {
  return servers_of({"127.0.0.1:27991:3 zeta", "127.0.0.1:27992:1 a", "127.0.0.1:27993:2 middle"});
}

TEST(Placement, MeetsTheWorkedExampleOfKetamaAndModula) {
  constexpr std::uint32_t kZeta = 0;
  constexpr std::uint32_t kA = 1;
  constexpr std::uint32_t kMiddle = 2;
  const struct {
    HashKind hash;
    DistributionKind distribution;
    std::string_view tag;
    std::string_view key;
    std::uint32_t index;
  } rows[] = {
      {HashKind::Fnv1a_64, DistributionKind::Ketama, "", "foo", kA},
      {HashKind::Fnv1a_64, DistributionKind::Ketama, "", "bar", kZeta},
      {HashKind::Fnv1a_64, DistributionKind::Ketama, "", "user:1000", kMiddle},
      {HashKind::Fnv1a_64, DistributionKind::Ketama, "", "key:1", kZeta},
      {HashKind::Fnv1a_64, DistributionKind::Ketama, "", "key:42", kMiddle},
      {HashKind::Murmur, DistributionKind::Ketama, "", "foo", kA},
      {HashKind::Murmur, DistributionKind::Ketama, "", "bar", kMiddle},
      {HashKind::Murmur, DistributionKind::Ketama, "", "user:1000", kZeta},
      {HashKind::Murmur, DistributionKind::Ketama, "", "key:1", kA},
      {HashKind::Murmur, DistributionKind::Ketama, "", "key:42", kZeta},
      {HashKind::Crc16, DistributionKind::Modula, "", "foo", kMiddle},
      {HashKind::Crc16, DistributionKind::Modula, "", "user:1000", kZeta},
      {HashKind::Crc16, DistributionKind::Modula, "{}", "{tag}x", kMiddle},
      {HashKind::Fnv1a_64, DistributionKind::Modula, "", "foo", kMiddle},
      {HashKind::Fnv1a_64, DistributionKind::Modula, "", "key:42", kA},
      {HashKind::Fnv1a_64, DistributionKind::Modula, "{}", "{tag}x", kZeta},
  };
  for (const auto& row : rows) {
    const auto placement = place(options_of(row.hash, row.distribution, row.tag), zeta_a_middle());
    EXPECT_EQ(select(placement, row.key), row.index) << name_of(row.hash) << " " << row.key;
  }
}

TEST(Placement, JumpsToTheBucketsOfThePaper) {
  EXPECT_EQ(jump_bucket(1, 11), 6U);
  EXPECT_EQ(jump_bucket(10863919174838991U, 11), 6U);
  EXPECT_EQ(jump_bucket(2016238256797177309U, 11), 3U);
  EXPECT_EQ(jump_bucket(1673758223894951030U, 11), 5U);
  EXPECT_EQ(jump_bucket(~std::uint64_t{0}, 1024), 313U);
  EXPECT_EQ(jump_bucket(12345, 1), 0U);
}

TEST(Placement, ScoresRendezvousByNamesAndWeights) {
  const auto options = options_of(HashKind::Xxh3, DistributionKind::Rendezvous);
  const auto equal = place(options, servers_of({"h:1:1 r1", "h:2:1 r2", "h:3:1 r3"}));
  EXPECT_EQ(select(equal, "foo"), 2U);
  EXPECT_EQ(select(equal, "bar"), 1U);
  EXPECT_EQ(select(equal, "key:1"), 0U);
  const auto weighted = place(options, servers_of({"h:1:3 r1", "h:2:1 r2", "h:3:2 r3"}));
  EXPECT_EQ(select(weighted, "bar"), 2U);
  EXPECT_EQ(select(weighted, "key:7"), 0U);

  std::array<int, 3> counts{};
  for (std::uint64_t number = 0; number < 60000; ++number) {
    ++counts[select(weighted, key_number(number))];
  }
  EXPECT_EQ(counts, (std::array<int, 3>{29992, 10030, 19978}));
}

TEST(Placement, ScoresEqualWeightsAlikeWithAndWithoutLogarithms) {
  // A fourth server of another weight, far too light to win, forces the long way.
  std::vector<Rendezvous::Server> servers = {
      {.name_hash = hash_key(HashKind::Xxh3, "r1"), .index = 0},
      {.name_hash = hash_key(HashKind::Xxh3, "r2"), .index = 1},
      {.name_hash = hash_key(HashKind::Xxh3, "r3"), .index = 2}};
  const Rendezvous fast(servers);
  servers.push_back({.name_hash = 99, .weight = 1e-300, .index = 3});
  const Rendezvous plain(servers);
  for (std::uint64_t number = 0; number < 5000; ++number) {
    const std::uint64_t hash = hash_key(HashKind::Xxh3, key_number(number));
    EXPECT_EQ(fast.index_of(hash), plain.index_of(hash)) << number;
  }
}

TEST(Placement, SelectsNothingWhenNoServerIsLive) {
  for (const DistributionKind distribution : kDistributions) {
    const auto options = options_of(HashKind::Md5, distribution);
    const auto none = place(options, {});
    EXPECT_EQ(select(none, "foo"), kNoServer);
    const auto dead = place(options, make_servers(2), {false, false});
    EXPECT_EQ(select(dead, "foo"), kNoServer);
    EXPECT_EQ(dead->explain("foo").index, kNoServer);
    EXPECT_EQ(dead->explain("foo").reason, "no server is live");
    for (const Placement::Share& share : dead->shares()) {
      EXPECT_EQ(share.points, 0U);
      EXPECT_EQ(share.expected, 0.0);
    }
  }
}

TEST(Placement, SelectsTheOnlyLiveServerForEveryKey) {
  for (const DistributionKind distribution : kDistributions) {
    const auto placement =
        place(options_of(HashKind::Md5, distribution), make_servers(3), {false, true, false});
    for (std::uint64_t number = 0; number < 20; ++number) {
      EXPECT_EQ(select(placement, key_number(number)), 1U);
    }
    EXPECT_EQ(placement->explain("foo").reason, "one server is live, so keys are not hashed");
    EXPECT_EQ(
        place(options_of(HashKind::Md5, distribution), make_servers(1))->explain("foo").reason,
        "the pool has one server, so keys are not hashed");
  }
}

TEST(Placement, MovesKeysOnlyToAnAddedServer) {
  for (const DistributionKind distribution :
       {DistributionKind::Ketama, DistributionKind::Jump, DistributionKind::Rendezvous,
        DistributionKind::RingMemcached}) {
    const auto options = options_of(HashKind::Xxh3, distribution);
    const auto before = place(options, make_servers(7));
    const auto after = place(options, make_servers(8));
    int moved = 0;
    for (std::uint64_t number = 0; number < 4000; ++number) {
      const std::uint32_t was = select(before, key_number(number));
      const std::uint32_t is = select(after, key_number(number));
      if (was != is) {
        EXPECT_EQ(is, 7U) << key_number(number);
        ++moved;
      }
    }
    // An eighth of 4000 is 500; rings of 160 points a server stray from it by some tenths.
    EXPECT_GT(moved, 300);
    EXPECT_LT(moved, 700);
  }
}

TEST(Placement, IgnoresTheOrderOfTheFileWhereTwemproxyDoes) {
  auto servers = servers_of({"10.0.0.3:1:1 ccc", "10.0.0.1:1:2 a", "10.0.0.2:1:1 bb"});
  auto reversed = std::vector<ServerOptions>(servers.rbegin(), servers.rend());
  for (const DistributionKind distribution :
       {DistributionKind::Ketama, DistributionKind::Modula, DistributionKind::Rendezvous}) {
    const auto options = options_of(HashKind::Murmur, distribution);
    const auto placement = place(options, servers);
    const auto other = place(options, reversed);
    for (std::uint64_t number = 0; number < 300; ++number) {
      EXPECT_EQ(select(placement, key_number(number)), 2 - select(other, key_number(number)));
    }
  }
}

TEST(Placement, CountsPredixysModulaInTheOrderOfTheFile) {
  const auto servers = servers_of({"h:1:1 zz", "h:2:1 y", "h:3:1 x"});
  const auto atol = place(options_of(HashKind::Atol, DistributionKind::Modula), servers);
  EXPECT_EQ(select(atol, "0"), 0U);
  EXPECT_EQ(select(atol, "1:a"), 1U);
  EXPECT_EQ(select(atol, "5"), 2U);
  // Minus one is 2^64 - 1 to predixy's unsigned remainder, and 3 divides that.
  EXPECT_EQ(select(atol, "-1"), 0U);
  const auto slot = place(options_of(HashKind::Crc16Slot, DistributionKind::Modula), servers);
  EXPECT_EQ(select(slot, "foo"), 12182U % 3);
}

TEST(Placement, SearchesModulaWithWeightsThatFillNoTable) {
  // The same proportions once below and once above what fits the table of slots.
  const auto options = options_of(HashKind::Fnv1a_32, DistributionKind::Modula);
  const auto heavy = place(options, servers_of({"h:1:2000000000 a", "h:2:2147483647 b"}));
  const std::uint64_t total = 2000000000ULL + 2147483647ULL;
  for (std::uint64_t number = 0; number < 2000; ++number) {
    const std::uint64_t slot = hash_key(HashKind::Fnv1a_32, key_number(number)) % total;
    EXPECT_EQ(select(heavy, key_number(number)), slot < 2000000000ULL ? 0U : 1U);
  }
  for (const std::uint32_t extra : {0U, 1U}) {  // 4096 slots, then 4097.
    auto servers = servers_of({"h:1:4095 a", "h:2:1 b"});
    servers[1].weight += extra;
    const auto edge = place(options, servers);
    for (std::uint64_t number = 0; number < 20000; ++number) {
      const std::uint64_t slot = hash_key(HashKind::Fnv1a_32, key_number(number)) % (4096 + extra);
      ASSERT_EQ(select(edge, key_number(number)), slot < 4095 ? 0U : 1U);
    }
  }
}

TEST(Placement, DrawsRandomServersUniformlyAndWithoutWeights) {
  auto servers = make_servers(4);
  servers[0].weight = 1000;
  const auto placement = place(options_of(HashKind::Md5, DistributionKind::Random), servers,
                               {true, true, false, true});
  EXPECT_FALSE(placement->is_stable());
  std::uint64_t random_state = 0;  // The worst start there is.
  std::array<int, 4> counts{};
  for (int draw = 0; draw < 30000; ++draw) {
    ++counts[placement->select("the same key", random_state)];
  }
  EXPECT_EQ(counts[2], 0);
  for (const int server : {0, 1, 3}) {
    EXPECT_NEAR(counts[static_cast<std::size_t>(server)], 10000, 500);
  }
  EXPECT_EQ(placement->explain("foo").index, kNoServer);
}

TEST(Placement, HashesAnEmptyKeyToZeroLikeTwemproxy) {
  const auto placement =
      place(options_of(HashKind::Md5, DistributionKind::Modula), make_servers(3));
  EXPECT_EQ(placement->explain("").hash, 0U);
  EXPECT_EQ(select(placement, ""), 0U);
}

TEST(Placement, ExplainsTheWayOfAKey) {
  const auto ketama =
      place(options_of(HashKind::Fnv1a_64, DistributionKind::Ketama, "{}"), zeta_a_middle());
  const auto explained = ketama->explain("x{foo}y");
  EXPECT_EQ(explained.hashed_part, "foo");
  EXPECT_EQ(explained.hash, 4275688823U);
  EXPECT_EQ(explained.index, 1U);
  ASSERT_TRUE(explained.ring_point.has_value());
  EXPECT_GE(*explained.ring_point, 4275688823U);
  EXPECT_EQ(explained.reason, "ring: next of 480 points");

  const auto modula =
      place(options_of(HashKind::Fnv1a_64, DistributionKind::Modula), zeta_a_middle());
  EXPECT_EQ(modula->explain("foo").reason, "modula: slot 5 of 6");
  EXPECT_FALSE(modula->explain("foo").ring_point.has_value());
}

TEST(Placement, ExplainsKeysPastTheLastPoint) {
  const auto placement = place({}, make_servers(2));
  bool was_wrapped = false;
  for (std::uint64_t number = 0; number < 20000 && !was_wrapped; ++number) {
    const auto explained = placement->explain(key_number(number));
    was_wrapped = *explained.ring_point < explained.hash;
    if (was_wrapped) {
      EXPECT_EQ(explained.reason, "ring: past the last of 320 points, so the first");
    }
  }
  EXPECT_TRUE(was_wrapped);
}

TEST(Placement, TellsSharesThatCountedKeysConfirm) {
  auto servers = zeta_a_middle();
  for (const DistributionKind distribution :
       {DistributionKind::Ketama, DistributionKind::Modula, DistributionKind::Rendezvous}) {
    const auto placement = place(options_of(HashKind::Xxh3, distribution), servers);
    const std::vector<Placement::Share> shares = placement->shares();
    std::array<double, 3> counts{};
    for (std::uint64_t number = 0; number < 40000; ++number) {
      counts[select(placement, key_number(number))] += 1.0 / 40000;
    }
    EXPECT_DOUBLE_EQ(shares[0].expected, 0.5);
    EXPECT_DOUBLE_EQ(shares[1].expected, 1.0 / 6);
    for (std::size_t at = 0; at < counts.size(); ++at) {
      EXPECT_NEAR(shares[at].actual, counts[at], 0.01);
    }
  }
}

TEST(Placement, TellsOfServersWithoutPoints) {
  const auto placement = place({}, servers_of({"h:1:1 light", "h:2:100000 heavy"}));
  const std::vector<Placement::Share> shares = placement->shares();
  EXPECT_EQ(shares[0].points, 0U);
  EXPECT_EQ(shares[0].actual, 0.0);
  EXPECT_GT(shares[0].expected, 0.0);
  EXPECT_EQ(shares[1].points, 316U);
  EXPECT_DOUBLE_EQ(shares[1].actual, 1.0);
}

struct Refusal {
  PlacementOptions options;
  std::vector<ServerOptions> servers;
  std::string_view text;
};

TEST(Placement, RefusesOptionsThatItCannotServe) {
  const auto ketama = [](std::string_view tag, KeyFilter filter) {
    PlacementOptions options = options_of(HashKind::Md5, DistributionKind::Ketama, tag);
    options.filter = filter;
    return options;
  };
  auto weightless = make_servers(2);
  weightless[1].weight = 0;
  PlacementOptions no_points = options_of(HashKind::Md5, DistributionKind::RingMemcached);
  no_points.ring_points = 0;
  PlacementOptions many_points = no_points;
  many_points.ring_points = kRingPointsMax / 2 + 1;
  const Refusal rows[] = {
      {ketama("{", KeyFilter::HashTag), make_servers(1), "exactly two bytes, found 1"},
      {ketama("{}}", KeyFilter::HashTag), make_servers(1), "exactly two bytes, found 3"},
      {ketama("{", KeyFilter::MemcachedTags), make_servers(1), "between 2 and 5"},
      {ketama("123456", KeyFilter::MemcachedStop), make_servers(1), "between 2 and 5"},
      {options_of(HashKind::Md5, DistributionKind::Jump), zeta_a_middle(), "'zeta' has weight 3"},
      {{}, weightless, "'10.0.0.2:22121' has weight 0"},
      {no_points, make_servers(1), "positive integer"},
      {many_points, make_servers(2), "at most 16777216 points"},
  };
  for (const Refusal& row : rows) {
    const auto made =
        Placement::make(row.options, row.servers, std::vector<bool>(row.servers.size(), true));
    ASSERT_FALSE(made.has_value()) << row.text;
    EXPECT_EQ(made.error().code(), base::ErrorCode::InvalidInput);
    EXPECT_NE(made.error().text().find(row.text), std::string::npos) << made.error().text();
  }
}

}  // namespace
}  // namespace kvferry::pool
