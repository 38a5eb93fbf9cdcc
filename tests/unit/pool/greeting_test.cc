#include "pool/greeting.h"

#include <gtest/gtest.h>

namespace kvferry::pool {
namespace {

using resp::Version;
using Step = Greeting::Step;

TEST(Greeting, IsEmptyWhenThereIsNothingToSay) {
  EXPECT_TRUE(redis_greeting(RedisOptions{}, Version::Two, 0).empty());
  EXPECT_TRUE(redis_greeting(RedisOptions{}, Version::Two, 0).bytes.empty());
}

TEST(Greeting, AuthenticatesBeforeAllElse) {
  RedisOptions options;
  options.password = "s3 cret";
  const Greeting greeting = redis_greeting(options, Version::Three, 12);
  EXPECT_EQ(greeting.bytes,
            "*2\r\n$4\r\nAUTH\r\n$7\r\ns3 cret\r\n"
            "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"
            "*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n");
  ASSERT_EQ(greeting.step_count, 3);
  EXPECT_EQ(greeting.steps, (std::array{Step::Auth, Step::Hello, Step::Select}));
  options.user = "bob";
  EXPECT_EQ(redis_greeting(options, Version::Two, 0).bytes,
            "*3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$7\r\ns3 cret\r\n");
}

TEST(Greeting, RefusalsAreAFixedList) {
  const struct {
    Step step;
    const char* line;
    std::string_view refusal;
  } table[] = {
      {Step::Auth, "+OK\r\n", ""},
      {Step::Auth, "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
       kCredentialsRejected},
      {Step::Auth, "-ERR Client sent AUTH, but no password is set\r\n", kCredentialsRejected},
      {Step::Auth, "-ERR max number of clients reached\r\n", "connection rejected"},
      {Step::Select, "-DENIED Redis is running in protected mode\r\n", "connection rejected"},
      {Step::Hello, "%7\r\n", ""},
      {Step::Hello, "-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n", ""},
      {Step::Hello, "-NOPROTO unsupported protocol version\r\n", ""},
      {Step::Hello, "-ERR oops\r\n", "protocol version rejected"},
      {Step::Hello, "-NOAUTH HELLO must be called ...\r\n", kCredentialsRejected},
      {Step::Select, "+OK\r\n", ""},
      {Step::Select, "-ERR DB index is out of range\r\n", "database rejected"},
      {Step::Select, "-NOAUTH Authentication required.\r\n", kCredentialsRejected},
  };
  for (const auto& row : table) {
    EXPECT_EQ(greeting_refusal(row.step, row.line), row.refusal) << row.line;
  }
}

}  // namespace
}  // namespace kvferry::pool
