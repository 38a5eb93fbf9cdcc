#include "protocol/memcache/storage_args.h"

#include <string>

#include <gtest/gtest.h>

#include "protocol/memcache/number.h"
#include "protocol/memcache/request_parser.h"

namespace kvferry::memcache {
namespace {

/// The request at the front of `bytes`, which must be whole and well formed.
Request request_of(std::string_view bytes) {
  RequestParser parser{ParserLimits{}};
  const auto parsed = parser.parse(bytes);
  return parsed.is_done() ? parsed.value() : Request{};
}

TEST(StorageArgs, ReadsNumbersUpToTheirLimits) {
  const StorageArgs args = parse_storage_args(request_of("set k 4294967295 2147483647 1\r\nx\r\n"));
  EXPECT_EQ(args.error, ArgsError::None);
  EXPECT_EQ(args.client_flags, 4294967295U);
  EXPECT_EQ(args.exptime, 2147483647);
  EXPECT_EQ(parse_storage_args(request_of("set k 0 -2147483648 1\r\nx\r\n")).exptime, INT32_MIN);
  const StorageArgs cas =
      parse_storage_args(request_of("cas k 7 0 1 18446744073709551615 noreply\r\nx\r\n"));
  EXPECT_EQ(cas.error, ArgsError::None);
  EXPECT_EQ(cas.cas_unique, UINT64_MAX);
}

TEST(StorageArgs, RefusesNumbersOutOfRangeAndOtherWords) {
  for (const std::string_view line :
       {"set k 4294967296 0 1", "set k -1 0 1", "set k x 0 1", "set k 0 2147483648 1",
        "set k 0 -2147483649 1", "set k 0 99999999999 1", "set k 0 x 1", "set k 0 1.5 1",
        "set k 1x 0 1", "cas k 0 0 1", "cas k 0 0 1 x", "cas k 0 0 1 -1", "cas k 0 0 1 noreply",
        "cas k 0 0 1 18446744073709551616"}) {
    const std::string bytes = std::string(line) + "\r\nx\r\n";
    EXPECT_EQ(parse_storage_args(request_of(bytes)).error, ArgsError::BadLine) << line;
  }
}

TEST(ArithArgs, ReadsA64BitDelta) {
  EXPECT_EQ(parse_arith_args(request_of("incr k 18446744073709551615\r\n")).delta, UINT64_MAX);
  for (const std::string_view line : {"incr k x\r\n", "incr k -1\r\n", "decr k 1.5\r\n",
                                      "incr k 18446744073709551616\r\n", "incr k noreply\r\n"}) {
    EXPECT_EQ(parse_arith_args(request_of(line)).error, ArgsError::BadDelta) << line;
  }
}

TEST(TouchArgs, ReadsTheExptimeOfTouchAndGat) {
  EXPECT_EQ(parse_touch_args(request_of("touch k -1\r\n")).exptime, -1);
  EXPECT_EQ(parse_touch_args(request_of("gat 60 k 5\r\n")).exptime, 60);
  EXPECT_EQ(parse_touch_args(request_of("gats 0 k\r\n")).error, ArgsError::None);
  for (const std::string_view line :
       {"touch k x\r\n", "gat x k\r\n", "gats 1.5 k\r\n", "touch k 99999999999\r\n"}) {
    EXPECT_EQ(parse_touch_args(request_of(line)).error, ArgsError::BadExptime) << line;
  }
}

TEST(ArgsErrorLine, IsWhatMemcachedAnswers) {
  EXPECT_EQ(args_error_line(ArgsError::BadLine), "CLIENT_ERROR bad command line format\r\n");
  EXPECT_EQ(args_error_line(ArgsError::BadExptime), "CLIENT_ERROR invalid exptime argument\r\n");
  EXPECT_EQ(args_error_line(ArgsError::BadDelta),
            "CLIENT_ERROR invalid numeric delta argument\r\n");
  EXPECT_EQ(args_error_line(ArgsError::None), "");
}

TEST(ValueLength, IsReadUpToItsLimit) {
  std::uint64_t bytes = 99;
  EXPECT_TRUE(read_value_length("9", 10, bytes) && bytes == 9);
  EXPECT_TRUE(read_value_length("10", 10, bytes) && bytes == 10);
  EXPECT_TRUE(read_value_length("0", 10, bytes) && bytes == 0);
  for (const std::string_view text : {"", "11", "-1", "+1", "1 ", "0x1", "99999999999999999999"}) {
    EXPECT_FALSE(read_value_length(text, 10, bytes)) << text;
  }
}

}  // namespace
}  // namespace kvferry::memcache
