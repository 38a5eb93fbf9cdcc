#include "pool/failure_text.h"

#include <cerrno>
#include <set>

#include <gtest/gtest.h>

namespace kvferry::pool {
namespace {

PoolOptions options_of(ErrorStyle style) {
  PoolOptions options;
  options.name = "alpha";
  options.timeout = base::Millis(250);
  options.connect_timeout = base::Millis(700);
  options.error_style = style;
  return options;
}

TEST(FailureName, IsAnotherWordForEachKind) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kFailureKinds; ++i) {
    names.insert(failure_name(static_cast<FailureKind>(i)));
  }
  EXPECT_EQ(names.size(), kFailureKinds);
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(FailureLine, SaysWhatAndWhereInOurStyle) {
  const PoolOptions options = options_of(ErrorStyle::Kvferry);
  const struct {
    Failure failure;
    const char* text;
  } table[] = {
      {{FailureKind::Unresolved, 0, false}, "the name of the backend has no address"},
      {{FailureKind::ConnectRefused, 0, false}, "could not connect to backend: Connection refused"},
      {{FailureKind::ConnectRefused, EHOSTUNREACH, false},
       "could not connect to backend: No route to host"},
      {{FailureKind::ConnectTimeout, ETIMEDOUT, false},
       "could not connect to backend within 700 ms"},
      {{FailureKind::Timeout, ETIMEDOUT, true},
       "no answer within 250 ms; the command may have run"},
      {{FailureKind::Closed, ECONNRESET, true},
       "connection to backend lost; the command may have run"},
      {{FailureKind::BadReply, 0, true}, "backend reply was not valid; the command may have run"},
      {{FailureKind::Overload, 0, false}, "backend queue is full"},
      {{FailureKind::Down, 0, false}, "no usable backend"},
      {{FailureKind::Draining, 0, false}, "backend was removed"},
      {{FailureKind::Handshake, 0, false, {}, "credentials rejected"},
       "could not connect to backend: credentials rejected"},
  };
  for (const auto& row : table) {
    EXPECT_EQ(failure_line(options, "10.0.0.7:11211", row.failure),
              std::string("SERVER_ERROR kvferry: ") + row.text +
                  " (pool alpha, backend 10.0.0.7:11211)\r\n");
  }
}

TEST(FailureLine, LeavesAnUnknownBackendOut) {
  EXPECT_EQ(failure_line(options_of(ErrorStyle::Kvferry), "", Failure{}),
            "SERVER_ERROR kvferry: no usable backend (pool alpha)\r\n");
}

TEST(FailureLine, IsASystemErrorInTwemproxyStyle) {
  const PoolOptions options = options_of(ErrorStyle::Twemproxy);
  const struct {
    Failure failure;
    const char* text;
  } table[] = {
      {{FailureKind::Timeout, 0, true}, "Connection timed out"},
      {{FailureKind::ConnectTimeout, 0, false}, "Connection timed out"},
      {{FailureKind::Closed, 0, true}, "Connection reset by peer"},
      {{FailureKind::BadReply, 0, true}, "Invalid argument"},
      {{FailureKind::Overload, 0, false}, "Cannot allocate memory"},
      {{FailureKind::Unresolved, 0, false}, "Connection refused"},
      {{FailureKind::Down, 0, false}, "Connection refused"},
      {{FailureKind::Draining, 0, false}, "Connection refused"},
      {{FailureKind::ConnectRefused, EHOSTUNREACH, false}, "No route to host"},
  };
  for (const auto& row : table) {
    EXPECT_EQ(failure_line(options, "b", row.failure),
              std::string("SERVER_ERROR ") + row.text + "\r\n");
  }
}

TEST(FailureLine, BeginsWithTheKindForClientsOfRedis) {
  PoolOptions options = options_of(ErrorStyle::Kvferry);
  options.protocol = Protocol::Redis;
  const struct {
    Failure failure;
    const char* text;
  } table[] = {
      {{FailureKind::Down, 0, false}, "UNAVAIL kvferry: no usable backend"},
      {{FailureKind::Unresolved, 0, false},
       "UNAVAIL kvferry: could not connect to backend: its name has no address"},
      {{FailureKind::ConnectRefused, 0, false},
       "UNAVAIL kvferry: could not connect to backend: Connection refused"},
      {{FailureKind::ConnectTimeout, 0, false},
       "UNAVAIL kvferry: could not connect to backend: no connection within 700 ms"},
      {{FailureKind::Handshake, 0, false, {}, "database rejected"},
       "UNAVAIL kvferry: could not connect to backend: database rejected"},
      {{FailureKind::Closed, 0, false},
       "UNAVAIL kvferry: connection lost before the command was sent"},
      {{FailureKind::Closed, 0, true},
       "UNAVAIL kvferry: connection lost after the command was sent; it may have run"},
      {{FailureKind::Timeout, 0, true},
       "TIMEOUT kvferry: no answer within 250 ms; the command may have run"},
      {{FailureKind::Overload, 0, false}, "OVERLOAD kvferry: backend queue is full (16384 calls)"},
      {{FailureKind::BadReply, 0, true},
       "BADREPLY kvferry: backend reply was not valid RESP; connection closed"},
      {{FailureKind::Draining, 0, true},
       "UNAVAIL kvferry: backend was removed; the command may have run"},
  };
  for (const auto& row : table) {
    options.redis.error_detail = ErrorDetail::Pool;
    EXPECT_EQ(failure_line(options, "r1", row.failure),
              std::string("-") + row.text + " (pool alpha)\r\n");
    options.redis.error_detail = ErrorDetail::Full;
    EXPECT_EQ(failure_line(options, "r1", row.failure),
              std::string("-") + row.text + " (pool alpha, backend r1)\r\n");
    options.redis.error_detail = ErrorDetail::None;
    EXPECT_EQ(failure_line(options, "r1", row.failure), std::string("-") + row.text + "\r\n");
  }
  options.error_style = ErrorStyle::Twemproxy;
  EXPECT_EQ(failure_line(options, "r1", {FailureKind::Timeout, 0, true}),
            "-ERR Connection timed out\r\n");
  EXPECT_EQ(failure_line(options, "r1", {FailureKind::Handshake, 0, false}),
            "-ERR Connection refused\r\n");
}

}  // namespace
}  // namespace kvferry::pool
