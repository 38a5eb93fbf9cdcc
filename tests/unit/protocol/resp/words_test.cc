#include "protocol/resp/words.h"

#include <gtest/gtest.h>

namespace kvferry::resp {
namespace {

TEST(RespWords, AreTheSameInAnyCase) {
  EXPECT_TRUE(is_word("setname", "setname"));
  EXPECT_TRUE(is_word("SetName", "setname"));
  EXPECT_TRUE(is_word("LIB-VER", "lib-ver"));
  EXPECT_TRUE(is_word("", ""));
}

TEST(RespWords, DifferByAnyOtherByte) {
  EXPECT_FALSE(is_word("setnam", "setname"));
  EXPECT_FALSE(is_word("setnamee", "setname"));
  // Letters only: '[' and '{' differ by the same bit.
  EXPECT_FALSE(is_word("[", "{"));
  EXPECT_FALSE(is_word("LIB\rVER", "lib-ver"));
}

}  // namespace
}  // namespace kvferry::resp
