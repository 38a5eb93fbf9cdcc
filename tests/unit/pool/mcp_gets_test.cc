#include "pool/mcp_gets.h"

#include <algorithm>

#include "protocol/memcache/request_parser.h"
#include "protocol/memcache/token_walker.h"
#include "tests/unit/pool/mcp_rig.h"

namespace kvferry::pool {
namespace {

using test::Outcome;

std::string item(std::string_view key, std::string_view value) {
  return "VALUE " + std::string(key) + " 0 " + std::to_string(value.size()) + "\r\n" +
         std::string(value) + "\r\n";
}

/// Pools of two backends, and gets over them.
class McpGetsTest : public McpRig, private McpGetEvents {
 protected:
  McpGetsTest() : second_(loop()), gets_(loop(), calls_, rig_.budget, *this) {
    answer_version(second_);
    second_options_ = options_;
    second_options_.label = "b2";
    second_options_.port = std::to_string(second_.address().port());
  }
  ~McpGetsTest() override {
    pools_.clear();
    EXPECT_EQ(kept_, 0U);
    EXPECT_EQ(keys_over_, keys_sent_);
  }

  McpPool& make_pool(const std::vector<McpBackendOptions>& backends) {
    McpPoolOptions options;
    for (const McpBackendOptions& backend : backends) {
      options.backends.push_back(std::make_shared<McpBackendOptions>(backend));
    }
    options.placement.hash = HashKind::Xxh3;
    options.placement.distribution = DistributionKind::Jump;
    pools_.push_back(
        std::make_unique<McpPool>(std::make_shared<McpPoolOptions>(options), backends_));
    return *pools_.back();
  }
  /// A pool of both, whose connections are ready.
  void make_both() {
    make_pool({options_, second_options_});
    ASSERT_TRUE(run_until([&] { return !server_.peers.empty() && !second_.peers.empty(); }));
    rig_.run_turns(10);
  }
  /// The `number`-th key of backend `index` of the first pool.
  std::string key(std::uint32_t index, int number = 0) const {
    for (int i = 0;; ++i) {
      std::string text = "k" + std::to_string(i);
      if (pools_.front()->placement()->explain(text).index == index && number-- == 0) {
        return text;
      }
    }
  }
  /// Sends a get of `keys`, the n-th of which goes to pool n modulo the number of pools.
  Outcome& get(GetForm form, const std::vector<std::string>& keys, std::string_view head = "get") {
    std::string line(head);
    for (const std::string& text : keys) {
      line += " " + text;
    }
    line += "\r\n";
    memcache::RequestParser parser{memcache::ParserLimits{}};
    const auto parsed = parser.parse(line);
    KVF_CHECK(parsed.is_done());
    Outcome& outcome = sink_.make(parsed.value().command);
    gets_.begin(parsed.value());
    memcache::KeyWalker walker(parsed.value().keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      EXPECT_TRUE(gets_.add(walker.next(), *pools_[i % pools_.size()]));
    }
    gets_.send(*outcome.call, parsed.value(), form);
    keys_sent_ += static_cast<std::uint32_t>(keys.size());
    return outcome;
  }
  static std::string row(std::initializer_list<std::string> keys, std::string_view head = "get") {
    std::string bytes;
    for (const std::string& text : keys) {
      bytes.append(head).append(" ").append(text).append("\r\n");
    }
    return bytes;
  }
  void expect_received(test::FakeBackend& server, std::string_view bytes) {
    ASSERT_TRUE(run_until([&] { return server.peers.back()->data.size() >= bytes.size(); }));
    ASSERT_EQ(server.peers.back()->take(), bytes);
  }
  static void reply(test::FakeBackend& server, std::string_view bytes) {
    server.peers.back()->send(bytes);
  }
  bool wait_for(const Outcome& outcome) {
    return run_until([&] { return outcome.is_done; });
  }

  void on_get_over(std::uint32_t key_count) override { keys_over_ += key_count; }
  void on_kept(std::size_t bytes) override {
    kept_ += bytes;
    kept_most_ = std::max(kept_most_, kept_);
  }
  void on_dropped(std::size_t bytes) override { kept_ -= bytes; }

  test::FakeBackend second_;
  McpBackendOptions second_options_;
  std::vector<std::unique_ptr<McpPool>> pools_;
  McpGets gets_;
  std::size_t kept_ = 0;
  std::size_t kept_most_ = 0;
  std::uint32_t keys_sent_ = 0;
  std::uint32_t keys_over_ = 0;
};

// Both forms look the same to clients.

TEST_P(McpGetsTest, AWideGetAsksEachBackendOnceAndMergesInTheOrderOfTheRequest) {
  make_both();
  const std::string a = key(0);
  const std::string b = key(1);
  const std::string c = key(0, 1);
  const std::string d = key(1, 1);
  Outcome& outcome = get(GetForm::Wide, {a, b, c, b, d}, "gets  ");
  expect_received(server_, "gets " + a + " " + c + "\r\n");
  expect_received(second_, "gets " + b + " " + b + " " + d + "\r\n");
  reply(second_, item(b, "B") + item(b, "B2") + "END\r\n");  // d is a miss.
  rig_.run_for(base::Millis(10));
  EXPECT_EQ(outcome.parts, 0) << "passed on before every part was complete";
  reply(server_, item(a, "A") + item(c, "C") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes, item(a, "A") + item(b, "B") + item(c, "C") + item(b, "B2") + "END\r\n");
  EXPECT_EQ(outcome.code, memcache::ReplyCode::Value);
  EXPECT_EQ(kept_most_, (item(b, "B") + item(b, "B2")).size());
}

TEST_P(McpGetsTest, ARowAsksForEachKeyAndTakesRepliesByTheirOrder) {
  make_both();
  const std::string a = key(0);
  const std::string b = key(1);
  const std::string c = key(0, 1);
  const std::string d = key(1, 1);
  Outcome& outcome = get(GetForm::Row, {a, b, c, b, d}, "gat 30");
  expect_received(server_, row({a, c}, "gat 30"));
  expect_received(second_, row({b, b, d}, "gat 30"));
  reply(second_, "END\r\n" + item(b, "B2") + "END\r\n" + "SERVER_ERROR busy\r\n");
  reply(server_, item(a, "A") + "END\r\n" + item(c, "C") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes,
            item(a, "A") + item(c, "C") + item(b, "B2") + "SERVER_ERROR busy\r\nEND\r\n");
  EXPECT_EQ(outcome.code, memcache::ReplyCode::Value);
}

class McpGetFormsTest : public McpGetsTest {};

TEST_P(McpGetFormsTest, AllMissesAreAnEnd) {
  make_both();
  for (const GetForm form : {GetForm::Wide, GetForm::Row}) {
    Outcome& outcome = get(form, {key(0), key(1), key(0, 1)});
    const bool is_row = form == GetForm::Row;
    expect_received(server_,
                    is_row ? row({key(0), key(0, 1)}) : "get " + key(0) + " " + key(0, 1) + "\r\n");
    expect_received(second_, row({key(1)}));
    reply(server_, is_row ? "END\r\nEND\r\n" : "END\r\n");
    reply(second_, "END\r\n");
    ASSERT_TRUE(wait_for(outcome));
    EXPECT_EQ(outcome.bytes, "END\r\n");
    EXPECT_EQ(outcome.code, memcache::ReplyCode::End);
  }
}

TEST_P(McpGetFormsTest, RepliesCutAnywhereAreJoined) {
  make_both();
  const std::string a = key(0);
  const std::string b = key(0, 1);
  const std::string c = key(0, 2);
  for (const bool is_alone : {true, false}) {
    for (const GetForm form : {GetForm::Wide, GetForm::Row}) {
      const std::string end = form == GetForm::Row ? "END\r\n" : "";
      const std::string text = item(a, "first") + end + end + item(c, "") + "END\r\n";
      for (std::size_t at = 1; at < text.size(); at += 2) {
        std::vector<std::string> keys{a, b, c};
        if (!is_alone) {
          keys.push_back(key(1));
        }
        Outcome& outcome = get(form, keys);
        expect_received(server_, form == GetForm::Row ? row({a, b, c})
                                                      : "get " + a + " " + b + " " + c + "\r\n");
        if (!is_alone) {
          expect_received(second_, row({key(1)}));
          reply(second_, item(key(1), "x") + "END\r\n");
        }
        reply(server_, text.substr(0, at));
        rig_.run_turns(3);
        reply(server_, text.substr(at));
        ASSERT_TRUE(wait_for(outcome));
        ASSERT_EQ(outcome.bytes,
                  item(a, "first") + item(c, "") + (is_alone ? "" : item(key(1), "x")) + "END\r\n")
            << at;
      }
    }
  }
}

TEST_P(McpGetFormsTest, KeysOfABackendThatFailsHaveItsLineInTheirPlace) {
  second_options_.is_down = true;
  make_pool({options_, second_options_});
  ASSERT_TRUE(run_until([&] { return !server_.peers.empty(); }));
  for (const GetForm form : {GetForm::Wide, GetForm::Row}) {
    Outcome& outcome = get(form, {key(1), key(0), key(1, 1)});
    expect_received(server_, row({key(0)}));
    reply(server_, item(key(0), "A") + "END\r\n");
    ASSERT_TRUE(wait_for(outcome));
    EXPECT_EQ(outcome.bytes, std::string(kFailureText) + item(key(0), "A") +
                                 std::string(kFailureText) + "END\r\n");
    Outcome& all = get(form, {key(1), key(1, 1)});
    ASSERT_TRUE(all.is_done);
    EXPECT_EQ(all.bytes, std::string(kFailureText) + std::string(kFailureText) + "END\r\n");
  }
}

TEST_P(McpGetFormsTest, ABackendThatDiesLeavesWhatItHasSaid) {
  make_both();
  for (const GetForm form : {GetForm::Wide, GetForm::Row}) {
    const std::string end = form == GetForm::Row ? "END\r\n" : "";
    for (const std::string& half : {std::string(), std::string("VALUE x 0 10\r\nhalf")}) {
      ASSERT_TRUE(run_until([&] { return server_.peers.back()->stream != nullptr; }));
      rig_.run_turns(10);
      Outcome& outcome = get(form, {key(0), key(0, 1), key(0, 2)});
      ASSERT_TRUE(run_until([&] { return server_.peers.back()->data.size() > 10; }));
      std::string cut = half;
      if (!half.empty()) {
        cut.replace(6, 1, key(0, 1));
      }
      reply(server_, item(key(0), "A") + end + cut);
      ASSERT_TRUE(run_until([&] { return server_.peers.back()->stream->output_bytes() == 0; }));
      const std::size_t known = server_.peers.size();
      server_.peers.back()->close();
      ASSERT_TRUE(wait_for(outcome));
      EXPECT_EQ(outcome.bytes, item(key(0), "A") + std::string(kFailureText) +
                                   std::string(kFailureText) + "END\r\n")
          << half;
      EXPECT_EQ(recorder_.errors.back().failure, McpFailure::Disconnected);
      EXPECT_EQ(recorder_.errors.back().depth, form == GetForm::Row ? 2U : 1U);
      ASSERT_TRUE(run_until([&] { return server_.peers.size() > known; }));
    }
  }
}

TEST_P(McpGetsTest, AnItemOfARowCountsWhenItsReplyHasEnded) {
  make_both();
  Outcome& outcome = get(GetForm::Row, {key(0), key(0, 1)});
  expect_received(server_, row({key(0), key(0, 1)}));
  reply(server_, item(key(0), "A") + "EN");
  ASSERT_TRUE(run_until([&] { return server_.peers.back()->stream->output_bytes() == 0; }));
  server_.peers.back()->close();
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes, std::string(kFailureText) + std::string(kFailureText) + "END\r\n");
}

TEST_P(McpGetsTest, AnErrorLineOfAWideGetStandsForEachOfItsKeys) {
  make_both();
  Outcome& outcome = get(GetForm::Wide, {key(0), key(1), key(0, 1)});
  expect_received(server_, "get " + key(0) + " " + key(0, 1) + "\r\n");
  expect_received(second_, row({key(1)}));
  reply(server_, "SERVER_ERROR out of memory\r\n");
  reply(second_, item(key(1), "B") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes, "SERVER_ERROR out of memory\r\n" + item(key(1), "B") +
                               "SERVER_ERROR out of memory\r\nEND\r\n");
}

TEST_P(McpGetsTest, AnAnswerThatDropsTheConnectionIsPassedOnAndTheRestOfItsRowFails) {
  make_both();
  Outcome& outcome = get(GetForm::Row, {key(0), key(0, 1), key(0, 2)});
  expect_received(server_, row({key(0), key(0, 1), key(0, 2)}));
  reply(server_,
        item(key(0), "A") + "END\r\nCLIENT_ERROR bad\r\n" + item(key(0, 2), "C") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes,
            item(key(0), "A") + "CLIENT_ERROR bad\r\n" + std::string(kFailureText) + "END\r\n");
  EXPECT_EQ(recorder_.errors.back().failure, McpFailure::InvalidProtocol);
  EXPECT_EQ(recorder_.errors.back().depth, 1U);
}

TEST_P(McpGetsTest, OddAnswersOfARowAreThoseOfTheirKeys) {
  make_both();
  Outcome& outcome = get(GetForm::Row, {key(0), key(0, 1), key(0, 2), key(0, 3)});
  expect_received(server_, row({key(0), key(0, 1), key(0, 2), key(0, 3)}));
  reply(server_,
        "XX\r\nHD\r\n" + item("other", "O") + "END\r\n" + item(key(0, 3), "D") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes, std::string(kFailureText) + "HD\r\n" + item("other", "O") +
                               item(key(0, 3), "D") + "END\r\n");
}

TEST_P(McpGetFormsTest, AValueOfAnotherKindFailsTheRestOfItsPart) {
  make_both();
  for (const GetForm form : {GetForm::Wide, GetForm::Row}) {
    Outcome& outcome = get(form, {key(0), key(0, 1), key(1)});
    ASSERT_TRUE(run_until([&] { return server_.peers.back()->data.size() > 8; }));
    server_.peers.back()->take();
    expect_received(second_, row({key(1)}));
    // Its bytes look like an item and its end.
    reply(server_, "VA 20\r\nVALUE a 0 1\r\nx\r\nEND\r\n" +
                       std::string(form == GetForm::Row ? "END\r\n" : ""));
    reply(second_, item(key(1), "B") + "END\r\n");
    ASSERT_TRUE(wait_for(outcome));
    EXPECT_EQ(outcome.bytes, std::string(kFailureText) + std::string(kFailureText) +
                                 item(key(1), "B") + "END\r\n");
  }
}

TEST_P(McpGetsTest, AKeyThatWasNotAskedForFailsTheRestOfAWidePart) {
  make_both();
  Outcome& outcome = get(GetForm::Wide, {key(0), key(1), key(0, 1)});
  expect_received(server_, "get " + key(0) + " " + key(0, 1) + "\r\n");
  expect_received(second_, row({key(1)}));
  reply(second_, "END\r\n");
  reply(server_, item("other", "O") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  // The keys before it were seen to be missing.
  EXPECT_EQ(outcome.bytes, "END\r\n");
  Outcome& next = get(GetForm::Wide, {key(0), key(1), key(0, 1)});
  expect_received(server_, "get " + key(0) + " " + key(0, 1) + "\r\n");
  expect_received(second_, row({key(1)}));
  reply(second_, "END\r\n");
  reply(server_, "NOTHING\r\n");
  ASSERT_TRUE(wait_for(next));
  EXPECT_EQ(next.bytes, std::string(kFailureText) + std::string(kFailureText) + "END\r\n");
}

TEST_P(McpGetsTest, TheReplyOfAnOnlyBackendIsPassedOnAsItCame) {
  make_both();
  Outcome& outcome = get(GetForm::Wide, {key(0), key(0, 1)});
  expect_received(server_, "get " + key(0) + " " + key(0, 1) + "\r\n");
  const std::string text = item(key(0), "A") + item(key(0, 1), "B") + "END\r\n";
  reply(server_, text);
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes, text);
  EXPECT_EQ(outcome.parts, 1);
  EXPECT_EQ(kept_most_, 0U);
}

TEST_P(McpGetsTest, ABackendOfTwoPoolsIsAskedOnce) {
  make_pool({options_});
  make_pool({options_});
  ASSERT_TRUE(run_until([&] { return !server_.peers.empty(); }));
  Outcome& outcome = get(GetForm::Wide, {"a", "b", "c"});
  expect_received(server_, "get a b c\r\n");
  reply(server_, item("b", "B") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes, item("b", "B") + "END\r\n");
}

TEST_P(McpGetsTest, LongLinesOfOtherCommandsAreNotWide) {
  make_pool({options_});
  ASSERT_TRUE(run_until([&] { return !server_.peers.empty(); }));
  const std::string long_key(240, 'k');
  const std::vector<std::string> keys(5, long_key);
  Outcome& gat = get(GetForm::Wide, keys, "gat 5");
  expect_received(server_, row({long_key, long_key, long_key, long_key, long_key}, "gat 5"));
  reply(server_, "END\r\nEND\r\nEND\r\nEND\r\nEND\r\n");
  ASSERT_TRUE(wait_for(gat));
  Outcome& plain = get(GetForm::Wide, keys);
  ASSERT_TRUE(run_until([&] { return server_.peers.back()->data.ends_with("\r\n"); }));
  EXPECT_EQ(std::ranges::count(server_.peers.back()->take(), '\n'), 1);
  reply(server_, "END\r\n");
  ASSERT_TRUE(wait_for(plain));
}

TEST_P(McpGetFormsTest, LargeValuesArePausedWhereTheyAreAhead) {
  make_both();
  const std::string big = test::pattern(2'000'000);
  for (const GetForm form : {GetForm::Wide, GetForm::Row}) {
    const std::string end = form == GetForm::Row ? "END\r\n" : "";
    kept_most_ = 0;
    Outcome& outcome = get(form, {key(0), key(1), key(1, 1)});
    outcome.pauses_left = 50;
    expect_received(server_, row({key(0)}));
    ASSERT_TRUE(run_until([&] { return second_.peers.back()->data.size() > 8; }));
    second_.peers.back()->take();
    reply(second_, item(key(1), big) + end + item(key(1, 1), big) + "END\r\n");
    rig_.run_for(base::Millis(50));
    EXPECT_EQ(outcome.parts, 0);
    EXPECT_LT(kept_most_, 2 * kMergeBufferBytes);
    EXPECT_GT(kept_, kMergeBufferBytes / 2);
    reply(server_, item(key(0), "A") + "END\r\n");
    ASSERT_TRUE(run_until([&] {
      if (outcome.is_paused) {
        sink_.resume(outcome);
      }
      return outcome.is_done;
    }));
    EXPECT_TRUE(outcome.bytes ==
                item(key(0), "A") + item(key(1), big) + item(key(1, 1), big) + "END\r\n");
    EXPECT_EQ(kept_, 0U);
  }
}

TEST_P(McpGetFormsTest, AClientThatGoesLeavesTheConnectionInStep) {
  make_both();
  const std::string big = test::pattern(1'000'000);
  for (const GetForm form : {GetForm::Wide, GetForm::Row}) {
    const std::string end = form == GetForm::Row ? "END\r\n" : "";
    Outcome& outcome = get(form, {key(0), key(0, 1)});
    outcome.pauses_left = 1;
    ASSERT_TRUE(run_until([&] { return server_.peers.back()->data.size() > 8; }));
    server_.peers.back()->take();
    reply(server_, item(key(0), big) + end + item(key(0, 1), big) + "END\r\n");
    ASSERT_TRUE(run_until([&] { return outcome.is_paused; }));
    sink_.discard(outcome);
    ASSERT_TRUE(wait_for(outcome));
    Outcome& next = get(form, {key(0), key(0, 1)});
    ASSERT_TRUE(run_until([&] { return server_.peers.back()->data.size() > 8; }));
    server_.peers.back()->take();
    reply(server_, item(key(0), "A") + end + item(key(0, 1), "B") + "END\r\n");
    ASSERT_TRUE(wait_for(next));
    EXPECT_EQ(next.bytes, item(key(0), "A") + item(key(0, 1), "B") + "END\r\n");
  }
}

TEST_P(McpGetsTest, DepthLimitsCountEachRequestOfARow) {
  options_.depth_limit = 2;
  make_pool({options_});
  ASSERT_TRUE(run_until([&] { return !server_.peers.empty(); }));
  Outcome& first = get(GetForm::Row, {"a", "b", "c"});
  end_turn();
  Outcome& refused = get(GetForm::Row, {"d", "e"});
  ASSERT_TRUE(refused.is_done);
  EXPECT_EQ(refused.bytes, std::string(kFailureText) + std::string(kFailureText) + "END\r\n");
  EXPECT_EQ(stats_->failed_depth.get(), 2U);
  expect_received(server_, row({"a", "b", "c"}));
  reply(server_, "END\r\nEND\r\nEND\r\n");
  ASSERT_TRUE(wait_for(first));
  EXPECT_EQ(first.bytes, "END\r\n");
}

TEST_P(McpGetsTest, APoolWithoutBackendsTakesNoKeyAndNothingStays) {
  McpPool& both = make_pool({options_, second_options_});
  McpPool& empty = make_pool({});
  memcache::RequestParser parser{memcache::ParserLimits{}};
  const auto parsed = parser.parse("get a b\r\n");
  gets_.begin(parsed.value());
  EXPECT_TRUE(gets_.add("a", both));
  EXPECT_FALSE(gets_.add("b", empty));
  gets_.abandon();
  pools_.pop_back();
  ASSERT_TRUE(run_until([&] { return !server_.peers.empty() && !second_.peers.empty(); }));
  Outcome& outcome = get(GetForm::Wide, {key(1), key(1, 1)});
  expect_received(second_, "get " + key(1) + " " + key(1, 1) + "\r\n");
  reply(second_, "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
}

INSTANTIATE_TEST_SUITE_P(Engines, McpGetsTest, testing::ValuesIn(test::kEngines), test::name_of);
INSTANTIATE_TEST_SUITE_P(Engines, McpGetFormsTest, testing::ValuesIn(test::kEngines),
                         test::name_of);

}  // namespace
}  // namespace kvferry::pool
