#include "base/result.h"

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/parsed.h"

namespace kvferry::base {
namespace {

Result<int> half_of(int number) {
  if (number % 2 != 0) {
    return Error(ErrorCode::InvalidInput, "an odd number has no half");
  }
  return number / 2;
}

Result<void> accept_only_zero(int number) {
  if (number != 0) {
    return Error(ErrorCode::Refused, "not zero");
  }
  return {};
}

TEST(Result, CarriesAValueOrAnError) {
  const Result<int> good = half_of(8);
  ASSERT_TRUE(good.has_value());
  EXPECT_TRUE(static_cast<bool>(good));
  EXPECT_EQ(good.value(), 4);
  EXPECT_EQ(*good, 4);

  const Result<int> bad = half_of(7);
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().code(), ErrorCode::InvalidInput);
  EXPECT_EQ(bad.error().text(), "an odd number has no half");
}

TEST(Result, OfNothingCarriesSuccessOrAnError) {
  EXPECT_TRUE(accept_only_zero(0).has_value());
  const Result<void> bad = accept_only_zero(1);
  EXPECT_FALSE(static_cast<bool>(bad));
  EXPECT_EQ(bad.error().code(), ErrorCode::Refused);
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> made(std::make_unique<int>(5));
  EXPECT_EQ(*made.value(), 5);
  const std::unique_ptr<int> taken = std::move(made).value();
  EXPECT_EQ(*taken, 5);
  Result<std::unique_ptr<int>> failed(Error(ErrorCode::NotFound, "no such thing"));
  const Error error = std::move(failed).error();
  EXPECT_EQ(error.text(), "no such thing");
}

TEST(Result, ReachesMembersThroughTheArrow) {
  Result<std::string> text(std::string("abc"));
  EXPECT_EQ(text->size(), 3U);
}

TEST(Error, FromErrnoSaysWhatAndWhy) {
  const Error error = Error::from_errno("open /x", ENOENT);
  EXPECT_EQ(error.code(), ErrorCode::System);
  EXPECT_EQ(error.text(), "open /x: No such file or directory");
}

TEST(ResultDeathTest, TheWrongSideIsABug) {
  EXPECT_DEATH(static_cast<void>(half_of(7).value()), "has_value");
  EXPECT_DEATH(static_cast<void>(half_of(8).error()), "has_value");
  EXPECT_DEATH(static_cast<void>(accept_only_zero(0).error()), "has_value");
}

TEST(Parsed, IsExactlyOneOfThree) {
  enum class Problem : unsigned char { None, TooLong };
  using Outcome = Parsed<int, Problem>;
  const Outcome done = Outcome::done(3);
  EXPECT_TRUE(done.is_done() && !done.is_need_more() && !done.is_failed());
  EXPECT_EQ(done.value(), 3);
  const Outcome more = Outcome::need_more();
  EXPECT_TRUE(!more.is_done() && more.is_need_more() && !more.is_failed());
  const Outcome failed = Outcome::failed(Problem::TooLong);
  EXPECT_TRUE(!failed.is_done() && !failed.is_need_more() && failed.is_failed());
  EXPECT_EQ(failed.error(), Problem::TooLong);
}

}  // namespace
}  // namespace kvferry::base
