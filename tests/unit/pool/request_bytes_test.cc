#include "pool/request_bytes.h"

#include <gtest/gtest.h>

#include "protocol/memcache/request_parser.h"

namespace kvferry::pool {
namespace {

/// What `unmute` makes of the request that `bytes` hold.
std::string unmuted(std::string_view bytes) {
  memcache::RequestParser parser{memcache::ParserLimits{}};
  const auto parsed = parser.parse(bytes);
  if (!parsed.is_done()) {
    return "<not parsed>";
  }
  EXPECT_TRUE(must_unmute(parsed.value())) << bytes;
  std::string scratch = "old";
  return std::string(unmute(parsed.value(), scratch));
}

TEST(RequestBytes, LoudRequestsNeedNoRewriting) {
  for (const std::string_view bytes : {"get noreply\r\n", "set k 0 0 1\r\nq\r\n", "mg q v\r\n",
                                       "ms k 1 t0\r\nq\r\n", "mg k Oq\r\n"}) {
    memcache::RequestParser parser{memcache::ParserLimits{}};
    const auto parsed = parser.parse(bytes);
    ASSERT_TRUE(parsed.is_done()) << bytes;
    EXPECT_FALSE(must_unmute(parsed.value())) << bytes;
  }
}

TEST(RequestBytes, LosesTheWordThatAsksForSilenceAndNothingElse) {
  const struct {
    const char* bytes;
    const char* wanted;
  } table[] = {
      {"set k 5 60 3 noreply\r\nabc\r\n", "set k 5 60 3\r\nabc\r\n"},
      {"set k 5 60 7 noreply\r\nnoreply\r\n", "set k 5 60 7\r\nnoreply\r\n"},
      {"set noreply 0 0 1 noreply\r\nx\r\n", "set noreply 0 0 1\r\nx\r\n"},
      {"set k 0 0 0 noreply\r\n\r\n", "set k 0 0 0\r\n\r\n"},
      {"cas k 0 0 1 99 noreply\r\nx\r\n", "cas k 0 0 1 99\r\nx\r\n"},
      {"delete k noreply\r\n", "delete k\r\n"},
      {"incr k 5 noreply\r\n", "incr k 5\r\n"},
      {"touch k 5 noreply\r\n", "touch k 5\r\n"},
      {"flush_all noreply\r\n", "flush_all\r\n"},
      {"flush_all 10 noreply\r\n", "flush_all 10\r\n"},
      {"mg k v q\r\n", "mg k v\r\n"},
      {"mg k q v\r\n", "mg k v\r\n"},
      {"mg q q v\r\n", "mg q v\r\n"},
      {"mg k Oq q\r\n", "mg k Oq\r\n"},
      {"md q q\r\n", "md q\r\n"},
      {"ma k q D5\r\n", "ma k D5\r\n"},
      {"ms k 1 q T9\r\nq\r\n", "ms k 1 T9\r\nq\r\n"},
      {"ms q 1 q\r\nq\r\n", "ms q 1\r\nq\r\n"},
      {"delete  k   noreply \r\n", "delete k\r\n"},
      {"delete k noreply\n", "delete k\r\n"},
      // What is left of several would silence the server, and the next reply would answer this
      // request.
      {"delete k noreply noreply\r\n", "delete k\r\n"},
      {"touch k 5 noreply  noreply\r\n", "touch k 5\r\n"},
      {"incr k xnoreply noreply\r\n", "incr k xnoreply\r\n"},
      {"md k q q\r\n", "md k\r\n"},
      {"mg k q v q2\r\n", "mg k v\r\n"},
  };
  for (const auto& row : table) {
    EXPECT_EQ(unmuted(row.bytes), row.wanted);
  }
}

TEST(RequestBytes, OfAStreamedValueGivesTheLineOnly) {
  EXPECT_EQ(unmuted("set k 0 0 100000 noreply\r\nbegin of a value"), "set k 0 0 100000\r\n");
}

}  // namespace
}  // namespace kvferry::pool
