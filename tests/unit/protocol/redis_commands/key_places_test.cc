#include "protocol/redis_commands/key_places.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "protocol/redis_commands/command_table.h"
#include "protocol/redis_commands/key_spec.h"
#include "tests/unit/protocol/redis_commands/recorded.h"

// That all commands give the keys of COMMAND GETKEYS is tested in command_replies_test.cc.
namespace kvferry::redis {
namespace {

constexpr std::uint16_t kRead = kAccessRo | kAccessAccess;
constexpr std::uint16_t kUpdate = kAccessRw | kAccessAccess | kAccessUpdate;
constexpr std::uint16_t kOverwrite = kAccessOw | kAccessUpdate;

struct Found {
  KeyOutcome outcome;
  std::vector<KeyPlace> places;
};

/// Of a request of which the last `away` arguments have not come.
Found find_in(std::string_view line, std::size_t away = 0) {
  const std::vector<std::string> words = words_of(line);
  const std::vector<std::string_view> args = views_of(words);
  KeyPlaces places;
  const KeyOutcome outcome =
      find_keys(*resolve(args).command, std::span(args).first(args.size() - away),
                static_cast<std::uint32_t>(args.size()), places);
  return {.outcome = outcome, .places = {places.all().begin(), places.all().end()}};
}

std::vector<std::uint32_t> places_in(std::string_view line) {
  const Found found = find_in(line);
  EXPECT_EQ(found.outcome, KeyOutcome::Found) << line;
  std::vector<std::uint32_t> places;
  for (const KeyPlace& place : found.places) {
    places.push_back(place.index);
  }
  return places;
}

using Places = std::vector<std::uint32_t>;

TEST(KeyPlaces, SortTakesTheLastDestinationThatTheServerTakes) {
  EXPECT_EQ(places_in("sort k store a store b"), (Places{1, 5}));
  EXPECT_EQ(places_in("sort k by store get store store a"), (Places{1, 7}));
  EXPECT_EQ(places_in("sort k store limit store b"), (Places{1, 5}))
      << "limit is the name of a key";
  EXPECT_EQ(places_in("sort k store store store store"), (Places{1, 5}));
  EXPECT_EQ(places_in("sort k store"), (Places{1}));
  EXPECT_EQ(places_in("sort_ro k store b"), (Places{1}));
  EXPECT_EQ(find_in("sort k store a").places[1].access, kOverwrite);
}

TEST(KeyPlaces, GeoradiusHasEachDestination) {
  EXPECT_EQ(places_in("georadius k 1 2 3 km store a store b"), (Places{1, 7, 9}));
  EXPECT_EQ(places_in("georadius k 1 2 3 km store store store b"), (Places{1, 7, 9}));
  EXPECT_EQ(places_in("georadius k 1 2 3 km storedist store store b"), (Places{1, 9, 7}));
  EXPECT_EQ(places_in("georadiusbymember k store 3 km StoreDist b"), (Places{1, 6}));
}

TEST(KeyPlaces, StreamsMayBeTheNameOfAGroup) {
  EXPECT_EQ(places_in("xreadgroup count 1 group streams c streams a >"), (Places{7}));
  EXPECT_EQ(places_in("xreadgroup group streams streams streams a b > >"), (Places{5, 6}));
  EXPECT_EQ(places_in("xread streams streams a 0 0"), (Places{2, 3}));
  EXPECT_EQ(find_in("xread count 1 streams").outcome, KeyOutcome::Refused);
  EXPECT_EQ(find_in("xread a b c").outcome, KeyOutcome::Refused);
}

TEST(KeyPlaces, ScriptsHaveAsManyKeysAsTheySay) {
  EXPECT_EQ(places_in("eval s 0 a b"), (Places{}));
  EXPECT_EQ(places_in("eval s 2 a b"), (Places{3, 4}));
  EXPECT_EQ(find_in("eval s 3 a b").outcome, KeyOutcome::CountTooLarge);
  EXPECT_EQ(find_in("eval s -1 a b").outcome, KeyOutcome::CountNegative);
  EXPECT_EQ(find_in("eval s 1x a b").outcome, KeyOutcome::BadCount);
  EXPECT_EQ(find_in("fcall_ro s 1 a").places[0].access, kRead);
}

TEST(KeyPlaces, ANumberOfKeysHasToFit) {
  EXPECT_EQ(places_in("zunionstore d 2 a b weights 1 2"), (Places{1, 3, 4}));
  EXPECT_EQ(find_in("zunionstore d 3 a b").outcome, KeyOutcome::Refused);
  EXPECT_EQ(find_in("zunionstore d 0 a").outcome, KeyOutcome::Refused);
  EXPECT_EQ(find_in("zunionstore d 9223372036854775807 a").outcome, KeyOutcome::Refused);
  EXPECT_EQ(find_in("zunionstore d 3 a b").places,
            (std::vector<KeyPlace>{{.index = 1, .access = kOverwrite}}));
  EXPECT_EQ(places_in("msetex 2 a 1 b 2 ex 10"), (Places{2, 4}));
  EXPECT_EQ(places_in("msetex 1 a 1"), (Places{2}));
  EXPECT_EQ(find_in("msetex 2 a 1").outcome, KeyOutcome::Refused);
}

TEST(KeyPlaces, ARangeEndsWithTheArguments) {
  EXPECT_EQ(places_in("mset a 1 b"), (Places{1, 3}));
  EXPECT_EQ(places_in("blpop a b 0"), (Places{1, 2}));
  EXPECT_EQ(places_in("pfmerge d"), (Places{1}));
  EXPECT_EQ(places_in("foo"), (Places{}));
  EXPECT_EQ(places_in("foo a"), (Places{1}));
  EXPECT_EQ(places_in("ping a"), (Places{}));
}

TEST(KeyPlaces, OtherArgumentsDecideWhatSetAndBitfieldDo) {
  EXPECT_EQ(find_in("set k v").places[0].access, kOverwrite);
  EXPECT_EQ(find_in("set k v ex 1 Get").places[0].access, kUpdate);
  EXPECT_EQ(find_in("set get get").places[0].access, kOverwrite);
  EXPECT_EQ(find_in("bitfield k get u8 0").places[0].access, kRead);
  EXPECT_EQ(find_in("bitfield k get u8 0 set u8 0 1").places[0].access, kUpdate);
}

TEST(KeyPlaces, WhatHasNotComeIsSaid) {
  EXPECT_EQ(find_in("set k v", 1).outcome, KeyOutcome::Found);
  EXPECT_EQ(find_in("set k v", 1).places[0].access, kUpdate | kAccessVariable) << "GET may follow";
  EXPECT_EQ(find_in("set k v", 2).outcome, KeyOutcome::NotHere);
  EXPECT_EQ(find_in("append k v", 1).outcome, KeyOutcome::Found);
  EXPECT_EQ(find_in("mset a 1", 1).outcome, KeyOutcome::Found);
  EXPECT_EQ(find_in("mset a 1 b 2", 3).outcome, KeyOutcome::NotHere);
  EXPECT_EQ(find_in("mset a 1 b 2", 1).outcome, KeyOutcome::Found);
  EXPECT_EQ(find_in("eval s 1 a b", 1).outcome, KeyOutcome::Found);
  EXPECT_EQ(find_in("eval s 2 a b", 1).outcome, KeyOutcome::NotHere);
  EXPECT_EQ(find_in("eval s 1 a", 3).outcome, KeyOutcome::NotHere);
  for (const std::string_view line : {"sort k store a", "georadius k 1 2 3 km store a",
                                      "xread streams a 0", "migrate h 1 '' 0 1 keys a"}) {
    EXPECT_EQ(find_in(line, 1).outcome, KeyOutcome::NotHere) << line;
  }
}

TEST(KeyPlaces, OneKeyAtAFixedPlaceIsKnownFromTheTable) {
  EXPECT_EQ(find_command("get")->sole_key, 1);
  EXPECT_EQ(find_command("set")->sole_key, 1);
  EXPECT_EQ(find_full_name("object|freq")->sole_key, 2);
  EXPECT_EQ(find_command("mget")->sole_key, 0);
  EXPECT_EQ(find_command("ping")->sole_key, 0);
  EXPECT_EQ(unknown_command().sole_key, 1);
  for (const Command& one : all_commands()) {
    if (one.sole_key != 0) {
      EXPECT_EQ(one.sole_key, one.first_key) << one.name;
    }
  }
}

TEST(KeyPlaces, KeepsLittleRoomFromOneRequestToTheNext) {
  KeyPlaces places;
  const std::vector<std::string_view> many(100'000, "k");
  ASSERT_EQ(find_keys(*find_command("del"), many, places), KeyOutcome::Found);
  EXPECT_EQ(places.size(), many.size() - 1);
  ASSERT_EQ(find_keys(*find_command("del"), std::span(many).first(3), places), KeyOutcome::Found);
  EXPECT_EQ(places.size(), 2U);
}

TEST(KeyPlaces, TellWhetherAKeyIsReadOrWritten) {
  EXPECT_TRUE(is_read(kRead));
  EXPECT_FALSE(is_written(kRead));
  EXPECT_TRUE(is_written(kOverwrite));
  EXPECT_FALSE(is_read(kOverwrite));
  EXPECT_FALSE(is_read(kAccessRo)) << "EXISTS";
  EXPECT_TRUE(is_written(kAccessRm | kAccessDelete));
}

TEST(KeyPlaces, SortPatternsThatNeedOtherKeys) {
  const auto patterns_of = [](std::string_view line) {
    const std::vector<std::string> words = words_of(line);
    const std::vector<std::string_view> args = views_of(words);
    const SortPatterns found = find_sort_patterns(args);
    return (found.has_by ? 1 : 0) + (found.has_get ? 2 : 0);
  };
  EXPECT_EQ(patterns_of("sort k"), 0);
  EXPECT_EQ(patterns_of("sort k by nosort get #"), 0);
  EXPECT_EQ(patterns_of("sort k by w_* get #"), 1);
  EXPECT_EQ(patterns_of("sort k get # get x"), 2);
  EXPECT_EQ(patterns_of("sort_ro k BY w_*->f desc GET o_*"), 3);
  EXPECT_EQ(patterns_of("sort k store get store by"), 0);
  EXPECT_EQ(patterns_of("sort k get"), 0);
}

}  // namespace
}  // namespace kvferry::redis
