#include "config/scalar.h"

#include <gtest/gtest.h>

namespace kvferry::config {
namespace {

using State = WholeNumber::State;

TEST(Scalar, ReadsWholeNumbersInDecimalOnly) {
  EXPECT_EQ(parse_whole("512").value, 512);
  EXPECT_EQ(parse_whole("0400").value, 400);
  EXPECT_EQ(parse_whole("-1").value, -1);
  EXPECT_EQ(parse_whole("9223372036854775807").state, State::Good);
  EXPECT_EQ(parse_whole("9223372036854775808").state, State::TooLarge);
  for (const char* text : {"", "-", "+1", "1e3", "0x10", "1 ", " 1", "5k", "1.0", "--1", "yes"}) {
    EXPECT_EQ(parse_whole(text).state, State::NotNumber) << text;
  }
}

TEST(Scalar, TakesTrueAndFalseExactly) {
  EXPECT_EQ(parse_bool("true"), true);
  EXPECT_EQ(parse_bool("false"), false);
  for (const char* text : {"True", "yes", "on", "1", "", "true "}) {
    EXPECT_EQ(parse_bool(text), std::nullopt) << text;
  }
}

TEST(Scalar, ReadsTimesWithUnits) {
  EXPECT_EQ(parse_millis("400ms", true).value, 400);
  EXPECT_EQ(parse_millis("2s", true).value, 2000);
  EXPECT_EQ(parse_millis("5m", true).value, 300000);
  EXPECT_EQ(parse_millis("1h", true).value, 3600000);
  EXPECT_EQ(parse_millis("400", false).value, 400);
  EXPECT_EQ(parse_millis("400", true).state, State::NotNumber);
  EXPECT_EQ(parse_millis("ms", false).state, State::NotNumber);
  EXPECT_EQ(parse_millis("1 s", false).state, State::NotNumber);
  EXPECT_EQ(parse_millis("9223372036854775807h", false).state, State::TooLarge);
  EXPECT_EQ(parse_millis("-9223372036854775807h", false).state, State::TooLarge);
}

TEST(Scalar, ReadsSizesInUnitsOf1024) {
  EXPECT_EQ(parse_bytes("65536").value, 65536);
  EXPECT_EQ(parse_bytes("16kb").value, 16384);
  EXPECT_EQ(parse_bytes("16mb").value, 16777216);
  EXPECT_EQ(parse_bytes("2gb").value, 2147483648);
  EXPECT_EQ(parse_bytes("2GB").state, State::NotNumber);
  EXPECT_EQ(parse_bytes("2gib").state, State::NotNumber);
  EXPECT_EQ(parse_bytes("9223372036854775807kb").state, State::TooLarge);
}

TEST(Scalar, WritesWhatItReads) {
  for (const std::int64_t millis : {1, 999, 1000, 1500, 60000, 61000, 3600000, 86400000}) {
    EXPECT_EQ(parse_millis(millis_text(millis), true).value, millis);
  }
  EXPECT_EQ(millis_text(0), "0s");
  EXPECT_EQ(millis_text(90000), "90s");
  for (const std::int64_t bytes : {0, 1, 1023, 1024, 1048576, 1048577, 1073741824}) {
    EXPECT_EQ(parse_bytes(bytes_text(static_cast<std::uint64_t>(bytes))).value, bytes);
  }
  EXPECT_EQ(bytes_text(1536 * 1024), "1536kb");
}

}  // namespace
}  // namespace kvferry::config
