#include "route/inspector.h"

#include <gtest/gtest.h>

namespace kvferry::route {
namespace {

/// A result as a test writes it.
std::string shown(const InspectValue& value) {
  switch (value.kind) {
    case InspectValue::Kind::Nothing:
      return "nil";
    case InspectValue::Kind::Boolean:
      return value.is_true ? "true" : "false";
    case InspectValue::Kind::Integer:
      return std::to_string(value.integer);
    case InspectValue::Kind::Text:
      break;
  }
  return "[" + std::string(value.text) + "]";
}

std::string shown(const InspectStep& step, const InspectValues& values) {
  return result_count(step.kind) == 1 ? shown(values[0])
                                      : shown(values[0]) + " " + shown(values[1]);
}

std::string of_request(const InspectStep& step, std::string_view line) {
  RouteRequest request;
  EXPECT_TRUE(request.assign(std::string(line) + "\r\n", "")) << line;
  return shown(step, inspect(step, request));
}

std::string of_reply(const InspectStep& step, std::string_view line) {
  RouteReply reply;
  EXPECT_TRUE(reply.assign(std::string(line) + "\r\n", "")) << line;
  return shown(step, inspect(step, reply));
}

TEST(Inspector, CutsKeysIntoPieces) {
  const struct {
    const char* key;
    const char* pieces;  // 1 to 4
  } table[] = {
      {"foo/bar/baz", "[foo] [bar] [baz] nil "},  {"foo", "[foo] nil nil nil "},
      {"/foo/bar", "[foo] [bar] nil nil "},       {"foo//bar", "[foo] nil [bar] nil "},
      {"foo/bar/baz/", "[foo] [bar] [baz] nil "}, {"a:b/c", "[a:b] [c] nil nil "},
      {"///a/b/c", "[a] [b] [c] nil "},           {"/", "nil nil nil nil "},
  };
  for (const auto& row : table) {
    std::string pieces;
    for (int i = 1; i <= 4; ++i) {
      const InspectStep step{.kind = InspectKind::KeyPiece, .position = i};
      pieces += of_request(step, std::string("mg ") + row.key) + " ";
    }
    EXPECT_EQ(pieces, row.pieces) << row.key;
  }
  const InspectStep colon{.kind = InspectKind::KeyPiece, .separator = ':', .position = 2};
  EXPECT_EQ(of_request(colon, "get a:b/c"), "[b/c]");
  for (const std::int64_t position :
       {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(),
        std::numeric_limits<std::int64_t>::max()}) {
    const InspectStep step{.kind = InspectKind::KeyPiece, .position = position};
    EXPECT_EQ(of_request(step, "mg foo/bar"), "nil");
  }
  EXPECT_EQ(of_request(InspectStep{.kind = InspectKind::KeyPiece}, "version"), "nil");
}

TEST(Inspector, ComparesKeys) {
  const InspectStep begins{.kind = InspectKind::KeyBegins, .text = "foo"};
  const InspectStep is{.kind = InspectKind::KeyIs, .text = "foo"};
  const struct {
    const char* line;
    const char* begins;
    const char* is;
  } table[] = {
      {"mg foobar", "true", "false"},  {"mg foo", "false", "true"},   {"mg fo", "false", "false"},
      {"get foobar", "true", "false"}, {"mg xfoo", "false", "false"}, {"mn", "false", "false"},
  };
  for (const auto& row : table) {
    EXPECT_EQ(of_request(begins, row.line), row.begins) << row.line;
    EXPECT_EQ(of_request(is, row.line), row.is) << row.line;
  }
}

TEST(Inspector, ReadsFlagsOfRequestsAndReplies) {
  const struct {
    InspectStep step;
    const char* flags;
    const char* result;
  } table[] = {
      {{.kind = InspectKind::HasFlag, .letter = 'W'}, "Oabc W", "true"},
      {{.kind = InspectKind::HasFlag, .letter = 'W'}, "Oabc w", "false"},
      {{.kind = InspectKind::FlagToken, .letter = 'O'}, "t Oabc", "true [abc]"},
      {{.kind = InspectKind::FlagToken, .letter = 'O'}, "O", "true []"},
      {{.kind = InspectKind::FlagToken, .letter = 'O'}, "t", "false nil"},
      {{.kind = InspectKind::FlagInteger, .letter = 't'}, "t60", "true 60"},
      {{.kind = InspectKind::FlagInteger, .letter = 't'}, "t-1", "true -1"},
      {{.kind = InspectKind::FlagInteger, .letter = 't'}, "t6x", "true nil"},
      {{.kind = InspectKind::FlagInteger, .letter = 't'}, "t9223372036854775808", "true nil"},
      {{.kind = InspectKind::FlagInteger, .letter = 't'}, "v", "false nil"},
      {{.kind = InspectKind::FlagIs, .letter = 'f', .text = "7"}, "f7", "true true"},
      {{.kind = InspectKind::FlagIs, .letter = 'f', .text = "7"}, "f8", "true false"},
      {{.kind = InspectKind::FlagIs, .letter = 'f', .text = "7"}, "t", "false nil"},
  };
  for (const auto& row : table) {
    EXPECT_EQ(of_request(row.step, std::string("mg k ") + row.flags), row.result) << row.flags;
    EXPECT_EQ(of_reply(row.step, std::string("HD ") + row.flags), row.result) << row.flags;
  }
}

TEST(Inspector, FindsNoFlagsWhereThereAreNone) {
  const InspectStep step{.kind = InspectKind::FlagToken, .letter = 'k'};
  EXPECT_EQ(of_request(step, "get k k"), "false nil");
  EXPECT_EQ(of_reply(step, "NOT_FOUND"), "false nil");
  EXPECT_EQ(of_reply(step, "SERVER_ERROR k"), "false nil");
  EXPECT_EQ(of_reply(step, "ME k k"), "false nil");
  EXPECT_EQ(of_reply({.kind = InspectKind::KeyPiece}, "HD kfoo"), "nil");
}

}  // namespace
}  // namespace kvferry::route
