#include "protocol/resp/short_reply.h"

#include <string>

#include <gtest/gtest.h>

#include "protocol/resp/reply_scanner.h"

namespace kvferry::resp {
namespace {

TEST(ShortReply, FindsWhatIsShortAndWhole) {
  for (const char* reply : {"+OK\r\n", "-ERR x\r\n", ":7\r\n", "$-1\r\n", "$0\r\n\r\n",
                            "$3\r\na\r\n\r\n", "+\r\n", "$12\r\n123456789012\r\n"}) {
    const std::string bytes = std::string(reply) + "+next\r\n";
    EXPECT_EQ(short_reply_size(bytes), std::string(reply).size()) << reply;
  }
}

TEST(ShortReply, LeavesTheRestToTheScanner) {
  for (const char* bytes : {"*1\r\n:1\r\n", "_\r\n", "+OK", "+OK\n", "$", "$3\r\nab", "$3\r\nabc\r",
                            "$03\r\nabc\r\n", "$3\r\nabcd\r\n", "$-2\r\n", "$1234567\r\n", "x"}) {
    EXPECT_EQ(short_reply_size(bytes), 0U) << bytes;
  }
  EXPECT_EQ(short_reply_size("+" + std::string(kShortLineBytesMax, 'x') + "\r\n"), 0U);
}

/// All texts of up to seven bytes from a small alphabet.
TEST(ShortReply, AgreesWithTheScanner) {
  constexpr std::string_view kAlphabet = "$+:-01\r\n";
  for (std::uint32_t number = 0; number < (1U << 21U); ++number) {
    std::string bytes;
    for (std::uint32_t rest = number, i = 0; i < 7; ++i, rest >>= 3U) {
      bytes += kAlphabet[rest & 7U];
    }
    const std::size_t size = short_reply_size(bytes);
    if (size != 0) {
      ReplyScanner scanner;
      const ReplyScanner::Scan scan = scanner.scan(bytes);
      ASSERT_EQ(scan.state, ReplyScanner::State::End) << bytes;
      ASSERT_EQ(scan.taken_bytes, size) << bytes;
    }
  }
}

}  // namespace
}  // namespace kvferry::resp
