#include "protocol/resp/inline_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvferry::resp {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// The words; "unbalanced" alone when the line is refused.
std::vector<std::string> words_of(std::string_view line) {
  std::string bytes;
  std::vector<WordPlace> places;
  if (!read_inline_words(line, bytes, places)) {
    return {"unbalanced"};
  }
  std::vector<std::string> words;
  for (const WordPlace& place : places) {
    words.push_back(bytes.substr(place.begin, place.size));
  }
  return words;
}

TEST(InlineWords, AreSeparatedByBlanks) {
  EXPECT_THAT(words_of("  set\tkey   value \v\f"), ElementsAre("set", "key", "value"));
  EXPECT_THAT(words_of(""), IsEmpty());
  EXPECT_THAT(words_of(" \t "), IsEmpty());
  EXPECT_THAT(words_of("a\vb"), ElementsAre("a\vb")) << "ends no word";
}

TEST(InlineWords, MayBeQuotedWholeOrFromTheirMiddleOn) {
  EXPECT_THAT(words_of(R"("a key" 'another one' ab"c d" '')"),
              ElementsAre("a key", "another one", "abc d", ""));
  EXPECT_THAT(words_of(R"("it's" '"')"), ElementsAre("it's", "\""));
}

TEST(InlineWords, KnowEscapes) {
  EXPECT_THAT(words_of(R"("\n\r\t\b\a\\\"\q" "\x41\xfF\x4" '\'\n')"),
              ElementsAre("\n\r\t\b\a\\\"q", "A\xffx4", "'\\n"));
  EXPECT_THAT(words_of(R"("\x00")"), ElementsAre(std::string(1, '\0')));
}

TEST(InlineWords, AreRefusedWithUnbalancedQuotes) {
  for (const std::string_view line :
       {R"("open)", R"('open)", R"(a "b"c)", R"('a'b)", R"("a""b")", R"("a\")", R"("a\)"}) {
    EXPECT_THAT(words_of(line), ElementsAre("unbalanced")) << line;
  }
}

/// redis-server would wait for ever, since it takes the line for a text of C.
TEST(InlineWords, MayHaveANulInThem) {
  using std::string_view_literals::operator""sv;
  EXPECT_THAT(words_of("a b\0c d"sv), ElementsAre("a", std::string("b\0c"sv), "d"));
  EXPECT_THAT(words_of("\"a\0\""sv), ElementsAre(std::string("a\0"sv)));
}

}  // namespace
}  // namespace kvferry::resp
