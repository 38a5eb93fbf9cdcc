// Merges whose parts are larger than the merge keeps: passing on early, pausing, giving up.
#include "pool/multiget.h"
#include "tests/unit/pool/multiget_rig.h"

namespace kvferry::pool {
namespace {

using test::Outcome;

class BigMultiGetTest : public MultiGetRig {
 protected:
  /// Asks for one key of each of two backends, the first of which answers with a big value.
  Outcome& ask(OnPartial on_partial = OnPartial::Error) {
    options_.on_partial = on_partial;
    make(2);
    Outcome& outcome = get({key(0), key(1)});
    expect_received(0, "get " + key(0) + "\r\n");
    expect_received(1, "get " + key(1) + "\r\n");
    return outcome;
  }
  const std::string big_ = test::pattern(2'000'000);
};

TEST_P(BigMultiGetTest, ThePartWhoseTurnItIsPassesOnEarly) {
  Outcome& outcome = ask();
  reply(0, item(key(0), big_) + "END\r\n");
  ASSERT_TRUE(run_until([&] { return outcome.bytes.size() > big_.size(); }));
  EXPECT_FALSE(outcome.is_done);
  reply(1, item(key(1), "B") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_TRUE(outcome.bytes == item(key(0), big_) + item(key(1), "B") + "END\r\n");
}

TEST_P(BigMultiGetTest, APartThatIsAheadIsPausedAtTheWindow) {
  Outcome& outcome = ask();
  reply(1, item(key(1), big_) + "END\r\n");
  // A paused link is reported as stalled, and a fresh one takes its place.
  ASSERT_TRUE(run_until([&] { return pool_->backends()[1]->stats().stalls.get() == 1; }));
  EXPECT_EQ(outcome.parts, 0);
  EXPECT_LT(pool_->backends()[1]->stats().bytes_received.get(), big_.size());
  reply(0, item(key(0), "A") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_TRUE(outcome.bytes == item(key(0), "A") + item(key(1), big_) + "END\r\n");
}

TEST_P(BigMultiGetTest, TheParentPausesAndResumes) {
  Outcome& outcome = ask();
  outcome.pauses_left = 200;
  reply(0, item(key(0), big_) + "END\r\n");
  reply(1, item(key(1), big_) + "END\r\n");
  ASSERT_TRUE(run_until([&] {
    if (outcome.is_paused) {
      sink_.resume(outcome);
    }
    return outcome.is_done;
  }));
  EXPECT_TRUE(outcome.bytes == item(key(0), big_) + item(key(1), big_) + "END\r\n");
  EXPECT_LT(outcome.pauses_left, 200);
}

TEST_P(BigMultiGetTest, TheParentIsDiscardedWhilePartsAreOutstanding) {
  Outcome& outcome = ask();
  outcome.pauses_left = 1;
  reply(0, item(key(0), big_) + "END\r\n");
  reply(1, item(key(1), big_) + "END\r\n");
  ASSERT_TRUE(run_until([&] { return outcome.is_paused; }));
  const std::size_t taken = outcome.bytes.size();
  sink_.discard(outcome);
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes.size(), taken);
  // The links are in step: the next get works.
  Outcome& next = get({key(0), key(1)});
  expect_received(0, "get " + key(0) + "\r\n");
  expect_received(1, "get " + key(1) + "\r\n");
  reply(0, "END\r\n");
  reply(1, item(key(1), "x") + "END\r\n");
  ASSERT_TRUE(wait_for(next));
  EXPECT_EQ(next.bytes, item(key(1), "x") + "END\r\n");
}

TEST_P(BigMultiGetTest, TheParentIsDiscardedWhenAllPartsAreComplete) {
  Outcome& outcome = ask();
  outcome.pauses_left = 1;
  reply(0, item(key(0), std::string(1000, 'a')) + "END\r\n");
  reply(1, item(key(1), "B") + "END\r\n");
  ASSERT_TRUE(run_until([&] { return outcome.is_paused; }));
  sink_.discard(outcome);
  ASSERT_TRUE(wait_for(outcome));
}

TEST_P(BigMultiGetTest, AFailureAfterPassingOnBeganEndsTheReplyWithItsLine) {
  Outcome& outcome = ask();
  reply(0, item(key(0), big_) + "END\r\n");
  ASSERT_TRUE(run_until([&] { return outcome.bytes.size() > big_.size(); }));
  reply(1, "SERVER_ERROR busy\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_FALSE(outcome.is_broken);
  EXPECT_TRUE(outcome.bytes == item(key(0), big_) + "SERVER_ERROR busy\r\n");
}

TEST_P(BigMultiGetTest, AConnectionCutInsideAnItemThatWasPassedOnBreaksTheReply) {
  Outcome& outcome = ask();
  reply(1, item(key(1), "B") + "END\r\n");
  reply(0, "VALUE " + key(0) + " 0 2000000\r\n" + big_.substr(0, 1'000'000));
  ASSERT_TRUE(run_until([&] { return outcome.bytes.size() > 900'000; }));
  rig_.run_for(base::Millis(20));
  cut(0);
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_TRUE(outcome.is_broken);
}

TEST_P(BigMultiGetTest, AndWaitsForThePartsThatAreOutstanding) {
  Outcome& outcome = ask();
  reply(0, "VALUE " + key(0) + " 0 2000000\r\n" + big_.substr(0, 1'000'000));
  ASSERT_TRUE(run_until([&] { return outcome.bytes.size() > 900'000; }));
  cut(0);
  rig_.run_for(base::Millis(20));
  EXPECT_FALSE(outcome.is_done);
  reply(1, item(key(1), "B") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_TRUE(outcome.is_broken);
}

TEST_P(BigMultiGetTest, AnItemThatWasCutBeforeItsTurnIsAFailedKey) {
  // The second part is ahead and large, so passing on is early; its item is cut with nothing of it
  // passed on.
  Outcome& outcome = ask(OnPartial::Null);
  reply(1, "VALUE " + key(1) + " 0 2000000\r\n" + big_.substr(0, 200'000));
  rig_.run_for(base::Millis(20));
  cut(1);
  rig_.run_for(base::Millis(20));
  reply(0, item(key(0), big_) + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_FALSE(outcome.is_broken);
  EXPECT_TRUE(outcome.bytes == item(key(0), big_) + "END\r\n");
}

TEST_P(BigMultiGetTest, ManyMergesOnTheSameLinksDoNotBlockOneAnother) {
  make(2);
  std::vector<Outcome*> outcomes;
  for (int i = 0; i < 6; ++i) {
    outcomes.push_back(i % 2 == 0 ? &get({key(0), key(1)}) : &get({key(1), key(0)}));
  }
  for (const std::size_t backend : {0U, 1U}) {
    ASSERT_TRUE(run_until([&] { return fakes_[backend]->received().size() >= 6 * 6; }));
    for (int i = 0; i < 6; ++i) {
      reply(backend, item(key(backend), big_) + "END\r\n");
    }
  }
  ASSERT_TRUE(run_until([&] { return sink_.answered() == 6; }));
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const std::size_t first = i % 2;
    EXPECT_TRUE(outcomes[i]->bytes ==
                item(key(first), big_) + item(key(1 - first), big_) + "END\r\n");
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, BigMultiGetTest, testing::ValuesIn(test::kEngines),
                         test::name_of);

}  // namespace
}  // namespace kvferry::pool
