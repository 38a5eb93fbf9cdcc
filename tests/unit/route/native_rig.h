// Targets that a test answers for, and a host that counts, for tests of native routes.
#pragma once

#include <array>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "call/call.h"
#include "protocol/memcache/reply_parser.h"
#include "route/native_route.h"
#include "tests/support/loop_rig.h"
#include "tests/support/recording_sink.h"

namespace kvferry::route {

/// Keeps what it is sent until the test answers, or answers at once.
class FakeTarget final : public call::Target {
 public:
  ~FakeTarget() override { EXPECT_TRUE(waiting_.empty()) << "calls were left without an answer"; }

  void send(call::Call& call, const memcache::Request& request) override {
    received.emplace_back(request.line.data(), request.size_bytes);
    waiting_.push_back(&call);
    if (!answer_at_once.empty()) {
      answer(answer_at_once);
    }
  }
  /// Answers the oldest call.
  void answer(std::string_view bytes) {
    ASSERT_FALSE(waiting_.empty());
    call::Call& call = *waiting_.front();
    waiting_.pop_front();
    // Like bytes of a socket: gone when the answer has been taken.
    std::string copy(bytes);
    call::answer(call, copy, memcache::find_reply_code(copy));
    std::fill(copy.begin(), copy.end(), '#');
  }
  void fail() {
    ASSERT_FALSE(waiting_.empty());
    call::Call& call = *waiting_.front();
    waiting_.pop_front();
    call.sink->on_reply(call, call::ReplyPart{.bytes = "SERVER_ERROR backend failure\r\n",
                                              .code = memcache::ReplyCode::ServerError,
                                              .is_first = true,
                                              .is_last = true,
                                              .origin = call::ReplyOrigin::Failure});
  }
  /// What came since the last time.
  std::vector<std::string> take() { return std::exchange(received, {}); }

  std::string answer_at_once;
  std::vector<std::string> received;

 private:
  std::deque<call::Call*> waiting_;
};

class CountingHost final : public RouteHost {
 public:
  ~CountingHost() {
    EXPECT_EQ(held, 0) << "requests were left under way";
    EXPECT_EQ(kept, 0U);
  }

  void on_logged_reply(const RouteReply& /*reply*/, const RouteRequest& /*request*/,
                       int /*client_fd*/) override {}
  void count(RouteEvent event) override {
    ++counted;
    ++events[static_cast<std::size_t>(event)];
  }
  int of(RouteEvent event) const { return events[static_cast<std::size_t>(event)]; }
  void on_lingering() override { ++lingering; }
  void on_lingered() override { --lingering; }
  void hold() override { ++held; }
  void let_go() override { --held; }
  void on_kept(std::size_t bytes) override { kept += bytes; }
  void on_dropped(std::size_t bytes) override { kept -= bytes; }

  int counted = 0;
  std::array<int, kRouteEvents> events{};
  int lingering = 0;
  int held = 0;
  std::size_t kept = 0;
};

/// Three children a, b, c and a client.
class NativeRouteTest : public testing::Test {
 protected:
  RouteSetup setup(std::vector<RouteChild> children) {
    return {.loop = *rig_.loop, .calls = calls_, .host = host_, .children = std::move(children)};
  }
  RouteSetup all() { return setup({{&a_}, {&b_}, {&c_}}); }
  test::Outcome& send(call::Target& route, std::string_view bytes) {
    return client_.send(route, bytes);
  }
  static std::vector<std::string> once(std::string_view bytes) { return {std::string(bytes)}; }

  test::LoopRig rig_{test::kEpoll};
  call::CallPool calls_{rig_.budget};
  test::RecordingSink client_{calls_, *rig_.loop};
  CountingHost host_;
  FakeTarget a_;
  FakeTarget b_;
  FakeTarget c_;
};

}  // namespace kvferry::route
