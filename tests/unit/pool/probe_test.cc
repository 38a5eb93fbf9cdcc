#include "pool/probe.h"

#include "tests/unit/pool/pool_rig.h"

namespace kvferry::pool {
namespace {

class ProbeTest : public PoolRig {
 protected:
  ProbeTest() : backend_(loop()) {}

  void start(base::Millis timeout, const net::Address& address) {
    probe_ = std::make_unique<Probe>(loop(), timeout, [this](bool is_well) {
      ++verdicts_;
      is_well_ = is_well;
    });
    probe_->start(address);
    EXPECT_EQ(verdicts_, 0) << "the verdict came from within start()";
  }
  void answer_with(std::string_view text) {
    backend_.on_input = [text](test::Peer& peer) {
      EXPECT_EQ(peer.take(), "version\r\n");
      for (const char byte : text) {
        peer.send(std::string_view(&byte, 1));
      }
    };
  }
  void expect_verdict(bool is_well) {
    ASSERT_TRUE(run_until([&] { return verdicts_ > 0; }));
    EXPECT_EQ(is_well_, is_well);
    rig_.run_for(base::Millis(30));
    EXPECT_EQ(verdicts_, 1);
  }

  test::FakeBackend backend_;
  std::unique_ptr<Probe> probe_;
  int verdicts_ = 0;
  bool is_well_ = false;
};

TEST_P(ProbeTest, AVersionIsWell) {
  answer_with("VERSION 1.6.9\r\n");
  start(base::Millis(5000), backend_.address());
  expect_verdict(true);
}

TEST_P(ProbeTest, AnotherAnswerIsNot) {
  answer_with("ERROR\r\nERROR\r\n");
  start(base::Millis(5000), backend_.address());
  expect_verdict(false);
}

TEST_P(ProbeTest, AConnectionThatClosesIsNot) {
  backend_.refuses = true;
  start(base::Millis(5000), backend_.address());
  expect_verdict(false);
}

TEST_P(ProbeTest, ARefusedConnectIsNot) {
  backend_.stop();
  start(base::Millis(5000), backend_.address());
  expect_verdict(false);
}

TEST_P(ProbeTest, SilenceIsNot) {
  start(base::Millis(30), backend_.address());
  expect_verdict(false);
}

TEST_P(ProbeTest, AShortAnswerIsNot) {
  answer_with("VER");
  start(base::Millis(30), backend_.address());
  expect_verdict(false);
}

TEST_P(ProbeTest, MayBeDestroyedByItsVerdict) {
  answer_with("VERSION 1\r\n");
  bool is_over = false;
  probe_ = std::make_unique<Probe>(loop(), base::Millis(5000), [&](bool) {
    probe_.reset();
    is_over = true;
  });
  probe_->start(backend_.address());
  ASSERT_TRUE(run_until([&] { return is_over; }));
}

TEST_P(ProbeTest, DestroyedBeforeItsTimeSaysNothing) {
  start(base::Millis(20), backend_.address());
  probe_.reset();
  rig_.run_for(base::Millis(50));
  EXPECT_EQ(verdicts_, 0);
}

INSTANTIATE_TEST_SUITE_P(Engines, ProbeTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::pool
