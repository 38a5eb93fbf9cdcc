#include "pool/redis_split.h"

#include "tests/unit/pool/redis_pool_rig.h"

namespace kvferry::pool {
namespace {

using memcache::ReplyCode;
using test::Outcome;

class RedisSplitTest : public RedisPoolRig {
 protected:
  std::string failed_line() const {
    return "-UNAVAIL kvferry: connection lost after the command "
           "was sent; it may have run (pool p)\r\n";
  }
};

TEST_P(RedisSplitTest, OneBackendGetsTheRequestAsItCame) {
  make(2);
  Outcome& a = send({"mget", key(1), key(1, 1)});
  expect_received(1, resp({"mget", key(1), key(1, 1)}));
  reply(1, "*2\r\n$-1\r\n$-1\r\n");
  ASSERT_TRUE(wait_for(a));
  EXPECT_EQ(a.bytes, "*2\r\n$-1\r\n$-1\r\n");
}

TEST_P(RedisSplitTest, MgetElementsReturnToTheirKeys) {
  make(3);
  const std::string a = key(0);
  const std::string b = key(1);
  const std::string c = key(2);
  Outcome& get = send({"MGET", a, b, a, c, key(0, 1)});
  expect_received(0, resp({"MGET", a, a, key(0, 1)}));
  expect_received(1, resp({"MGET", b}));
  expect_received(2, resp({"MGET", c}));
  reply(1, "*1\r\n$-1\r\n");
  reply(2, "*1\r\n" + bulk("C") + "");
  rig_.run_for(base::Millis(5));
  EXPECT_FALSE(get.is_done);
  reply(0, "*3\r\n" + bulk("A") + bulk("A") + bulk(""));
  ASSERT_TRUE(wait_for(get));
  EXPECT_EQ(get.bytes, "*5\r\n" + bulk("A") + "$-1\r\n" + bulk("A") + bulk("C") + bulk(""));
  EXPECT_EQ(get.code, ReplyCode::Value);
  EXPECT_EQ(get.parts, 1);
}

TEST_P(RedisSplitTest, PartsThatComeInAnyPiecesAreMerged) {
  make(2);
  const std::string first = "*2\r\n" + bulk("one") + "$-1\r\n";
  const std::string second = "*1\r\n" + bulk("t\r\no") + "";
  for (std::size_t at = 1; at < first.size(); ++at) {
    Outcome& get = send({"MGET", key(0), key(1), key(0, 1)});
    expect_received(0, resp({"MGET", key(0), key(0, 1)}));
    expect_received(1, resp({"MGET", key(1)}));
    reply(0, first.substr(0, at));
    reply(1, second.substr(0, at % second.size()));
    rig_.run_turns(2);
    reply(0, first.substr(at));
    reply(1, second.substr(at % second.size()));
    ASSERT_TRUE(wait_for(get));
    EXPECT_EQ(get.bytes, "*3\r\n" + bulk("one") + bulk("t\r\no") + "$-1\r\n");
  }
}

TEST_P(RedisSplitTest, BigElementsAreMergedAndFlow) {
  make(2);
  const std::string big = test::pattern(300'000);
  const std::string other = test::pattern(50'000);
  Outcome& get = send({"MGET", key(0), key(1), key(0, 1)});
  get.pauses_left = 5;
  expect_received(0, resp({"MGET", key(0), key(0, 1)}));
  expect_received(1, resp({"MGET", key(1)}));
  reply(0, "*2\r\n" + bulk(big) + bulk("x"));
  reply(1, "*1\r\n" + bulk(other));
  ASSERT_TRUE(run_until([&] {
    if (get.is_paused) {
      sink_.resume(get);
    }
    return get.is_done;
  }));
  EXPECT_TRUE(get.bytes == "*3\r\n" + bulk(big) + bulk(other) + bulk("x"));
  EXPECT_EQ(get.pauses_left, 0);
}

TEST_P(RedisSplitTest, ASinkThatIsGoneDiscardsTheRest) {
  make(2);
  Outcome& get = send({"MGET", key(0), key(1)});
  get.pauses_left = 1;
  expect_received(0, resp({"MGET", key(0)}));
  expect_received(1, resp({"MGET", key(1)}));
  reply(0, "*1\r\n" + bulk(test::pattern(300'000)));
  reply(1, "*1\r\n" + bulk("x"));
  ASSERT_TRUE(run_until([&] { return get.is_paused; }));
  sink_.discard(get);
  ASSERT_TRUE(wait_for(get));
  EXPECT_LT(get.bytes.size(), 300'000U);
}

TEST_P(RedisSplitTest, SumsAreAdded) {
  make(3);
  for (const char* name : {"DEL", "UNLINK", "EXISTS", "TOUCH"}) {
    Outcome& sum = send({name, key(0), key(1), key(0, 1), key(2)});
    expect_received(0, resp({name, key(0), key(0, 1)}));
    expect_received(1, resp({name, key(1)}));
    expect_received(2, resp({name, key(2)}));
    reply(0, ":2\r\n");
    reply(1, ":0\r\n");
    reply(2, ":5000000000\r\n");
    ASSERT_TRUE(wait_for(sum));
    EXPECT_EQ(sum.bytes, ":5000000002\r\n") << name;
    EXPECT_EQ(sum.code, ReplyCode::Number);
  }
}

TEST_P(RedisSplitTest, MsetKeepsValuesWithTheirKeysInOrder) {
  make(2);
  const std::string value = test::pattern(200);
  Outcome& set = send({"MSET", key(0), "first", key(1), value, key(0), "last"});
  expect_received(0, resp({"MSET", key(0), "first", key(0), "last"}));
  expect_received(1, resp({"MSET", key(1), value}));
  reply(0, "+OK\r\n");
  reply(1, "+OK\r\n");
  ASSERT_TRUE(wait_for(set));
  EXPECT_EQ(set.bytes, "+OK\r\n");
}

TEST_P(RedisSplitTest, AnMsetWithoutItsLastValueIsForAServerToRefuse) {
  make(2);
  Outcome& set = send({"MSET", key(0), "a", key(1)});
  ASSERT_TRUE(
      run_until([&] { return fakes_[0]->received() == resp({"MSET", key(0), "a", key(1)}); }));
  reply(0, "-ERR wrong number of arguments for 'mset' command\r\n");
  ASSERT_TRUE(wait_for(set));
}

TEST_P(RedisSplitTest, APartThatFailsFailsTheWhole) {
  make(2);
  Outcome& get = send({"MGET", key(0), key(1)});
  expect_received(0, resp({"MGET", key(0)}));
  expect_received(1, resp({"MGET", key(1)}));
  reply(0, "*1\r\n" + bulk("x"));
  cut(1);
  ASSERT_TRUE(wait_for(get));
  EXPECT_EQ(get.bytes, failed_line());
  EXPECT_EQ(get.code, ReplyCode::ServerError);
}

TEST_P(RedisSplitTest, UnderElementFailedKeysAreErrorsInTheArray) {
  options_.on_partial = OnPartial::Element;
  make(2);
  Outcome& get = send({"MGET", key(1), key(0), key(1, 1)});
  expect_received(0, resp({"MGET", key(0)}));
  expect_received(1, resp({"MGET", key(1), key(1, 1)}));
  cut(1);
  reply(0, "*1\r\n" + bulk("x"));
  ASSERT_TRUE(wait_for(get));
  EXPECT_EQ(get.bytes, "*3\r\n" + failed_line() + bulk("x") + failed_line());
}

TEST_P(RedisSplitTest, UnderNullFailedKeysAreNullInTheVersionOfTheClient) {
  options_.on_partial = OnPartial::Null;
  make(2);
  for (const auto& [version, null] :
       {std::pair(resp::Version::Two, "$-1\r\n"), std::pair(resp::Version::Three, "_\r\n")}) {
    version_ = version;
    Outcome& get = send({"MGET", key(1), key(0)});
    if (version == resp::Version::Three) {
      for (const std::size_t i : {0U, 1U}) {
        ASSERT_TRUE(run_until([&] { return fakes_[i]->peers.size() == 2; }));
        expect_received(i, resp({"HELLO", "3"}));
        reply(i, "%0\r\n");
      }
    }
    expect_received(0, resp({"MGET", key(0)}));
    expect_received(1, resp({"MGET", key(1)}));
    reply(0, "*1\r\n" + bulk("x"));
    reply(1, "-LOADING Redis is loading the dataset in memory\r\n");
    ASSERT_TRUE(wait_for(get));
    EXPECT_EQ(get.bytes, "*2\r\n" + std::string(null) + bulk("x"));
  }
}

TEST_P(RedisSplitTest, AFailedSumIsPartialAndUnderNullWhatWorked) {
  for (const OnPartial rule : {OnPartial::Error, OnPartial::Element, OnPartial::Null}) {
    options_.on_partial = rule;
    if (pool_ == nullptr) {
      make(3);
    } else {
      snapshot_ = snapshot();
      pool_->apply(snapshot_);
    }
    Outcome& sum = send({"del", key(0), key(1), key(2), key(0, 1)});
    expect_received(0, resp({"del", key(0), key(0, 1)}));
    expect_received(1, resp({"del", key(1)}));
    expect_received(2, resp({"del", key(2)}));
    reply(0, ":2\r\n");
    reply(1, "-READONLY You can't write against a read only replica.\r\n");
    reply(2, ":1\r\n");
    ASSERT_TRUE(wait_for(sum));
    EXPECT_EQ(sum.bytes,
              rule == OnPartial::Null
                  ? ":3\r\n"
                  : "-PARTIAL kvferry: DEL finished on 2 of 3 shards (3 counted); first failure: "
                    "READONLY You can't write against a read only replica.\r\n");
  }
}

TEST_P(RedisSplitTest, AnMsetThatFailedInPartIsNeverOk) {
  options_.on_partial = OnPartial::Null;
  make(2);
  Outcome& set = send({"MSET", key(0), "a", key(1), "b", key(0, 1), "c"});
  expect_received(0, resp({"MSET", key(0), "a", key(0, 1), "c"}));
  expect_received(1, resp({"MSET", key(1), "b"}));
  reply(0, "+OK\r\n");
  reply(1, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
  ASSERT_TRUE(wait_for(set));
  EXPECT_EQ(set.bytes,
            "-PARTIAL kvferry: MSET finished on 1 of 2 shards (2 counted); first failure: OOM "
            "command not allowed when used memory > 'maxmemory'.\r\n");
}

TEST_P(RedisSplitTest, TwemproxySaysInvalidArgument) {
  options_.error_style = ErrorStyle::Twemproxy;
  make(2);
  for (const char* name : {"MGET", "DEL"}) {
    Outcome& outcome = send({name, key(0), key(1)});
    expect_received(0, resp({name, key(0)}));
    expect_received(1, resp({name, key(1)}));
    reply(0, "-OOM x\r\n");
    reply(1, name == std::string_view("DEL") ? ":1\r\n" : "*1\r\n$-1\r\n");
    ASSERT_TRUE(wait_for(outcome));
    EXPECT_EQ(outcome.bytes, "-ERR Invalid argument\r\n");
  }
}

TEST_P(RedisSplitTest, ALongErrorOfAPartIsPassedOnWhole) {
  make(2);
  Outcome& get = send({"MGET", key(0), key(1)});
  const std::string line = "-ERR " + std::string(5000, 'e') + "\r\n";
  expect_received(0, resp({"MGET", key(0)}));
  expect_received(1, resp({"MGET", key(1)}));
  reply(0, line);
  reply(1, "*1\r\n$-1\r\n");
  ASSERT_TRUE(wait_for(get));
  EXPECT_TRUE(get.bytes == line);
  Outcome& del = send({"DEL", key(0), key(1)});
  expect_received(0, resp({"DEL", key(0)}));
  expect_received(1, resp({"DEL", key(1)}));
  reply(0, line);
  reply(1, ":1\r\n");
  ASSERT_TRUE(wait_for(del));
  EXPECT_EQ(del.bytes.size(), 512U);
  EXPECT_TRUE(del.bytes.ends_with("e\r\n"));
}

TEST_P(RedisSplitTest, APartWithAnotherReplyFails) {
  make(2);
  for (const char* bad : {"*0\r\n", "*2\r\n$-1\r\n$-1\r\n", "+OK\r\n", ":1\r\n", "*-1\r\n"}) {
    Outcome& get = send({"MGET", key(0), key(1)});
    expect_received(0, resp({"MGET", key(0)}));
    expect_received(1, resp({"MGET", key(1)}));
    reply(0, bad);
    reply(1, "*1\r\n$-1\r\n");
    ASSERT_TRUE(wait_for(get));
    EXPECT_EQ(get.bytes, "-BADREPLY kvferry: backend reply does not fit the command (pool p)\r\n")
        << bad;
  }
  for (const char* bad : {"*0\r\n", "+OK\r\n", ":-1\r\n", ":x\r\n"}) {
    Outcome& sum = send({"DEL", key(0), key(1)});
    expect_received(0, resp({"DEL", key(0)}));
    expect_received(1, resp({"DEL", key(1)}));
    reply(0, bad);
    reply(1, ":1\r\n");
    ASSERT_TRUE(wait_for(sum));
    EXPECT_TRUE(
        sum.bytes.starts_with("-PARTIAL kvferry: DEL finished on 1 of 2 shards (1 counted)"))
        << sum.bytes;
  }
}

TEST_P(RedisSplitTest, AReplyThatIsCutAfterPartsOfItCameFails) {
  make(2);
  Outcome& get = send({"MGET", key(0), key(1)});
  expect_received(0, resp({"MGET", key(0)}));
  expect_received(1, resp({"MGET", key(1)}));
  reply(0, "*1\r\n$100000\r\n" + test::pattern(50'000));
  reply(1, "*1\r\n$-1\r\n");
  rig_.run_for(base::Millis(10));
  cut(0);
  ASSERT_TRUE(wait_for(get));
  EXPECT_EQ(get.bytes, failed_line());
}

TEST_P(RedisSplitTest, MoreThanMayBeKeptIsAnError) {
  options_.redis.max_merge_bytes = 1000;
  make(2);
  for (const std::size_t size : {600U, 100'000U}) {
    Outcome& get = send({"MGET", key(0), key(1)});
    expect_received(0, resp({"MGET", key(0)}));
    expect_received(1, resp({"MGET", key(1)}));
    reply(0, "*1\r\n" + bulk(test::pattern(600)));
    reply(1, "*1\r\n" + bulk(test::pattern(size)));
    ASSERT_TRUE(wait_for(get));
    EXPECT_EQ(get.bytes, "-OVERLOAD kvferry: merged reply is larger than 1000 bytes (pool p)\r\n");
  }
}

TEST_P(RedisSplitTest, AllBackendsRefusingAnswersAtOnce) {
  make(2);
  fakes_[0]->stop();
  fakes_[1]->stop();
  Outcome& first = send({"DEL", key(0), key(1)});
  ASSERT_TRUE(wait_for(first));
  EXPECT_EQ(first.bytes,
            "-PARTIAL kvferry: DEL finished on 0 of 2 shards (0 counted); first failure: UNAVAIL "
            "kvferry: could not connect to backend: Connection refused (pool p)\r\n");
  Outcome& second = send({"DEL", key(0), key(1)});
  EXPECT_TRUE(second.is_done);
}

TEST_P(RedisSplitTest, VeryManyKeysAreSplitAndTheirMemoryIsGivenBack) {
  make(2);
  Words words = {"EXISTS"};
  for (int i = 0; i < 20'000; ++i) {
    words.push_back("key" + std::to_string(i));
  }
  Outcome& sum = send(words);
  // As many words as came, and one name more; the counts are written with fewer digits.
  const std::size_t all_bytes =
      resp(words).size() + std::string("*12345\r\n$6\r\nEXISTS\r\n").size();
  ASSERT_TRUE(run_until([&] {
    return fakes_[0]->received().size() + fakes_[1]->received().size() >= all_bytes - 2;
  }));
  const std::size_t used = rig_.budget.used_bytes();
  reply(0, ":10\r\n");
  reply(1, ":20\r\n");
  ASSERT_TRUE(wait_for(sum));
  EXPECT_EQ(sum.bytes, ":30\r\n");
  EXPECT_GE(used - rig_.budget.used_bytes(), 20'000U * 12U);
}

TEST_P(RedisSplitTest, SeveralKeysOfOneShardGoThereAndOthersAreACrossSlot) {
  make(2);
  Outcome& good = send({"RENAME", key(1), key(1, 1)});
  expect_received(1, resp({"RENAME", key(1), key(1, 1)}));
  reply(1, "+OK\r\n");
  ASSERT_TRUE(wait_for(good));
  for (const Words& words :
       {Words{"RENAME", key(0), key(1)}, Words{"SUNIONSTORE", key(0), key(0, 1), key(1)},
        Words{"EVAL", "return 1", "2", key(0), key(1)}, Words{"MSETNX", key(0), "1", key(1), "2"},
        Words{"SORT", key(0), "STORE", key(1)}}) {
    EXPECT_EQ(send(words).bytes, "-CROSSSLOT Keys in request don't hash to the same slot\r\n")
        << words.front();
  }
}

TEST_P(RedisSplitTest, StrictWantsEqualHashedParts) {
  options_.redis.same_slot = SameSlot::Strict;
  options_.placement.hash_tag = "{}";
  make(2);
  EXPECT_EQ(send({"RENAME", key(1), key(1, 1)}).bytes,
            "-CROSSSLOT Keys in request don't hash to the same slot\r\n");
  const std::string tag = "{" + key(1) + "}";
  Outcome& good = send({"RENAME", tag + "a", tag + "b"});
  expect_received(1, resp({"RENAME", tag + "a", tag + "b"}));
  reply(1, "+OK\r\n");
  ASSERT_TRUE(wait_for(good));
}

TEST_P(RedisSplitTest, ScriptsWithBadKeyCountsAreRefusedAsAServerDoes) {
  make(2);
  EXPECT_EQ(send({"EVAL", "return 1", "x"}).bytes,
            "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(send({"EVAL", "return 1", "3", "a"}).bytes,
            "-ERR Number of keys can't be greater than number of args\r\n");
  EXPECT_EQ(send({"EVAL", "return 1", "-1"}).bytes, "-ERR Number of keys can't be negative\r\n");
}

TEST_P(RedisSplitTest, AScriptWithoutKeysGoesToTheFirstBackendThatIsUp) {
  make(2);
  send({"EVAL", "return 1", "0"});
  send({"EVAL", "return 1", "0"});
  expect_received(0, resp({"EVAL", "return 1", "0"}) + resp({"EVAL", "return 1", "0"}));
  reply(0, ":1\r\n:1\r\n");
  while (!snapshot_->health[0]->is_down()) {
    snapshot_->health[0]->on_failure();
  }
  send({"EVAL", "return 1", "0"});
  Outcome& eval = send({"EVAL", "return 1", "0"});
  expect_received(1, resp({"EVAL", "return 1", "0"}) + resp({"EVAL", "return 1", "0"}));
  reply(1, ":1\r\n:1\r\n");
  ASSERT_TRUE(wait_for(eval));
}

TEST_P(RedisSplitTest, SortByPatternsNeedsOneShard) {
  make(2);
  EXPECT_EQ(send({"SORT", "k", "BY", "w_*"}).bytes,
            "-ERR BY option of SORT denied in Cluster mode.\r\n");
  EXPECT_EQ(send({"SORT", "k", "GET", "o_*"}).bytes,
            "-ERR GET option of SORT denied in Cluster mode.\r\n");
  Outcome& plain = send({"SORT", key(0), "BY", "nosort", "GET", "#"});
  expect_received(0, resp({"SORT", key(0), "BY", "nosort", "GET", "#"}));
  reply(0, "*0\r\n");
  ASSERT_TRUE(wait_for(plain));
}

TEST_P(RedisSplitTest, OneBackendTakesEverything) {
  make(1);
  const std::vector<Words> all = {
      {"MGET", "a", "b"}, {"RENAME", "a", "b"}, {"SORT", "k", "BY", "w_*"}, {"EVAL", "x", "9"}};
  std::string bytes;
  for (const Words& words : all) {
    send(words);
    bytes += resp(words);
  }
  expect_received(0, bytes);
  Outcome& up = send_as({"MSET", "a"}, "*5\r\n$4\r\nMSET\r\n$1\r\na\r\n$100000\r\n", 5);
  ASSERT_NE(up.call->body_sink, nullptr);
  pool_->shut();
}

TEST_P(RedisSplitTest, BigArgumentsOfSplitCommandsAreRefusedForNow) {
  make(2);
  Outcome& up = send_as({"MSET", "a"}, "*5\r\n$4\r\nMSET\r\n$1\r\na\r\n$100000\r\n", 5);
  EXPECT_TRUE(up.is_failure());
  EXPECT_TRUE(up.bytes.starts_with("-ERR kvferry: ")) << up.bytes;
}

TEST_P(RedisSplitTest, PublishGoesToTheShardOfItsChannel) {
  make(2);
  Outcome& publish = send({"PUBLISH", key(1), "m"});
  expect_received(1, resp({"PUBLISH", key(1), "m"}));
  reply(1, ":0\r\n");
  ASSERT_TRUE(wait_for(publish));
}

INSTANTIATE_TEST_SUITE_P(Engines, RedisSplitTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::pool
