// Every row of tests/data/placement that was recorded from twemproxy.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pool/placement.h"
#include "tests/unit/pool/placement_data.h"

namespace kvferry::pool {
namespace {

constexpr std::string_view kTwemproxyHashes[] = {"one_at_a_time", "md5",     "crc16",    "crc32",
                                                 "crc32a",        "fnv1_64", "fnv1a_64", "fnv1_32",
                                                 "fnv1a_32",      "hsieh",   "murmur",   "jenkins"};

class PlacementVectors : public ::testing::TestWithParam<std::string_view> {};

TEST_P(PlacementVectors, MeetEveryRowOfEveryList) {
  const Table table = read_table("place-" + std::string(GetParam()) + ".csv");
  const std::vector<std::string> keys = read_keys();
  const ServerLists lists = read_lists("lists.csv");
  const HashKind hash = hash_named(GetParam());
  ASSERT_GT(keys.size(), 200U);
  ASSERT_EQ(table.rows.size(), keys.size());
  ASSERT_EQ(table.head.size(), 2 + 2 * lists.size());

  for (const auto& row : table.rows) {
    EXPECT_EQ(hash_key(hash, keys[to_number(row[0])]), to_number(row[1])) << "key " << row[0];
  }
  for (std::size_t column = 2; column < table.head.size(); ++column) {
    const std::vector<std::string> head = split(table.head[column], '/');
    const auto placement =
        place(options_of(hash, distribution_named(head[1])), lists.find(head[0])->second);
    for (const auto& row : table.rows) {
      const std::string& key = keys[to_number(row[0])];
      EXPECT_EQ(select(placement, key), to_number(row[column]))
          << table.head[column] << ", key " << row[0];
      EXPECT_EQ(placement->explain(key).index, to_number(row[column]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Hashes, PlacementVectors, ::testing::ValuesIn(kTwemproxyHashes),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(PlacementVectors, MeetLabelsWeightsAndPointsOfEveryServer) {
  const Table table = read_table("lists.csv");
  const ServerLists lists = read_lists("lists.csv");
  for (const auto& row : table.rows) {
    const std::vector<ServerOptions>& servers = lists.find(row[table.column("list")])->second;
    const std::uint64_t index = to_number(row[table.column("index")]);
    EXPECT_EQ(servers[index].point_label, row[table.column("point_label")]);
    EXPECT_EQ(servers[index].weight, to_number(row[table.column("weight")]));
    EXPECT_EQ(place({}, servers)->shares()[index].points,
              to_number(row[table.column("ketama_points")]))
        << row[0] << " " << index;
  }
}

TEST(PlacementVectors, MeetEveryHashTag) {
  const Table table = read_table("tags.csv");
  const ServerLists lists = read_lists("lists.csv");
  ASSERT_GT(table.rows.size(), 100U);
  for (const auto& row : table.rows) {
    EXPECT_EQ(hashed_part(from_hex(row[1]), row[0]), from_hex(row[2])) << row[0] << " " << row[1];
  }
  for (std::size_t column = 3; column < table.head.size(); ++column) {
    const std::vector<std::string> head = split(table.head[column], '/');
    const std::vector<ServerOptions>& servers = lists.find(head[1])->second;
    std::map<std::string, PlacementPointer> placements;  // By hash_tag.
    for (const auto& row : table.rows) {
      PlacementPointer& placement = placements[row[0]];
      if (placement == nullptr) {
        placement =
            place(options_of(hash_named(head[0]), distribution_named(head[2]), row[0]), servers);
      }
      const std::string key = from_hex(row[1]);
      EXPECT_EQ(select(placement, key), to_number(row[column])) << table.head[column] << row[1];
      EXPECT_EQ(placement->explain(key).hashed_part, from_hex(row[2]));
    }
  }
}

TEST(PlacementVectors, MeetEveryRowWithEjectedServers) {
  const Table table = read_table("ejected.csv");
  const std::vector<std::string> keys = read_keys();
  const ServerLists lists = read_lists("ejected-lists.csv");
  ASSERT_GT(table.rows.size(), 100U);
  for (std::size_t column = 1; column < table.head.size(); ++column) {
    const std::vector<std::string> head = split(table.head[column], '/');
    const std::vector<ServerOptions>& servers = lists.find(head[1])->second;
    std::vector<bool> is_live(servers.size(), true);
    ASSERT_TRUE(head[2].starts_with("dead="));
    for (const std::string& dead : split(head[2].substr(5), '+')) {
      is_live[to_number(dead)] = false;
    }
    const auto placement =
        place(options_of(hash_named(head[0]), distribution_named(head[3])), servers, is_live);
    for (const auto& row : table.rows) {
      EXPECT_EQ(select(placement, keys[to_number(row[0])]), to_number(row[column]))
          << table.head[column] << ", key " << row[0];
    }
  }
}

TEST(PlacementVectors, MeetEveryRowOfUnixSockets) {
  const Table table = read_table("unix.csv");
  const std::vector<std::string> keys = read_keys();
  const ServerLists lists = {
      {"unix",
       servers_of({"/tmp/place-a.sock:1", "/tmp/place-bb.sock:1", "/tmp/place-ccc.sock:1"})},
      {"unix_named", servers_of({"/tmp/place-a.sock:1 n0", "/tmp/place-bb.sock:1 n1",
                                 "/tmp/place-ccc.sock:1 n2"})}};
  ASSERT_GT(table.rows.size(), 100U);
  for (std::size_t column = 1; column < table.head.size(); ++column) {
    const std::vector<std::string> head = split(table.head[column], '/');
    const auto placement = place(options_of(HashKind::Fnv1a_64, distribution_named(head[1])),
                                 lists.find(head[0])->second);
    for (const auto& row : table.rows) {
      EXPECT_EQ(select(placement, keys[to_number(row[0])]), to_number(row[column]))
          << table.head[column] << ", key " << row[0];
    }
  }
}

}  // namespace
}  // namespace kvferry::pool
