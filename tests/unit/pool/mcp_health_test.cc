#include "pool/mcp_health.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace kvferry::pool {
namespace {

using base::Micros;
using base::Seconds;

McpBackendOptions with_limit(std::uint32_t limit) {
  McpBackendOptions options;
  options.failure_limit = limit;
  options.retry_waittime = Seconds(5);
  return options;
}

constexpr base::SteadyTime kStart{Seconds(1000)};

TEST(McpHealth, IsBadFromTheFailureBeyondTheLimitOn) {
  for (const std::uint32_t limit : {0U, 1U, 3U}) {
    const McpBackendOptions options = with_limit(limit);
    McpHealth health;
    for (std::uint32_t failure = 1; failure <= limit; ++failure) {
      EXPECT_FALSE(health.on_failure(options, McpFailure::Connecting, kStart).is_bad);
      EXPECT_FALSE(health.is_bad());
    }
    const auto verdict = health.on_failure(options, McpFailure::Connecting, kStart);
    EXPECT_TRUE(verdict.is_bad && verdict.is_newly_bad && !verdict.is_flapping);
    EXPECT_EQ(verdict.pause, Seconds(5));
    EXPECT_TRUE(health.is_bad());
    const auto again = health.on_failure(options, McpFailure::ReadValidate, kStart);
    EXPECT_TRUE(again.is_bad && !again.is_newly_bad);
    EXPECT_EQ(again.pause, Seconds(5));
  }
}

TEST(McpHealth, OnlyAValidationForgetsFailures) {
  const McpBackendOptions options = with_limit(1);
  McpHealth health;
  health.on_failure(options, McpFailure::Timeout, kStart);
  health.on_validated(kStart);
  EXPECT_FALSE(health.on_failure(options, McpFailure::Timeout, kStart).is_bad);
  EXPECT_TRUE(health.on_failure(options, McpFailure::Timeout, kStart).is_bad);
  health.on_validated(kStart);
  EXPECT_FALSE(health.is_bad());
}

TEST(McpHealth, CountsConnectionsThatLiveNoLongerThanTheFlapTime) {
  McpBackendOptions options = with_limit(100);
  options.flap_time = Micros(1'500'000);
  for (const auto& [lived, flaps] :
       {std::pair{Micros(1'499'999), 1U}, std::pair{Micros(1'500'000), 1U},
        std::pair{Micros(1'500'001), 0U}}) {
    McpHealth health;
    health.on_validated(kStart);
    health.on_failure(options, McpFailure::Disconnected, kStart + lived);
    EXPECT_EQ(health.flaps(), flaps) << lived.count();
  }
}

TEST(McpHealth, OnlyTheEndOfAConnectionFlaps) {
  McpBackendOptions options = with_limit(100);
  options.flap_time = Seconds(60);
  for (std::size_t i = 0; i < kMcpFailures; ++i) {
    const auto failure = static_cast<McpFailure>(i);
    McpHealth health;
    health.on_validated(kStart);
    health.on_failure(options, failure, kStart);
    const bool is_expected = failure == McpFailure::Timeout ||
                             failure == McpFailure::Disconnected ||
                             failure == McpFailure::Writing || failure == McpFailure::Reading;
    EXPECT_EQ(health.flaps() == 1, is_expected) << mcp_failure_word(failure);
  }
}

TEST(McpHealth, NothingFlapsWithoutAFlapTime) {
  McpHealth health;
  health.on_validated(kStart);
  health.on_failure(with_limit(100), McpFailure::Disconnected, kStart);
  EXPECT_EQ(health.flaps(), 0U);
}

TEST(McpHealth, IsBadWhenItFlapsMoreOftenThanTheLimit) {
  McpBackendOptions options = with_limit(2);
  options.flap_time = Seconds(60);
  options.flap_backoff_ramp = 2;
  McpHealth health;
  for (int i = 0; i < 2; ++i) {
    health.on_validated(kStart);
    EXPECT_FALSE(health.on_failure(options, McpFailure::Disconnected, kStart).is_bad);
  }
  health.on_validated(kStart);
  const auto third = health.on_failure(options, McpFailure::Disconnected, kStart);
  EXPECT_TRUE(third.is_newly_bad && third.is_flapping);
  EXPECT_EQ(third.pause, Seconds(40));
  health.on_validated(kStart + third.pause);
  const auto fourth = health.on_failure(options, McpFailure::Disconnected, kStart + third.pause);
  EXPECT_TRUE(fourth.is_newly_bad && fourth.is_flapping);
  EXPECT_EQ(fourth.pause, Seconds(80));
  health.on_validated(kStart + Seconds(100));
  EXPECT_FALSE(health.on_failure(options, McpFailure::Disconnected, kStart + Seconds(161)).is_bad);
  EXPECT_EQ(health.flaps(), 0U);
}

TEST(McpHealth, AFlapIsAlsoMeasuredFromThePreviousFailure) {
  McpBackendOptions options = with_limit(100);
  options.flap_time = Seconds(10);
  McpHealth health;
  health.on_failure(options, McpFailure::Connecting, kStart);
  health.on_failure(options, McpFailure::Disconnected, kStart + Seconds(10));
  EXPECT_EQ(health.flaps(), 1U);
}

TEST(McpHealth, ThePauseGrowsByTheRampInWholeSeconds) {
  McpBackendOptions options = with_limit(0);
  options.retry_waittime = Seconds(3);
  options.flap_backoff_ramp = 1.5;
  options.flap_backoff_max = Seconds(3600);
  EXPECT_EQ(mcp_flap_pause(options, 0), Seconds(3));
  EXPECT_EQ(mcp_flap_pause(options, 1), Seconds(4));   // 4.5
  EXPECT_EQ(mcp_flap_pause(options, 2), Seconds(6));   // 6.75
  EXPECT_EQ(mcp_flap_pause(options, 3), Seconds(10));  // 10.125
  EXPECT_EQ(mcp_flap_pause(options, 17), Seconds(2955));
  EXPECT_EQ(mcp_flap_pause(options, 18), Seconds(3600));
  EXPECT_EQ(mcp_flap_pause(options, 4'000'000'000U), Seconds(3600));
  options.flap_backoff_max = Seconds(0);
  EXPECT_EQ(mcp_flap_pause(options, 1), Seconds(1));
}

TEST(McpFailure, EachHasAWordOfItsOwn) {
  std::set<std::string_view> words;
  for (std::size_t i = 0; i < kMcpFailures; ++i) {
    words.insert(mcp_failure_word(static_cast<McpFailure>(i)));
  }
  EXPECT_EQ(words.size(), kMcpFailures);
  EXPECT_FALSE(words.contains("unknown"));
  EXPECT_EQ(mcp_failure_word(McpFailure::UnhandledReply), "unhandledres");
}

}  // namespace
}  // namespace kvferry::pool
