#include "route/near_route.h"

#include <memory>
#include <string>

#include "tests/unit/route/native_rig.h"
#include "tests/unit/route/store_conversation.h"

namespace kvferry::route {
namespace {

constexpr base::SteadyTime kStart{std::chrono::hours(100)};
constexpr std::string_view kValueReply = "VALUE k 5 1\r\nx\r\nEND\r\n";

class NearCopiesTest : public testing::Test {
 protected:
  NearCopies make(std::uint32_t space, SpaceOwner owner = SpaceOwner::Yaml) {
    return NearCopies(stores_.of({.owner = owner, .number = space}, store::kLimitBytesMin), clock_,
                      NearOptions{.ttl = base::Millis(1500), .value_bytes_max = 1000});
  }
  static std::string value_of(const NearCopies::Found& found) {
    return found.item ? std::string(found.item->value) : "none";
  }
  static NearItem item(std::string_view value) { return {.value = value, .client_flags = 7}; }

  base::MemoryBudget budget_{0};
  store::Store store_{store::StoreConfig{}};
  NearStores stores_{store::kItemBytesMaxDefault};
  StoreTarget clock_{store_, budget_, StoreTargetOptions{.near_stores = &stores_}};
};

TEST_F(NearCopiesTest, AreFreshUntilTheirTimeIsOver) {
  NearCopies copies = make(1);
  const NearCopies::Found first = copies.look_up("k", kStart);
  EXPECT_FALSE(first.item);
  copies.fill("k", first.token, {.value = "v", .client_flags = 7, .cas = 99}, kStart);
  const NearCopies::Found found = copies.look_up("k", kStart + base::Micros(1'499'999));
  ASSERT_TRUE(found.item);
  EXPECT_EQ(found.item->value, "v");
  EXPECT_EQ(found.item->client_flags, 7U);
  EXPECT_EQ(found.item->cas, 99U);
  EXPECT_FALSE(copies.look_up("k", kStart + base::Micros(1'500'000)).item);
  EXPECT_FALSE(copies.look_up("k", kStart + base::Micros(1'500'001)).item);
}

TEST_F(NearCopiesTest, WhatWasForgottenMeanwhileIsNotKept) {
  NearCopies copies = make(1);
  NearCopies other_worker = make(1);
  const NearCopies::Found before = copies.look_up("k", kStart);
  other_worker.forget("k");
  copies.fill("k", before.token, item("old"), kStart);
  EXPECT_EQ(value_of(copies.look_up("k", kStart)), "none");
  // Nor does it take the place of a later read.
  const NearCopies::Found later = copies.look_up("k", kStart);
  copies.fill("k", before.token, item("old"), kStart);
  copies.fill("k", later.token, item("new"), kStart);
  copies.fill("k", before.token, item("old"), kStart);
  EXPECT_EQ(value_of(copies.look_up("k", kStart)), "new");
}

TEST_F(NearCopiesTest, ReadsThatBeginTogetherShareTheToken) {
  NearCopies copies = make(1);
  const NearCopies::Found first = copies.look_up("k", kStart);
  const NearCopies::Found second = copies.look_up("k", kStart);
  EXPECT_EQ(first.token, second.token);
  copies.fill("k", second.token, item("a"), kStart);
  copies.fill("k", first.token, item("b"), kStart);
  EXPECT_EQ(value_of(copies.look_up("k", kStart)), "a");
}

TEST_F(NearCopiesTest, AnOldCopyIsReplacedAndGivenUp) {
  NearCopies copies = make(1);
  copies.fill("k", copies.look_up("k", kStart).token, item("a"), kStart);
  const base::SteadyTime later = kStart + base::Seconds(2);
  const NearCopies::Found old = copies.look_up("k", later);
  copies.fill("k", old.token, item("b"), later);
  EXPECT_EQ(value_of(copies.look_up("k", later)), "b");
  copies.give_up("k", old.token);
  EXPECT_EQ(value_of(copies.look_up("k", later)), "b");
  copies.give_up("k", copies.look_up("k", later).token);
  EXPECT_EQ(value_of(copies.look_up("k", later)), "none");
}

TEST_F(NearCopiesTest, KeepLargeValuesWhole) {
  NearCopies copies = make(1);
  for (const std::size_t size : {8'143U, 8'144U, 8'145U, 8'168U, 20'000U, 300'000U}) {
    std::string value(size, 'v');
    value.front() = 'a';
    value.back() = 'z';
    copies.forget("k");
    copies.fill("k", copies.look_up("k", kStart).token, item(value), kStart);
    EXPECT_EQ(value_of(copies.look_up("k", kStart)), value) << size;
    EXPECT_EQ(value_of(copies.look_up("k", kStart + base::Seconds(2))), "none");
  }
}

TEST_F(NearCopiesTest, SpacesAndClientsDoNotMeet) {
  NearCopies one = make(1);
  NearCopies two = make(2);
  NearCopies script = make(1, SpaceOwner::Lua);
  one.fill("k", one.look_up("k", kStart).token, item("a"), kStart);
  EXPECT_EQ(value_of(two.look_up("k", kStart)), "none");
  EXPECT_EQ(value_of(script.look_up("k", kStart)), "none");
  two.forget("k");
  EXPECT_EQ(value_of(one.look_up("k", kStart)), "a");
  EXPECT_EQ(store_.snapshot().total_items, 0U) << "clients cannot reach copies";
  EXPECT_EQ(value_of(make(1).look_up("k", kStart)), "a");
}

TEST_F(NearCopiesTest, KeepTheLongestKeysToo) {
  NearCopies copies = make(1);
  const std::string longest(store::kKeyBytesMax, 'k');
  EXPECT_TRUE(NearCopies::can_keep(longest));
  EXPECT_FALSE(NearCopies::can_keep(longest + "k"));
  EXPECT_FALSE(NearCopies::can_keep(""));
  copies.forget(longest + "k");
  copies.fill(longest, copies.look_up(longest, kStart).token, item("a"), kStart);
  EXPECT_EQ(value_of(copies.look_up(longest, kStart)), "a");
}

TEST_F(NearCopiesTest, HaveALimitOfTheirOwn) {
  NearCopies copies = make(1);
  const std::string value(1'000, 'v');
  for (int i = 0; i < 10'000; ++i) {
    const std::string key = "k" + std::to_string(i);
    copies.fill(key, copies.look_up(key, kStart).token, item(value), kStart);
    ASSERT_LE(stores_.figures().bytes, store::kLimitBytesMin) << i;
  }
  const NearStores::Figures figures = stores_.figures();
  EXPECT_EQ(figures.stores, 1U);
  EXPECT_EQ(figures.limit_bytes, store::kLimitBytesMin);
  EXPECT_GT(figures.items, 500U);
  EXPECT_GT(figures.evictions, 8'000U);
  EXPECT_EQ(value_of(copies.look_up("k9999", kStart)), value) << "old ones make room for new ones";
  EXPECT_EQ(store_.snapshot().total_items, 0U) << "nothing of it is the embedded store's";
}

TEST(NearStores, AreSharedAndGoWithTheirLastUser) {
  constexpr store::Instant kNow{1'000};
  NearStores stores(store::kItemBytesMaxDefault);
  NearStore one = stores.of({.number = 1}, store::kLimitBytesMin);
  NearStore same = stores.of({.number = 1}, store::kLimitBytesMin);
  EXPECT_EQ(one, same);
  EXPECT_NE(one, stores.of({.number = 2}, store::kLimitBytesMin));
  EXPECT_EQ(stores.figures().stores, 2U);
  stores.maintain(kNow);
  EXPECT_EQ(stores.figures().stores, 1U) << "nobody has the second one";
  one.reset();
  stores.maintain(kNow);
  EXPECT_EQ(stores.figures().stores, 1U);
  same.reset();
  stores.maintain(kNow);
  EXPECT_EQ(stores.figures().stores, 0U);
}

TEST(NearStores, AFlushOfTheEmbeddedStoreIsForThemToo) {
  NearStores stores(store::kItemBytesMaxDefault);
  StoreConversation client({}, StoreTargetOptions{.near_stores = &stores});
  const NearStore store = stores.of({.number = 1}, store::kLimitBytesMin);
  NearCopies copies(store, client.target(), NearOptions{.ttl = base::Millis(60'000)});
  copies.fill("k", copies.look_up("k", kStart).token, {.value = "v"}, kStart);
  EXPECT_TRUE(copies.look_up("k", kStart).item);
  EXPECT_EQ(client.say("flush_all\r\n"), "OK\r\n");
  EXPECT_FALSE(copies.look_up("k", kStart).item);
}

class NearRouteTest : public NativeRouteTest {
 protected:
  NearRouteTest() { clock_.set_now(store::Instant(1'000)); }

  std::unique_ptr<NearRoute> make(base::Millis ttl = base::Millis(600'000)) {
    return std::make_unique<NearRoute>(setup({{&a_}}),
                                       stores_.of({.number = 1}, store::kLimitBytesMin), clock_,
                                       NearOptions{.ttl = ttl, .value_bytes_max = 100});
  }
  /// What a client is answered when the backend answers `reply`, or need not.
  std::string ask(NearRoute& route, std::string_view request, std::string_view reply) {
    a_.answer_at_once = reply;
    const std::string bytes = send(route, request).bytes;
    a_.answer_at_once.clear();
    return bytes;
  }
  /// How many requests the backend has seen since the last time.
  std::size_t seen() { return a_.take().size(); }

  store::Store store_{store::StoreConfig{}};
  NearStores stores_{store::kItemBytesMaxDefault};
  StoreTarget clock_{store_, rig_.budget, StoreTargetOptions{}};
};

TEST_F(NearRouteTest, AnswersTheNextReadsItself) {
  const auto route = make();
  EXPECT_EQ(ask(*route, "get k\r\n", kValueReply), kValueReply);
  EXPECT_EQ(seen(), 1U);
  EXPECT_EQ(ask(*route, "get k\r\n", "END\r\n"), kValueReply);
  EXPECT_EQ(ask(*route, "mg k v f s k Oab\r\n", "EN\r\n"), "VA 1 f5 s1 kk Oab\r\nx\r\n");
  EXPECT_EQ(ask(*route, "mg k s f\r\n", "EN\r\n"), "HD s1 f5\r\n");
  EXPECT_EQ(ask(*route, "mg k\r\n", "EN\r\n"), "HD\r\n");
  EXPECT_EQ(seen(), 0U);
  EXPECT_EQ(host_.of(RouteEvent::Miss), 1);
  EXPECT_EQ(host_.of(RouteEvent::Hit), 4);
}

TEST_F(NearRouteTest, QuietReadsKeepTheirMeaning) {
  const auto route = make();
  EXPECT_EQ(ask(*route, "mg k v f q\r\n", "VA 1 f5\r\nx\r\n"), "VA 1 f5\r\nx\r\n");
  test::Outcome& hit = send(*route, "mg k v q\r\n");
  EXPECT_EQ(hit.bytes, "VA 1\r\nx\r\n");
  EXPECT_EQ(hit.quiet, call::Quiet::Miss);
  test::Outcome& miss = send(*route, "mg other v q\r\n");
  a_.answer("EN\r\n");
  EXPECT_EQ(miss.quiet, call::Quiet::Miss);
  EXPECT_EQ(miss.bytes, "EN\r\n");
}

TEST_F(NearRouteTest, CasUniquesAreTheBackendsOrNone) {
  const auto route = make();
  ask(*route, "get k\r\n", kValueReply);
  EXPECT_EQ(ask(*route, "mg k v c\r\n", "VA 1 c77\r\nx\r\n"), "VA 1 c77\r\nx\r\n");
  EXPECT_EQ(seen(), 2U);
  EXPECT_EQ(ask(*route, "mg k c\r\n", "EN\r\n"), "HD c77\r\n");
  // That reply had no client flags.
  EXPECT_EQ(ask(*route, "gets k\r\n", "VALUE k 5 1 77\r\nx\r\nEND\r\n"),
            "VALUE k 5 1 77\r\nx\r\nEND\r\n");
  EXPECT_EQ(seen(), 1U);
  EXPECT_EQ(ask(*route, "gets k\r\n", "END\r\n"), "VALUE k 5 1 77\r\nx\r\nEND\r\n");
  EXPECT_EQ(ask(*route, "mg k f c v\r\n", "EN\r\n"), "VA 1 f5 c77\r\nx\r\n");
  EXPECT_EQ(seen(), 0U);
}

TEST_F(NearRouteTest, ChangesDropTheCopyBeforeAndAfter) {
  const auto route = make();
  for (const std::string_view change :
       {"set k 0 0 1\r\ny\r\n", "delete k\r\n", "touch k 9\r\n", "gat 9 k\r\n", "incr k 1\r\n",
        "ms k 1\r\ny\r\n", "md k q\r\n", "ma k\r\n", "mg k T9\r\n", "ms aw== 1 b\r\ny\r\n"}) {
    ask(*route, "get k\r\n", kValueReply);
    seen();
    send(*route, change);
    // Read before the backend has answered: it may have the old value still.
    test::Outcome& read = send(*route, "get k\r\n");
    EXPECT_EQ(seen(), 2U) << change;
    a_.answer("HD\r\n");
    a_.answer(kValueReply);
    EXPECT_EQ(read.bytes, kValueReply);
    ask(*route, "get k\r\n", "END\r\n");
    EXPECT_EQ(seen(), 1U) << change;
  }
}

TEST_F(NearRouteTest, ACopyMadeWhileAWriteWasOnItsWayGoesWithItsAnswer) {
  const auto route = make();
  send(*route, "set k 0 0 1\r\ny\r\n");
  send(*route, "get k\r\n");
  a_.fail();  // The set; a later backend may have done it all the same.
  a_.answer(kValueReply);
  EXPECT_EQ(ask(*route, "get k\r\n", "END\r\n"), "END\r\n");
}

TEST_F(NearRouteTest, OnlyWholeValuesForEverybodyAreKept) {
  const auto route = make();
  const std::string large(101, 'l');
  for (const std::string& reply : {std::string("END\r\n"), std::string("SERVER_ERROR x\r\n"),
                                   "VALUE k 0 101\r\n" + large + "\r\nEND\r\n"}) {
    ask(*route, "get k\r\n", reply);
    EXPECT_EQ(ask(*route, "get k\r\n", reply), reply);
    EXPECT_EQ(seen(), 2U) << reply;
  }
  for (const std::string_view reply :
       {"VA 1 f0 W\r\nx\r\n", "VA 1 f0 X Z\r\nx\r\n", "VA 1 f0 W X\r\nx\r\n",
        "VA 1 f0 ka2s= b\r\nx\r\n", "HD\r\n", "EN\r\n"}) {
    ask(*route, "mg k v f\r\n", reply);
    EXPECT_EQ(ask(*route, "mg k v f\r\n", reply), reply);
    EXPECT_EQ(seen(), 2U) << reply;
  }
}

TEST_F(NearRouteTest, PassesOnWhatOnlyTheBackendKnows) {
  const auto route = make();
  ask(*route, "get k\r\n", kValueReply);
  seen();
  for (const std::string_view request :
       {"mg k v t\r\n", "mg k h l\r\n", "mg aw== v b\r\n", "me k\r\n"}) {
    EXPECT_EQ(ask(*route, request, "EN\r\n"), "EN\r\n") << request;
  }
  EXPECT_EQ(seen(), 4U);
  EXPECT_EQ(ask(*route, "get k\r\n", "END\r\n"), kValueReply);
}

TEST_F(NearRouteTest, CountsAgeFromWhenTheReadWasSent) {
  const auto route = make(base::Millis(1));
  test::Outcome& slow = send(*route, "get k\r\n");
  const base::SteadyTime sent = rig_.loop->now();
  ASSERT_TRUE(rig_.run_until([&] { return rig_.loop->now() - sent > base::Millis(1); }));
  a_.answer(kValueReply);
  EXPECT_EQ(slow.bytes, kValueReply);
  EXPECT_EQ(ask(*route, "get k\r\n", "END\r\n"), "END\r\n");
}

}  // namespace
}  // namespace kvferry::route
