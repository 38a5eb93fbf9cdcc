#include "route/context.h"

#include <array>
#include <optional>
#include <vector>

#include "tests/unit/route/native_rig.h"

namespace kvferry::route {
namespace {

using base::Micros;

/// A route whose every step the test makes.
class ContextTest : public testing::Test, protected ContextHost {
 protected:
  Verdict on_arrival(std::uint32_t handle, ResultClass natural) override {
    arrivals_.push_back(handle);
    return verdict_.value_or(Verdict{.result_class = natural, .resumes = false});
  }
  void on_wait_over(bool has_timed_out) override {
    ++resumed_;
    has_timed_out_ = has_timed_out;
  }
  void on_settled() override { ++settled_; }

  void begin() {
    static constexpr std::string_view kLine = "mg key v\r\n";
    ASSERT_TRUE(request_.assign(kLine, {}));
    context_.begin(client_);
  }
  void enqueue(std::initializer_list<std::uint32_t> handles) {
    for (const std::uint32_t handle : handles) {
      context_.enqueue(handle, request_);
    }
  }
  void finish() {
    if (context_.is_waiting()) {
      context_.cancel_wait();
    }
    context_.end();
  }

  test::LoopRig rig_{test::kEpoll};
  call::CallPool calls_{rig_.budget};
  FakeTarget a_;
  FakeTarget b_;
  FakeTarget c_;
  std::array<call::Target*, 3> targets_{&a_, &b_, &c_};
  Context context_{*rig_.loop, calls_, *this, targets_};
  RouteRequest request_;
  call::Call client_;
  std::vector<std::uint32_t> arrivals_;
  std::optional<Verdict> verdict_;
  int resumed_ = 0;
  int settled_ = 0;
  bool has_timed_out_ = false;
};

TEST_F(ContextTest, SendsNothingBeforeAWait) {
  begin();
  enqueue({0, 1});
  EXPECT_TRUE(a_.received.empty());
  EXPECT_FALSE(context_.wait_for(1, std::nullopt));
  EXPECT_EQ(a_.received.size(), 1U);
  EXPECT_EQ(b_.received.size(), 1U);
  EXPECT_TRUE(c_.received.empty());
  a_.answer("EN\r\n");
  EXPECT_EQ(resumed_, 0);
  b_.answer("HD\r\n");
  EXPECT_EQ(resumed_, 1);
  EXPECT_FALSE(has_timed_out_);
  finish();
}

TEST_F(ContextTest, SendsAHandleOnceARequest) {
  begin();
  enqueue({0, 0});
  EXPECT_FALSE(context_.wait_for(0, std::nullopt));
  a_.answer("HD\r\n");
  enqueue({0});
  EXPECT_TRUE(context_.wait_for(0, std::nullopt)) << "its reply is there already";
  EXPECT_EQ(a_.received.size(), 1U);
  finish();
}

TEST_F(ContextTest, WaitsForNothingWhenNothingWasSent) {
  begin();
  EXPECT_TRUE(context_.wait_for(2, std::nullopt));
  EXPECT_TRUE(context_.wait_until(1, WaitMode::Any, std::nullopt));
  EXPECT_EQ(context_.done(), 0U);
  finish();
}

struct ModeCase {
  WaitMode mode;
  std::array<std::string_view, 3> answers;
  int resumes_after;  // The how-manieth answer ends a wait for two.
  std::uint32_t done;
};
class ContextModeTest : public ContextTest, public testing::WithParamInterface<ModeCase> {};

TEST_P(ContextModeTest, EndsWithTheAnswerThatDecides) {
  begin();
  enqueue({0, 1, 2});
  ASSERT_FALSE(context_.wait_until(2, GetParam().mode, std::nullopt));
  const std::array<FakeTarget*, 3> in_order{&a_, &b_, &c_};
  for (int i = 0; i < 3; ++i) {
    in_order[static_cast<std::size_t>(i)]->answer(GetParam().answers[static_cast<std::size_t>(i)]);
    EXPECT_EQ(resumed_, i + 1 >= GetParam().resumes_after ? 1 : 0) << i;
  }
  EXPECT_EQ(context_.done(), GetParam().done);
  finish();
}

INSTANTIATE_TEST_SUITE_P(
    Modes, ContextModeTest,
    testing::Values(ModeCase{WaitMode::Any, {"EN\r\n", "SERVER_ERROR x\r\n", "HD\r\n"}, 2, 2},
                    ModeCase{WaitMode::Ok, {"SERVER_ERROR x\r\n", "EN\r\n", "HD\r\n"}, 3, 2},
                    ModeCase{
                        WaitMode::Ok, {"SERVER_ERROR x\r\n", "SERVER_ERROR x\r\n", "HD\r\n"}, 3, 1},
                    ModeCase{WaitMode::Good, {"EN\r\n", "HD\r\n", "HD\r\n"}, 3, 2},
                    ModeCase{WaitMode::Good, {"EN\r\n", "EN\r\n", "EN\r\n"}, 3, 0},
                    ModeCase{WaitMode::FastGood, {"EN\r\n", "EN\r\n", "HD\r\n"}, 2, 2},
                    ModeCase{WaitMode::FastGood, {"HD\r\n", "EN\r\n", "EN\r\n"}, 1, 1}));

TEST_F(ContextTest, CountsWhatCameBeforeTheWait) {
  begin();
  enqueue({0, 1});
  ASSERT_FALSE(context_.wait_for(0, std::nullopt));
  b_.answer("HD\r\n");
  a_.answer("HD\r\n");
  EXPECT_TRUE(context_.wait_until(1, WaitMode::Good, std::nullopt));
  EXPECT_EQ(context_.done(), 1U) << "a was waited for by itself, b was not";
  finish();
}

TEST_F(ContextTest, CountsAnswersThatComeWhileItSends) {
  a_.answer_at_once = "HD\r\n";
  b_.answer_at_once = "EN\r\n";
  begin();
  enqueue({0, 1});
  EXPECT_TRUE(context_.wait_until(2, WaitMode::Any, std::nullopt));
  EXPECT_EQ(context_.done(), 2U);
  EXPECT_EQ(resumed_, 0) << "nobody is told of a wait that was over at once";
  finish();
}

TEST_F(ContextTest, WaitingForNoneGoesOnInTheNextTurn) {
  begin();
  enqueue({0});
  EXPECT_FALSE(context_.wait_until(0, WaitMode::Any, std::nullopt));
  EXPECT_EQ(a_.received.size(), 1U);
  EXPECT_EQ(resumed_, 0);
  EXPECT_TRUE(rig_.run_until([&] { return resumed_ == 1; }));
  a_.answer("HD\r\n");
  finish();
}

TEST_F(ContextTest, ATimeoutEndsTheWaitAndNotTheRequest) {
  begin();
  enqueue({0});
  ASSERT_FALSE(context_.wait_for(0, Micros(1000)));
  EXPECT_TRUE(rig_.run_until([&] { return resumed_ == 1; }));
  EXPECT_TRUE(has_timed_out_);
  EXPECT_FALSE(context_.is_complete(0));
  EXPECT_FALSE(context_.wait_for(0, std::nullopt));
  a_.answer("HD\r\n");
  EXPECT_EQ(resumed_, 2);
  EXPECT_FALSE(has_timed_out_);
  EXPECT_EQ(context_.class_of(0), ResultClass::Good);
  finish();
}

TEST_F(ContextTest, SleepsWithoutAnyAnswer) {
  begin();
  context_.sleep(Micros(1000));
  EXPECT_TRUE(rig_.run_until([&] { return resumed_ == 1; }));
  EXPECT_FALSE(has_timed_out_);
  finish();
}

TEST_F(ContextTest, TheRouteMayJudgeOtherwiseAndResume) {
  verdict_ = Verdict{.result_class = ResultClass::Any, .resumes = true};
  begin();
  enqueue({0, 1});
  ASSERT_FALSE(context_.wait_until(2, WaitMode::Good, std::nullopt));
  a_.answer("HD\r\n");
  EXPECT_EQ(resumed_, 1);
  EXPECT_EQ(context_.done(), 0U);
  EXPECT_EQ(context_.class_of(0), ResultClass::Any);
  b_.answer("HD\r\n");
  finish();
}

TEST_F(ContextTest, SettlesWithTheLastAnswerAfterTheEnd) {
  begin();
  enqueue({0, 1});
  ASSERT_FALSE(context_.wait_for(0, std::nullopt));
  a_.answer("HD\r\n");
  EXPECT_FALSE(context_.end());
  EXPECT_EQ(settled_, 0);
  b_.answer("HD\r\n");
  EXPECT_EQ(settled_, 1);
  EXPECT_EQ(arrivals_, (std::vector<std::uint32_t>{0, 1}));
  context_.reset();
  EXPECT_FALSE(context_.is_used(0));
  begin();
  enqueue({0});
  ASSERT_FALSE(context_.wait_for(0, std::nullopt));
  a_.answer("EN\r\n");
  EXPECT_EQ(context_.class_of(0), ResultClass::Ok) << "nothing of the request before is left";
  EXPECT_TRUE(context_.end());
}

TEST_F(ContextTest, WhatIsQueuedAtTheEndIsNotSent) {
  begin();
  enqueue({0});
  EXPECT_TRUE(context_.end());
  EXPECT_TRUE(a_.received.empty());
}

TEST_F(ContextTest, RepliesOutliveTheBytesTheyCameIn) {
  begin();
  enqueue({0, 1});
  ASSERT_FALSE(context_.wait_for(1, std::nullopt));
  a_.answer("VA 3\r\nabc\r\n");
  b_.answer("EN\r\n");
  EXPECT_EQ(context_.reply(0).bytes(), "VA 3\r\nabc\r\n");
  finish();
}

TEST_F(ContextTest, FailuresAreWorseThanMissesAndMissesWorseThanHits) {
  begin();
  enqueue({0, 1, 2});
  ASSERT_FALSE(context_.wait_until(3, WaitMode::Any, std::nullopt));
  const std::array<std::uint32_t, 3> all{0, 1, 2};
  EXPECT_EQ(context_.best_of(all), std::nullopt);
  EXPECT_EQ(context_.worst_of(all), std::nullopt);
  a_.fail();
  EXPECT_EQ(context_.best_of(all), 0U);
  b_.answer("EN\r\n");
  EXPECT_EQ(context_.best_of(all), 1U);
  c_.answer("HD\r\n");
  EXPECT_EQ(context_.best_of(all), 2U);
  EXPECT_EQ(context_.worst_of(all), 0U);
  EXPECT_EQ(context_.class_of(0), ResultClass::Any);
  EXPECT_TRUE(context_.reply(0).bytes().empty());
  finish();
}

TEST_F(ContextTest, AValueOfAnotherLengthIsNeverSent) {
  ASSERT_TRUE(request_.assign("ms key 5\r\n", "abc\r\n"));
  context_.begin(client_);
  enqueue({0});
  EXPECT_TRUE(context_.wait_for(0, std::nullopt));
  EXPECT_TRUE(a_.received.empty());
  EXPECT_EQ(context_.class_of(0), ResultClass::Any);
  finish();
}

}  // namespace
}  // namespace kvferry::route
