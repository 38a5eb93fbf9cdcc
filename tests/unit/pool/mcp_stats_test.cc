#include "pool/mcp_stats.h"

#include <gtest/gtest.h>

namespace kvferry::pool {
namespace {

using Bad = std::vector<std::pair<std::string, std::uint64_t>>;

TEST(McpStats, ListsLabelsThatHaveBadConnectionsAsLongAsTheyLive) {
  McpStats stats;
  auto one = stats.add_label("one");
  auto two = stats.add_label("two");
  EXPECT_EQ(stats.bad_links(), Bad{});
  two->bad_links.add(3);
  EXPECT_EQ(stats.bad_links(), (Bad{{"two", 3}}));
  one->bad_links.add(1);
  EXPECT_EQ(stats.bad_links(), (Bad{{"one", 1}, {"two", 3}}));
  two.reset();
  EXPECT_EQ(stats.bad_links(), (Bad{{"one", 1}}));
}

}  // namespace
}  // namespace kvferry::pool
