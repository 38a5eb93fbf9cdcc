#include "protocol/resp/request_writer.h"

#include <vector>

#include <gtest/gtest.h>

#include "protocol/resp/request_parser.h"

namespace kvferry::resp {
namespace {

TEST(RespRequestWriter, WritesArraysOfBulkStrings) {
  std::string bytes = "before";
  const std::vector<std::string_view> args = {"SET", "", "a\r\nb"};
  append_request(args, bytes);
  EXPECT_EQ(bytes, "before*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\na\r\nb\r\n");
}

TEST(RespRequestWriter, WritesWhatTheParserReads) {
  const std::string long_word(12345, 'x');
  const std::vector<std::string_view> args = {"MSET", "k", long_word, "l",
                                              std::string_view("\0\1", 2)};
  std::string bytes;
  append_request(args, bytes);
  RequestParser parser({});
  const auto parsed = parser.parse(bytes);
  ASSERT_TRUE(parsed.is_done());
  EXPECT_EQ(std::vector(parsed.value().args.begin(), parsed.value().args.end()), args);
  EXPECT_EQ(parsed.value().size_bytes, bytes.size());
}

}  // namespace
}  // namespace kvferry::resp
