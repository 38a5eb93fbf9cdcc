#include "pool/redis_merge.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace kvferry::pool {
namespace {

using redis::Merge;

std::optional<std::string> merged(Merge merge, const std::vector<std::string>& replies) {
  std::string out = "rest of another";
  if (!merge_replies(merge, replies, out)) {
    return std::nullopt;
  }
  return out;
}

TEST(RedisMerge, MergesWhatBackendsSay) {
  const struct {
    Merge merge;
    std::vector<std::string> replies;
    const char* merged;
  } table[] = {
      {Merge::AllOk, {"+OK\r\n", "+OK\r\n"}, "+OK\r\n"},
      {Merge::Sum, {":1\r\n", ":-3\r\n", ":5000000000\r\n"}, ":4999999998\r\n"},
      {Merge::Minimum, {":7\r\n", ":3\r\n", ":9\r\n"}, ":3\r\n"},
      {Merge::FirstOfAll, {"$1\r\na\r\n", "$1\r\nb\r\n"}, "$1\r\na\r\n"},
      {Merge::Concatenated,
       {"*2\r\n$1\r\na\r\n$1\r\nb\r\n", "*0\r\n", "*1\r\n$1\r\na\r\n"},
       "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\na\r\n"},
      {Merge::Union,
       {"*2\r\n$1\r\nb\r\n$1\r\na\r\n", "*2\r\n$1\r\na\r\n$1\r\nc\r\n"},
       "*3\r\n$1\r\nb\r\n$1\r\na\r\n$1\r\nc\r\n"},
      {Merge::SumByName,
       {"*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n", "*4\r\n$1\r\na\r\n:10\r\n$1\r\nb\r\n:0\r\n"},
       "*4\r\n$1\r\na\r\n:11\r\n$1\r\nb\r\n:2\r\n"},
      {Merge::LogicalAnd,
       {"*3\r\n:1\r\n:1\r\n:0\r\n", "*3\r\n:1\r\n:0\r\n:1\r\n"},
       "*3\r\n:1\r\n:0\r\n:0\r\n"},
      {Merge::FirstRunning,
       {"*4\r\n$14\r\nrunning_script\r\n$-1\r\n$7\r\nengines\r\n*0\r\n",
        "*4\r\n$14\r\nrunning_script\r\n*2\r\n$4\r\nname\r\n$1\r\nf\r\n$7\r\nengines\r\n*0\r\n"},
       "*4\r\n$14\r\nrunning_script\r\n*2\r\n$4\r\nname\r\n$1\r\nf\r\n$7\r\nengines\r\n*0\r\n"},
      {Merge::FirstRunning,
       {"%1\r\n$14\r\nrunning_script\r\n_\r\n", "%1\r\n$14\r\nrunning_script\r\n_\r\n"},
       "%1\r\n$14\r\nrunning_script\r\n_\r\n"},
  };
  for (const auto& row : table) {
    EXPECT_EQ(merged(row.merge, row.replies), row.merged) << static_cast<int>(row.merge);
  }
}

TEST(RedisMerge, RefusesWhatDoesNotFit) {
  const struct {
    Merge merge;
    std::vector<std::string> replies;
  } table[] = {
      {Merge::AllOk, {"+OK\r\n", "+QUEUED\r\n"}},
      {Merge::Sum, {":1\r\n", "+OK\r\n"}},
      {Merge::Minimum, {":1\r\n", ":x\r\n"}},
      {Merge::Concatenated, {"*1\r\n:1\r\n", ":1\r\n"}},
      {Merge::Union, {"*2\r\n:1\r\n"}},
      {Merge::SumByName, {"*1\r\n$1\r\na\r\n"}},
      {Merge::SumByName, {"*2\r\n$1\r\na\r\n$1\r\nb\r\n"}},
      {Merge::LogicalAnd, {"*1\r\n:1\r\n", "*2\r\n:1\r\n:1\r\n"}},
      {Merge::Cursor, {"*0\r\n"}},
  };
  for (const auto& row : table) {
    EXPECT_EQ(merged(row.merge, row.replies), std::nullopt) << static_cast<int>(row.merge);
  }
}

}  // namespace
}  // namespace kvferry::pool
