#include "base/json_text.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace kvferry::base {
namespace {

using std::string_view_literals::operator""sv;

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(JsonText, PassesPlainTextAndUtf8) {
  EXPECT_EQ(quoted(""), R"("")");
  EXPECT_EQ(quoted("pool a/b"), R"("pool a/b")");
  EXPECT_EQ(quoted("caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x9A\xA2"),
            "\"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x9A\xA2\"");
}

TEST(JsonText, EscapesQuotesBackslashesAndControlCharacters) {
  EXPECT_EQ(quoted("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(quoted("a\nb\rc\td"), R"("a\nb\rc\td")");
  EXPECT_EQ(quoted("\0\x1f\x7f"sv), R"("\u0000\u001f\u007f")");
}

TEST(JsonText, ShowsBytesThatAreNoUtf8AsHex) {
  EXPECT_EQ(quoted("\xff"), R"("\\xff")");
  EXPECT_EQ(quoted("a\xC3"), R"("a\\xc3")");
}

TEST(Utf8, KnowsTheEdgesOfEveryForm) {
  struct Case {
    std::string_view bytes;
    std::size_t size;
  };
  const Case cases[] = {
      {"", 0},
      {"\x7f", 1},
      {"\x80", 0},
      {"\xC1\xBF", 0},  // Overlong.
      {"\xC2\x80", 2},
      {"\xDF\xBF", 2},
      {"\xC2\x7F", 0},
      {"\xE0\x9F\xBF", 0},  // Overlong.
      {"\xE0\xA0\x80", 3},
      {"\xED\x9F\xBF", 3},
      {"\xED\xA0\x80", 0},  // A surrogate.
      {"\xE1\x80\x41", 0},
      {"\xF0\x8F\xBF\xBF", 0},  // Overlong.
      {"\xF0\x90\x80\x80", 4},
      {"\xF4\x8F\xBF\xBF", 4},
      {"\xF4\x90\x80\x80", 0},  // Above U+10FFFF.
      {"\xF5\x80\x80\x80", 0},
      {"\xF1\x80\x80", 0},
      {"\xF1\x80\x80\xC0", 0},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(utf8_character_bytes(one.bytes), one.size) << quoted(one.bytes);
  }
}

}  // namespace
}  // namespace kvferry::base
