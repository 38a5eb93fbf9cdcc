#include "front/credentials.h"

#include <gtest/gtest.h>

namespace kvferry::front {
namespace {

TEST(Credentials, AllowsWhomTheFileNames) {
  const auto credentials = Credentials::parse("alice:secret\r\n\nbob:a:b c\n");
  ASSERT_TRUE(credentials.has_value());
  EXPECT_TRUE(credentials->allow("alice secret"));
  EXPECT_TRUE(credentials->allow("bob a:b c"));
  for (const char* wrong : {"", "alice", "alice:secret", "alice secre", "alice secrets",
                            "Alice secret", "bob secret", "alice secret\r"}) {
    EXPECT_FALSE(credentials->allow(wrong)) << wrong;
  }
}

TEST(Credentials, AnEmptyPasswordIsAPassword) {
  const auto credentials = Credentials::parse("a:");
  ASSERT_TRUE(credentials.has_value());
  EXPECT_TRUE(credentials->allow("a "));
  EXPECT_FALSE(credentials->allow("a"));
}

TEST(Credentials, RefusesAFileThatNamesNobody) {
  for (const char* text : {"", "\n\n", "alice\n", "alice:secret\nbob\n", ":secret\n"}) {
    EXPECT_FALSE(Credentials::parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace kvferry::front
