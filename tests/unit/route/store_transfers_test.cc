// Values that take more than one step on their way in or out, and those that are refused.
#include "route/store_transfers.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "route/store_target.h"
#include "tests/unit/route/store_conversation.h"

namespace kvferry::route {
namespace {

std::string value_of(std::size_t size) {
  std::string value(size, ' ');
  for (std::size_t i = 0; i < size; ++i) {
    value[i] = static_cast<char>('a' + i % 25);
  }
  return value;
}

std::string set_line(std::string_view key, std::size_t size) {
  return "set " + std::string(key) + " 3 0 " + std::to_string(size) + "\r\n";
}

TEST(StoreTransfers, LargeValuesGoOutInPartsAndInKeyOrder) {
  // Around the bounds of inline values, pieces, and streamed uploads.
  for (const std::size_t size :
       {std::size_t{8167}, std::size_t{8168}, std::size_t{8169}, std::size_t{16'336},
        std::size_t{16'337}, std::size_t{65'536}, std::size_t{65'537}, std::size_t{900'000}}) {
    StoreConversation client;
    const std::string value = value_of(size);
    EXPECT_EQ(client.say(set_line("k", size) + value + "\r\n"), "STORED\r\n") << size;
    client.say("set a 0 0 1\r\nA\r\n");
    const std::string block = "VALUE k 3 " + std::to_string(size) + "\r\n" + value + "\r\n";
    EXPECT_EQ(client.say("get a k x a k\r\n"),
              "VALUE a 0 1\r\nA\r\n" + block + "VALUE a 0 1\r\nA\r\n" + block + "END\r\n");
    EXPECT_EQ(client.say("mg k v s\r\n"),
              "VA " + std::to_string(size) + " s" + std::to_string(size) + "\r\n" + value + "\r\n");
  }
}

TEST(StoreTransfers, ManySmallValuesAreMoreThanTheTextHolds) {
  StoreConversation client;
  const std::string value = value_of(5000);
  std::string expected;
  std::string request = "get";
  for (int i = 0; i < 100; ++i) {
    const std::string key = "k" + std::to_string(i);
    client.say(set_line(key, value.size()) + value + "\r\n");
    request += " " + key;
    expected += "VALUE " + key + " 3 5000\r\n" + value + "\r\n";
  }
  EXPECT_EQ(client.say(request + "\r\n"), expected + "END\r\n");
}

TEST(StoreTransfers, PausedRepliesGoOnWhereTheyWere) {
  const std::string large = value_of(100'000);
  const std::string small = value_of(6000);
  StoreConversation client;
  client.say(set_line("L", large.size()) + large + "\r\n");
  client.say(set_line("s", small.size()) + small + "\r\n");
  const std::string request = "get s L s s s s s L s\r\n";
  const std::string whole = client.say(request);
  EXPECT_GT(whole.size(), 200'000U);

  client.sink().pauses_left = 1'000'000;
  std::string got = client.say(request);
  int pauses = 0;
  while (client.sink().is_paused) {
    // What is sent stays, although the items change meanwhile.
    if (++pauses == 4) {
      client.store().store(store::Key("L2"), {}, large, client.target().now());
    }
    client.call().source->resume(client.call());
    got += client.take();
  }
  EXPECT_EQ(got, whole);
  EXPECT_GT(pauses, 20);
}

TEST(StoreTransfers, APausedReplyTellsWhetherKeysAreStillToBeRead) {
  const std::string large = value_of(100'000);
  for (const std::string_view command : {"get ", "gets ", "gat 0 ", "gats 0 "}) {
    StoreConversation client;
    client.say(set_line("L", large.size()) + large + "\r\n");
    client.sink().pauses_left = 1;
    client.say(std::string(command) + "L a\r\n");
    ASSERT_TRUE(client.sink().is_paused);
    EXPECT_TRUE(client.call().is_half_done) << command;
    client.call().source->resume(client.call());
    client.take();

    client.sink().pauses_left = 1;
    client.say(std::string(command) + "a L\r\n");
    ASSERT_TRUE(client.sink().is_paused);
    EXPECT_FALSE(client.call().is_half_done) << command;
    client.call().source->resume(client.call());
  }
  StoreConversation client;
  client.say(set_line("L", large.size()) + large + "\r\n");
  client.sink().pauses_left = 1;
  client.say("mg L v\r\n");
  ASSERT_TRUE(client.sink().is_paused);
  EXPECT_FALSE(client.call().is_half_done);
  client.call().source->resume(client.call());
}

TEST(StoreTransfers, APausedValueStaysWhenItsItemGoes) {
  const std::string large = value_of(100'000);
  StoreConversation client;
  client.say(set_line("L", large.size()) + large + "\r\n");
  client.sink().pauses_left = 1;
  std::string got = client.say("mg L v\r\n");
  ASSERT_TRUE(client.sink().is_paused);
  client.store().remove(store::Key("L"), {}, client.target().now());
  for (int i = 0; i < 1000; ++i) {
    client.store().store(store::Key("o" + std::to_string(i)), {}, std::string(100'000, 'o'),
                         client.target().now());
  }
  client.call().source->resume(client.call());
  EXPECT_EQ(got + client.take(), "VA 100000\r\n" + large + "\r\n");
}

TEST(StoreTransfers, ADiscardedReplyEndsAtOnce) {
  const std::string large = value_of(500'000);
  StoreConversation client;
  client.say(set_line("L", large.size()) + large + "\r\n");
  client.sink().pauses_left = 1;
  client.say("get L\r\n");
  ASSERT_TRUE(client.sink().is_paused);
  const int finished = client.sink().finished;
  client.call().source->discard(client.call());
  EXPECT_EQ(client.sink().finished, finished + 1);
  EXPECT_EQ(client.take(), "");
}

TEST(StoreTransfers, StreamedValuesInAnyPartsAreTheSame) {
  const std::string value = value_of(70'000);
  for (const std::size_t part : {std::size_t{1}, std::size_t{7}, std::size_t{8168},
                                 std::size_t{70'001}, std::size_t{1'000'000}}) {
    StoreConversation client;
    client.body_part_bytes = part;
    EXPECT_EQ(client.say("ms Zm9v 70000 b k Oq s\r\n" + value + "\r\n"),
              "HD kZm9v b Oq s70000\r\n");
    EXPECT_EQ(client.say("get foo\r\n"), "VALUE foo 0 70000\r\n" + value + "\r\nEND\r\n") << part;
    EXPECT_EQ(client.say("append foo 0 0 70000\r\n" + value + "\r\nmg foo s\r\n"),
              "STORED\r\nHD s140000\r\n");
  }
}

TEST(StoreTransfers, AStreamedValueWithoutItsLineEndIsABadDataChunk) {
  const std::string value = value_of(70'000);
  StoreConversation client;
  client.say("set k 0 0 1\r\no\r\n");
  EXPECT_EQ(client.say(set_line("k", value.size()) + value + "xx"),
            "CLIENT_ERROR bad data chunk\r\n");
  EXPECT_EQ(client.say(set_line("k", value.size()) + value + "\rx"),
            "CLIENT_ERROR bad data chunk\r\n");
  EXPECT_EQ(client.say("get k\r\n"), "VALUE k 0 1\r\no\r\nEND\r\n");
}

TEST(StoreTransfers, ALostBodyIsAnsweredAndStoresNothing) {
  StoreConversation client;
  CollectingSink sink;
  call::Call call;
  call.sink = &sink;
  memcache::RequestParser parser(memcache::ParserLimits{});
  const std::string head = set_line("k", 100'000) + value_of(100);
  auto parsed = parser.parse(head);
  ASSERT_TRUE(parsed.is_done() && !parsed.value().has_complete_value);
  client.target().send(call, parsed.value());
  ASSERT_NE(call.body_sink, nullptr);
  call.body_sink->on_body(call, value_of(50'000), false);
  EXPECT_EQ(sink.finished, 0);
  call.body_sink->on_body_lost(call);
  EXPECT_EQ(sink.finished, 1);
  EXPECT_EQ(client.say("get k\r\n"), "END\r\n");
}

TEST(StoreTransfers, TooLargeValuesRemoveTheOldItem) {
  const store::StoreConfig config{.item_bytes_max = 100'000};
  StoreConversation client(config);
  constexpr std::string_view kTooLarge = "SERVER_ERROR object too large for cache\r\n";
  // Refused by the parser, by the store when streamed, and by the store when complete.
  for (const std::size_t size : {std::size_t{100'001}, std::size_t{100'000}}) {
    client.say("set k 0 0 3\r\nold\r\n");
    EXPECT_EQ(client.say(set_line("k", size) + value_of(size) + "\r\n"), kTooLarge) << size;
    EXPECT_EQ(client.say("get k\r\n"), "END\r\n") << size;
  }
  EXPECT_EQ(client.target().stats().get(StoreCount::TooLarge), 2U);
  StoreConversation small(store::StoreConfig{.item_bytes_max = 1000});
  small.say("set k 0 0 3\r\nold\r\n");
  EXPECT_EQ(small.say(set_line("k", 990) + value_of(990) + "\r\nget k\r\n"),
            std::string(kTooLarge) + "END\r\n");
}

TEST(StoreTransfers, AFullStoreThatMayNotEvictSaysSo) {
  StoreConversation client(
      store::StoreConfig{.limit_bytes = store::kLimitBytesMin, .is_evicting = false});
  const std::string value = value_of(100'000);
  std::string answer;
  for (int i = 0; i < 20; ++i) {
    answer = client.say(set_line("k" + std::to_string(i), value.size()) + value + "\r\n");
  }
  EXPECT_EQ(answer, "SERVER_ERROR out of memory storing object\r\n");
  EXPECT_GT(client.target().stats().get(StoreCount::NoMemory), 0U);
}

}  // namespace
}  // namespace kvferry::route
