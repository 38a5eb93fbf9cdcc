#include "protocol/resp/request.h"

#include <gtest/gtest.h>

namespace kvferry::resp {
namespace {

std::string line_of(RequestError error, char found = 0) {
  std::string line;
  append_error_line({.error = error, .found = found}, line);
  return line;
}

TEST(RequestError, IsToldAsTheServerTellsIt) {
  EXPECT_EQ(line_of(RequestError::BadCount), "-ERR Protocol error: invalid multibulk length\r\n");
  EXPECT_EQ(line_of(RequestError::BadLength), "-ERR Protocol error: invalid bulk length\r\n");
  EXPECT_EQ(line_of(RequestError::NoBulk, ':'), "-ERR Protocol error: expected '$', got ':'\r\n");
  EXPECT_EQ(line_of(RequestError::CountLineTooLong),
            "-ERR Protocol error: too big mbulk count string\r\n");
  EXPECT_EQ(line_of(RequestError::LengthLineTooLong),
            "-ERR Protocol error: too big bulk count string\r\n");
  EXPECT_EQ(line_of(RequestError::InlineTooLong),
            "-ERR Protocol error: too big inline request\r\n");
  EXPECT_EQ(line_of(RequestError::UnbalancedQuotes),
            "-ERR Protocol error: unbalanced quotes in request\r\n");
  EXPECT_EQ(line_of(RequestError::UnknownClientCount),
            "-ERR Protocol error: unauthenticated multibulk length\r\n");
  EXPECT_EQ(line_of(RequestError::UnknownClientLength),
            "-ERR Protocol error: unauthenticated bulk length\r\n");
  EXPECT_EQ(line_of(RequestError::NoLineEnd), "-ERR Protocol error: expected CRLF after bulk\r\n");
}

TEST(RequestError, StaysOneLine) {
  EXPECT_EQ(line_of(RequestError::NoBulk, '\n'), "-ERR Protocol error: expected '$', got ' '\r\n");
  EXPECT_EQ(line_of(RequestError::NoBulk, '\r'), "-ERR Protocol error: expected '$', got ' '\r\n");
}

TEST(RequestError, SaysNothingToABrowser) {
  EXPECT_EQ(line_of(RequestError::Browser), "");
}

}  // namespace
}  // namespace kvferry::resp
