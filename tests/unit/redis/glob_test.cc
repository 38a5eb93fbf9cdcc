#include "redis/glob.h"

#include <string>

#include <gtest/gtest.h>

namespace kvferry::redis {
namespace {

TEST(Glob, FitsOrNot) {
  const struct {
    const char* pattern;
    const char* text;
    bool fits;
  } table[] = {
      {"", "", true},
      {"", "a", false},
      {"*", "", true},
      {"*", "anything", true},
      {"**", "a", true},
      {"a*", "abc", true},
      {"a*", "bc", false},
      {"*c", "abc", true},
      {"*b*", "abc", true},
      {"a*c*e", "abcde", true},
      {"a*c*f", "abcde", false},
      {"?", "a", true},
      {"?", "", false},
      {"h?llo", "hello", true},
      {"h?llo", "hllo", false},
      {"h[ae]llo", "hallo", true},
      {"h[ae]llo", "hillo", false},
      {"h[^e]llo", "hallo", true},
      {"h[^e]llo", "hello", false},
      {"h[a-c]llo", "hbllo", true},
      {"h[c-a]llo", "hbllo", true},
      {"h[a-c]llo", "hdllo", false},
      {"[\\]]", "]", true},
      {"[a\\-c]", "b", false},
      {"[a\\-c]", "-", true},
      {"[abc", "c", true},
      {"[", "a", false},
      {"\\*", "*", true},
      {"\\*", "a", false},
      {"a\\", "a\\", true},
      {"*[0-9]", "key:7", true},
      {"key:*:end", "key:1:end:2:end", true},
  };
  for (const auto& row : table) {
    EXPECT_EQ(matches_glob(row.pattern, row.text), row.fits) << row.pattern << " " << row.text;
  }
}

TEST(Glob, TakesNoTimeForManyStars) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) {
    pattern += "a*";
  }
  EXPECT_FALSE(matches_glob(pattern + "b", std::string(10'000, 'a')));
}

}  // namespace
}  // namespace kvferry::redis
