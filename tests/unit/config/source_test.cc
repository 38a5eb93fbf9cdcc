#include "config/source.h"

#include <gtest/gtest.h>

namespace kvferry::config {
namespace {

TEST(Source, FindsLines) {
  const Source source("f", "one\r\ntwo\n\nfour");
  EXPECT_EQ(source.line(1), "one");
  EXPECT_EQ(source.line(2), "two");
  EXPECT_EQ(source.line(3), "");
  EXPECT_EQ(source.line(4), "four");
  EXPECT_EQ(source.line(5), "");
  EXPECT_EQ(source.line(0), "");
  EXPECT_EQ(source.line_of(0), 1U);
  EXPECT_EQ(source.line_of(5), 2U);
  EXPECT_EQ(source.line_of(1000), 4U);
}

TEST(Source, HidesSecretsHoweverTheyAreWritten) {
  const auto shown = [](std::string text) { return Source("f", std::move(text)).line(1); };
  EXPECT_EQ(shown("  redis_auth: hunter2"), "  redis_auth: ***");
  EXPECT_EQ(shown("  \"redis_auth\" : hunter2"), "  \"redis_auth\" : ***");
  EXPECT_EQ(shown("admin: {listen: x, token: hunter2}"), "admin: {listen: x, token: ***");
  EXPECT_EQ(shown("token: [a], password: b"), "token: ***");
}

TEST(Source, ShowsKeysThatOnlySoundLikeSecrets) {
  const auto shown = [](std::string text) { return Source("f", std::move(text)).line(1); };
  EXPECT_EQ(shown("tokens: 12345"), "tokens: 12345");
  EXPECT_EQ(shown("my_token: x"), "my_token: x");
  EXPECT_EQ(shown("hash: token"), "hash: token");
}

TEST(Source, HidesLinesThatContinueASecret) {
  const Source source("f", "admin:\n  token: \"hun\n    ter2\"\n  listen: x\n");
  EXPECT_EQ(source.line(3), "***");
  EXPECT_EQ(source.line(4), "  listen: x");
}

TEST(Source, ShowsWhatAPoolCalledUsersHolds) {
  const Source source("f", "users:\n  listen: x\n");
  EXPECT_EQ(source.line(2), "  listen: x");
}

TEST(Source, HidesLinesOnRequest) {
  Source source("f", "a\nb\nc\n");
  source.hide_lines(2, 2);
  EXPECT_EQ(source.line(1), "a");
  EXPECT_EQ(source.line(2), "***");
  EXPECT_EQ(source.line(3), "c");
}

}  // namespace
}  // namespace kvferry::config
