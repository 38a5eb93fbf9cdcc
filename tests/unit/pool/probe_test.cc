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

class RedisProbeTest : public ProbeTest {
 protected:
  void ask(const char* password, std::string_view answer, std::string_view question) {
    PoolOptions options = quick_options();
    options.protocol = Protocol::Redis;
    options.redis.password = password;
    options.redis.db_base = 3;
    backend_.on_input = [answer, question](test::Peer& peer) {
      if (peer.data.size() < question.size()) {
        return;
      }
      EXPECT_EQ(peer.take(), question);
      for (const char byte : answer) {
        peer.send(std::string_view(&byte, 1));
      }
    };
    probe_ = std::make_unique<Probe>(
        loop(), base::Millis(5000),
        [this](bool is_well) {
          ++verdicts_;
          is_well_ = is_well;
        },
        probe_question(options));
    probe_->start(backend_.address());
  }
  static constexpr std::string_view kSelectAndPing =
      "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n*1\r\n$4\r\nPING\r\n";
  static constexpr std::string_view kAuthAndAll =
      "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n*1\r\n$4\r\nPING\r\n";
};

TEST_P(RedisProbeTest, APongBehindTheGreetingIsWell) {
  ask("pw", "+OK\r\n+OK\r\n+PONG\r\n", kAuthAndAll);
  expect_verdict(true);
  EXPECT_EQ(probe_->refusal(), "");
}

TEST_P(RedisProbeTest, RejectedCredentialsAreNot) {
  ask("pw", "-WRONGPASS invalid username-password pair or user is disabled.\r\n-NOAUTH\r\n",
      kAuthAndAll);
  expect_verdict(false);
  EXPECT_EQ(probe_->refusal(), "-WRONGPASS invalid username-password pair or user is disabled.");
}

TEST_P(RedisProbeTest, AServerThatWantsCredentialsIsNot) {
  ask("", "-NOAUTH Authentication required.\r\n", kSelectAndPing);
  expect_verdict(false);
  EXPECT_EQ(probe_->refusal(), "-NOAUTH Authentication required.");
}

TEST_P(RedisProbeTest, AServerThatLoadsIsNot) {
  ask("", "+OK\r\n-LOADING Redis is loading the dataset in memory\r\n", kSelectAndPing);
  expect_verdict(false);
}

TEST_P(RedisProbeTest, BytesOfAnotherProtocolAreNot) {
  ask("", "HTTP/1.1 400 Bad Request\r\n", kSelectAndPing);
  expect_verdict(false);
}

INSTANTIATE_TEST_SUITE_P(Engines, RedisProbeTest, testing::ValuesIn(test::kEngines), test::name_of);
INSTANTIATE_TEST_SUITE_P(Engines, ProbeTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::pool
