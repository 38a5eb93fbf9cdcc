#include "redis/store_commands.h"

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "protocol/resp/inline_words.h"
#include "protocol/resp/reply_scanner.h"

namespace kvferry::redis {
namespace {

using resp::Version;

constexpr std::int64_t kNow = 1'800'000'000'000;

/// The words of a line, as an inline request has them.
std::vector<std::string> words_of(std::string_view line) {
  std::string bytes;
  std::vector<resp::WordPlace> places;
  EXPECT_TRUE(resp::read_inline_words(line, bytes, places)) << line;
  std::vector<std::string> words;
  for (const resp::WordPlace& place : places) {
    words.push_back(bytes.substr(place.begin, place.size));
  }
  return words;
}

class StoreCommandsTest : public testing::Test {
 protected:
  std::string ask_words(const std::vector<std::string>& words) {
    const std::vector<std::string_view> args(words.begin(), words.end());
    std::string text;
    resp::ReplyWriter reply(version_, text);
    EXPECT_TRUE(commands_.run(args, now_ms_, reply)) << words.front();
    // One reply, and nothing else.
    resp::ReplyScanner scanner;
    const resp::ReplyScanner::Scan found = scanner.scan(text);
    EXPECT_EQ(found.state, resp::ReplyScanner::State::End);
    EXPECT_EQ(found.taken_bytes, text.size());
    return text;
  }
  std::string ask(std::string_view line) { return ask_words(words_of(line)); }

  store::Store store_{store::StoreConfig{.item_bytes_max = std::size_t{2} * 1024 * 1024}};
  StoreCommands commands_{store_};
  Version version_ = Version::Two;
  std::int64_t now_ms_ = kNow;
};

std::string bulk(std::string_view bytes) {
  return "$" + std::to_string(bytes.size()) + "\r\n" + std::string(bytes) + "\r\n";
}

TEST_F(StoreCommandsTest, AnswersAsRedisServerDoes) {
  for (const Version version : {Version::Two, Version::Three}) {
    version_ = version;
    std::ifstream file(std::string(KVF_TEST_DATA) + "/data/redis/replies.txt");
    std::string line;
    std::string request;
    std::string got;
    std::string wanted;
    int count = 0;
    const auto check = [&] {
      if (!request.empty()) {
        EXPECT_EQ(got, wanted) << request << " in version " << static_cast<int>(version);
        ++count;
      }
    };
    ask("flushall");
    while (std::getline(file, line)) {
      const std::string_view rest =
          std::string_view(line).substr(line.size() < 2 ? line.size() : 2);
      if (line.starts_with("> ")) {
        check();
        request = rest;
        got = ask(rest);
      } else if (line.starts_with("2 ") || (line.starts_with("3 ") && version == Version::Three)) {
        wanted = words_of(rest).front();
      }
    }
    check();
    EXPECT_GT(count, 250);
  }
}

TEST_F(StoreCommandsTest, KnowsItsCommandsOnly) {
  std::string text;
  resp::ReplyWriter reply(Version::Two, text);
  for (const std::string_view name : {"hset", "ge", "getx", "", "a-name-that-is-longer-than-any"}) {
    const std::vector<std::string_view> args = {name, "k"};
    EXPECT_FALSE(commands_.run(args, kNow, reply)) << name;
  }
  EXPECT_FALSE(commands_.run({}, kNow, reply));
  EXPECT_EQ(text, "");
}

TEST_F(StoreCommandsTest, RefusesKeysThatTheStoreCannotHave) {
  const std::string too_long(store::kKeyBytesMax + 1, 'k');
  const std::string error = "-ERR kvferry: a key has 1 to 250 bytes\r\n";
  EXPECT_EQ(ask_words({"get", too_long}), error);
  EXPECT_EQ(ask_words({"get", ""}), error);
  EXPECT_EQ(ask_words({"mset", "a", "1", too_long, "2"}), error);
  EXPECT_EQ(ask("get a"), "$-1\r\n") << "nothing was done";
  EXPECT_EQ(ask_words({"mset", "a", too_long}), "+OK\r\n") << "values have another limit";
  EXPECT_EQ(ask_words({"del", "a", ""}), error);
}

TEST_F(StoreCommandsTest, WorksOnValuesInPieces) {
  const std::string large(100'000, 'x');
  EXPECT_EQ(ask_words({"set", "k", large}), "+OK\r\n");
  EXPECT_EQ(ask("get k"), bulk(large));
  EXPECT_EQ(ask("append k yz"), ":100002\r\n");
  EXPECT_EQ(ask("getrange k -3 -1"), bulk("xyz"));
  EXPECT_EQ(ask("setrange k 50000 AB"), ":100002\r\n");
  EXPECT_EQ(ask("getrange k 49999 50002"), bulk("xABx"));
  EXPECT_EQ(ask("strlen k"), ":100002\r\n");
  EXPECT_EQ(ask("setrange k 150000 end"), ":150003\r\n");
  EXPECT_EQ(ask("getrange k 149998 150002"), bulk(std::string_view("\0\0end", 5)));
  EXPECT_EQ(ask_words({"mget", "k", "none"}).size(),
            std::string("*2\r\n$150003\r\n\r\n$-1\r\n").size() + 150'003);
  EXPECT_EQ(ask_words({"set", "k", "small", "get"}).size(),
            std::string("$150003\r\n\r\n").size() + 150'003);
  EXPECT_EQ(ask("getdel k"), bulk("small"));
  const std::string too_large(3'000'000, 'x');
  EXPECT_EQ(ask_words({"set", "k", too_large}),
            "-ERR kvferry: the value is larger than the store takes\r\n");
  EXPECT_EQ(ask_words({"append", "k", too_large}),
            "-ERR kvferry: the value is larger than the store takes\r\n");
  EXPECT_EQ(ask_words({"getset", "k", too_large}),
            "-ERR kvferry: the value is larger than the store takes\r\n");
  EXPECT_EQ(ask("exists k"), ":0\r\n");
}

TEST_F(StoreCommandsTest, EndsItemsInTimeButNotBefore) {
  now_ms_ = kNow + 300;
  EXPECT_EQ(ask("set k v px 500"), "+OK\r\n");
  EXPECT_EQ(ask("pttl k"), ":700\r\n") << "up to the next whole second";
  now_ms_ = kNow + 999;
  EXPECT_EQ(ask("exists k"), ":1\r\n");
  now_ms_ = kNow + 1'000;
  EXPECT_EQ(ask("get k"), "$-1\r\n");
  EXPECT_EQ(ask("ttl k"), ":-2\r\n");
  EXPECT_EQ(ask("set k v nx"), "+OK\r\n");
  EXPECT_EQ(ask("expireat k 99999999999"), ":1\r\n");
  EXPECT_EQ(ask("expiretime k"), ":4294967295\r\n") << "the last second that the store knows";
}

TEST_F(StoreCommandsTest, SeesWhatClientsOfMemcachedHaveStored) {
  store::Store& store = store_;
  const store::Instant now{static_cast<std::uint32_t>(kNow / 1000)};
  store.store(store::Key("n"), store::StoreOptions{.client_flags = 7}, "10", now);
  store.add_delta(store::Key("n"), store::ArithOptions{.is_decrement = true}, now);
  EXPECT_EQ(ask("get n"), bulk("9 ")) << "padded by decr";
  EXPECT_EQ(ask("incr n"), ":10\r\n");
  EXPECT_EQ(ask("append n 0"), ":3\r\n");
  store::ItemCopy copy;
  store.copy(store::Key("n"), now, copy);
  EXPECT_EQ(copy.client_flags, 7U) << "edits keep them";
  EXPECT_EQ(ask("set n 1"), "+OK\r\n");
  store.copy(store::Key("n"), now, copy);
  EXPECT_EQ(copy.client_flags, 0U);
}

TEST_F(StoreCommandsTest, ScansEveryKeyOnce) {
  std::set<std::string> keys;
  for (int i = 0; i < 5'000; ++i) {
    keys.insert("key:" + std::to_string(i));
    ask_words({"set", "key:" + std::to_string(i), "v"});
  }
  std::set<std::string> found;
  std::string cursor = "0";
  int calls = 0;
  do {
    std::istringstream reply(ask_words({"scan", cursor, "match", "key:*", "count", "100"}));
    std::string line;
    std::getline(reply, line);
    std::getline(reply, line);
    std::getline(reply, cursor);
    cursor.pop_back();
    std::getline(reply, line);
    for (int left = std::stoi(line.substr(1)); left > 0; --left) {
      std::getline(reply, line);
      std::getline(reply, line);
      line.pop_back();
      EXPECT_TRUE(found.insert(line).second) << line << " twice";
    }
    ASSERT_LT(++calls, 5'000);
  } while (cursor != "0");
  EXPECT_EQ(found, keys);
  EXPECT_EQ(ask("dbsize"), ":5000\r\n");
  std::set<std::string> chosen;
  for (int i = 0; i < 200; ++i) {
    chosen.insert(ask("randomkey"));
  }
  EXPECT_GT(chosen.size(), 100U);
}

TEST_F(StoreCommandsTest, CountsNoKeysThatAFlushHasHidden) {
  for (int i = 0; i < 3'000; ++i) {
    ask("set old:" + std::to_string(i) + " x");
  }
  EXPECT_EQ(ask("dbsize"), ":3000\r\n");
  ask("flushall");
  EXPECT_EQ(ask("dbsize"), ":0\r\n");
  EXPECT_EQ(ask("mset a 1 b 2 old:1 3"), "+OK\r\n");
  EXPECT_EQ(ask("dbsize"), ":3\r\n");
  EXPECT_EQ(ask("exists old:1 old:2 old:3"), ":1\r\n") << "those that are looked at go for real";
  EXPECT_EQ(ask("del a old:4"), ":1\r\n");
  EXPECT_EQ(ask("dbsize"), ":2\r\n");
  ask("flushall");
  EXPECT_EQ(ask("dbsize"), ":0\r\n");
  ask("set c 1");
  for (int i = 0; i < 1'000; ++i) {
    store_.maintain(store::Instant{static_cast<std::uint32_t>(kNow / 1000)});
  }
  EXPECT_EQ(store_.snapshot().curr_items, 1U) << "the memory of the others is taken back";
  EXPECT_EQ(ask("dbsize"), ":1\r\n");
}

TEST_F(StoreCommandsTest, MsetnxStoresNothingWhenOneKeyExists) {
  ask("set c 0");
  EXPECT_EQ(ask("msetnx a 1 b 2 c 3"), ":0\r\n");
  EXPECT_EQ(ask("mget a b c"), "*3\r\n$-1\r\n$-1\r\n$1\r\n0\r\n");
  EXPECT_EQ(ask("msetnx a 1 b 2 a 3"), ":1\r\n");
  EXPECT_EQ(ask("mget a b"), "*2\r\n$1\r\n3\r\n$1\r\n2\r\n");
}

TEST_F(StoreCommandsTest, OnlySomeLooksCountAsAccess) {
  struct Visit {
    bool was_fetched = false;
    void on_item(const store::ItemView& item) { was_fetched = item.was_fetched; }
  };
  const auto is_access = [&](const std::string& command) {
    ask("setex k 100 value");
    ask(command + " k");
    Visit visit;
    store_.read(store::Key("k"), {.is_use = false},
                store::Instant{static_cast<std::uint32_t>(kNow / 1000)},
                store::ItemVisitor::to<&Visit::on_item>(&visit));
    return visit.was_fetched;
  };
  for (const char* command : {"ttl", "pttl", "expiretime", "pexpiretime", "exists", "type"}) {
    EXPECT_FALSE(is_access(command)) << command;
  }
  for (const char* command : {"strlen", "touch", "get"}) {
    EXPECT_TRUE(is_access(command)) << command;
  }
}

TEST_F(StoreCommandsTest, TakesAnyCursor) {
  for (const char* cursor : {"1", "18446744073709551615", "281474976710656", "4503599627370496"}) {
    EXPECT_TRUE(ask_words({"scan", cursor}).starts_with("*2\r\n")) << cursor;
  }
  EXPECT_EQ(ask("scan 18446744073709551616"), "-ERR invalid cursor\r\n");
}

TEST_F(StoreCommandsTest, CountsExactlyForManyClients) {
  constexpr int kThreads = 4;
  constexpr int kTimes = 5'000;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      StoreCommands commands(store_);
      std::string text;
      resp::ReplyWriter reply(Version::Two, text);
      const std::vector<std::string_view> incr = {"incr", "counter"};
      const std::vector<std::string_view> append = {"append", "text", "x"};
      for (int k = 0; k < kTimes; ++k) {
        commands.run(incr, kNow, reply);
        if (k % 10 == 0) {
          commands.run(append, kNow, reply);
        }
      }
      EXPECT_EQ(text.find('-'), std::string::npos);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(ask("get counter"), bulk(std::to_string(kThreads * kTimes)));
  EXPECT_EQ(ask("strlen text"), ":" + std::to_string(kThreads * kTimes / 10) + "\r\n");
}

TEST_F(StoreCommandsTest, SaysWhenThereIsNoMemory) {
  store::Store small(
      store::StoreConfig{.limit_bytes = store::kLimitBytesMin, .is_evicting = false});
  StoreCommands commands(small);
  const std::string value(8'000, 'v');
  std::string text;
  for (int i = 0; i < 1'000 && text.empty(); ++i) {
    const std::string key = "k" + std::to_string(i);
    const std::vector<std::string_view> args = {"append", key, value};
    resp::ReplyWriter reply(Version::Two, text);
    commands.run(args, kNow, reply);
    text.erase(0, text == ":8000\r\n" ? text.size() : 0);
  }
  EXPECT_EQ(text, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
}

}  // namespace
}  // namespace kvferry::redis
