#include "protocol/redis_commands/glob.h"

#include <string>

#include <gtest/gtest.h>

namespace kvferry::redis {
namespace {

bool matches(std::string_view pattern, std::string_view text) {
  return matches_glob(pattern, text, LetterCase::Matters);
}

TEST(Glob, MatchesAsTheServerDoes) {
  struct Case {
    std::string_view pattern;
    std::string_view text;
    bool is_match;
  };
  for (const Case& one : {
           Case{"", "", true},
           Case{"", "a", false},
           Case{"*", "", true},
           Case{"**", "abc", true},
           Case{"a*", "abc", true},
           Case{"*c", "abc", true},
           Case{"*b*", "abc", true},
           Case{"a*d", "abc", false},
           Case{"a?c", "abc", true},
           Case{"?", "", false},
           Case{"h[ae]llo", "hello", true},
           Case{"h[ae]llo", "hillo", false},
           Case{"h[^e]llo", "hallo", true},
           Case{"h[^e]llo", "hello", false},
           Case{"h[a-c]llo", "hbllo", true},
           Case{"h[c-a]llo", "hbllo", true},
           Case{"h[a-c]llo", "hdllo", false},
           Case{"\\*", "*", true},
           Case{"\\*", "a", false},
           Case{"[\\]]", "]", true},
           Case{"[abc", "c", true},
           Case{"\\", "\\", true},
           Case{"*ab*ab*c", "ababab_c", true},
           Case{"*aab", "aaaab", true},
           Case{"A", "a", false},
           Case{"[]", "a", false},
           Case{"[^]", "a", true},
       }) {
    EXPECT_EQ(matches(one.pattern, one.text), one.is_match) << one.pattern << " and " << one.text;
  }
}

TEST(Glob, MayIgnoreTheCaseOfLetters) {
  EXPECT_TRUE(matches_glob("GE[S-U]*", "getex", LetterCase::Ignored));
  EXPECT_FALSE(matches_glob("GE[S-U]*", "getex", LetterCase::Matters));
}

TEST(Glob, TakesLittleTimeForManyStars) {
  std::string pattern;
  for (int times = 0; times < 1000; ++times) {
    pattern += "*a";
  }
  EXPECT_FALSE(matches(pattern + "b", std::string(10'000, 'a')));
}

}  // namespace
}  // namespace kvferry::redis
