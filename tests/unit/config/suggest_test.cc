#include "config/suggest.h"

#include <array>

#include <gtest/gtest.h>

namespace kvferry::config {
namespace {

TEST(Suggest, CountsSingleChangesAndSwaps) {
  EXPECT_EQ(edit_distance("timeout", "timeout"), 0U);
  EXPECT_EQ(edit_distance("tiemout", "timeout"), 1U);
  EXPECT_EQ(edit_distance("timeut", "timeout"), 1U);
  EXPECT_EQ(edit_distance("timeouts", "timeout"), 1U);
  EXPECT_EQ(edit_distance("tymeoud", "timeout"), 2U);
  EXPECT_EQ(edit_distance("", "ab"), 2U);
}

TEST(Suggest, StopsCountingBeyondItsLimit) {
  EXPECT_EQ(edit_distance("abc", "xyz"), kSuggestDistanceMax + 1);
  EXPECT_EQ(edit_distance("a", "abcdefgh"), kSuggestDistanceMax + 1);
}

TEST(Suggest, PrefersTheNearestThenTheSameLength) {
  constexpr std::array<std::string_view, 4> kWords = {"murmur", "murmur3", "md5", "hsieh"};
  EXPECT_EQ(suggest("murmur4", kWords), "murmur3");
  EXPECT_EQ(suggest("murmr", kWords), "murmur");
  EXPECT_EQ(suggest("hseih", kWords), "hsieh");
}

TEST(Suggest, SaysNothingWhenNothingIsNear) {
  constexpr std::array<std::string_view, 2> kWords = {"log", "workers"};
  EXPECT_EQ(suggest("colour", kWords), "");
  EXPECT_EQ(suggest("", kWords), "");
  // Two changes of three characters are another word.
  EXPECT_EQ(suggest("lxy", kWords), "");
}

}  // namespace
}  // namespace kvferry::config
