#include "protocol/resp/integer.h"

#include <limits>

#include <gtest/gtest.h>

namespace kvferry::resp {
namespace {

TEST(Integer, IsReadWhole) {
  const struct {
    const char* text;
    std::int64_t number;
  } table[] = {{"0", 0},
               {"7", 7},
               {"-1", -1},
               {"1000000", 1000000},
               {"9223372036854775807", std::numeric_limits<std::int64_t>::max()},
               {"-9223372036854775808", std::numeric_limits<std::int64_t>::min()}};
  for (const auto& row : table) {
    std::int64_t number = 5;
    EXPECT_TRUE(read_integer(row.text, number)) << row.text;
    EXPECT_EQ(number, row.number);
  }
}

TEST(Integer, IsNothingElse) {
  for (const char* text : {"", "-", "+1", " 1", "1 ", "01", "-01", "-0", "00", "1x", "x", "0x10",
                           "1.0", "9223372036854775808", "-9223372036854775809"}) {
    std::int64_t number = 0;
    EXPECT_FALSE(read_integer(text, number)) << text;
  }
}

}  // namespace
}  // namespace kvferry::resp
