// Placement against vectors that the real libmemcached gave (data/record_libmemcached.py).
#include <gtest/gtest.h>

#include "pool/placement.h"
#include "tests/unit/pool/placement_data.h"

namespace kvferry::pool {
namespace {

constexpr std::string_view kFolder = "/unit/pool/data/";

TEST(LibmemcachedPlacement, MeetsEveryRowWithAndWithoutWeights) {
  const Table table = read_table("libmemcached.csv", kFolder);
  const ServerLists lists = read_lists("libmemcached-lists.csv", kFolder);
  ASSERT_GT(table.rows.size(), 300U);
  ASSERT_GT(table.head.size(), 60U);
  for (std::size_t column = 1; column < table.head.size(); ++column) {
    const std::vector<std::string> head = split(table.head[column], '/');
    PlacementOptions options = options_of(hash_named(head[0]), DistributionKind::Ketama);
    options.naming = KetamaNaming::Libmemcached;
    options.weights_given = head[2] == "weighted";
    const auto placement = place(options, lists.find(head[1])->second);
    for (const auto& row : table.rows) {
      EXPECT_EQ(select(placement, from_hex(row[0])), to_number(row[column]))
          << table.head[column] << ", key " << row[0];
    }
  }
}

TEST(LibmemcachedPlacement, DiffersFromTwemproxysForUnixSockets) {
  // Guards the test above: were both labels alike, it would not notice a mix-up.
  const auto servers = servers_of({"/tmp/a.sock:1", "/tmp/b.sock:1", "/tmp/c.sock:1"});
  PlacementOptions options;
  const auto twemproxy = place(options, servers);
  options.naming = KetamaNaming::Libmemcached;
  const auto libmemcached = place(options, servers);
  int different = 0;
  for (int number = 0; number < 100; ++number) {
    const std::string key = "key:" + std::to_string(number);
    different += select(twemproxy, key) != select(libmemcached, key) ? 1 : 0;
  }
  EXPECT_GT(different, 0);
}

}  // namespace
}  // namespace kvferry::pool
