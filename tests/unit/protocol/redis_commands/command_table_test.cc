#include "protocol/redis_commands/command_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "protocol/redis_commands/command_names.h"
#include "protocol/redis_commands/key_spec.h"
#include "protocol/redis_commands/packed_word.h"

namespace kvferry::redis {
namespace {

Resolution resolve_words(std::initializer_list<std::string_view> words) {
  return resolve(std::span(words.begin(), words.size()));
}

std::string in_capitals(std::string_view name) {
  std::string text(name);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char byte) { return static_cast<char>(std::toupper(byte)); });
  return text;
}

TEST(CommandTable, FindsEachOfItsNamesInAnyCase) {
  std::size_t top_count = 0;
  for (const Command& one : all_commands()) {
    const bool is_sub = one.name.find('|') != std::string_view::npos;
    top_count += is_sub ? 0U : 1U;
    EXPECT_EQ(find_full_name(one.name), &one) << one.name;
    EXPECT_EQ(find_full_name(in_capitals(one.name)), &one) << one.name;
    EXPECT_EQ(find_command(one.name), is_sub ? nullptr : &one) << one.name;
    EXPECT_EQ(&command(one.id), &one) << one.name;
  }
  EXPECT_EQ(top_count, 241U + 17U);
  EXPECT_EQ(command_count(), 390U);
}

TEST(CommandTable, FindsNothingElse) {
  const std::string with_nul("get\0", 4);
  for (const std::string_view name :
       {std::string_view(), std::string_view("ge"), std::string_view("gett"),
        std::string_view("get "), std::string_view(with_nul), std::string_view("client|list"),
        std::string_view("georadiusbymember-ro"), std::string_view("georadiusbymember_ro_"),
        std::string_view("count-failure-reports-and-more"),
        std::string_view("\xe7"
                         "et"),
        std::string_view("list")}) {
    EXPECT_EQ(find_command(name), nullptr) << name;
  }
  EXPECT_EQ(find_full_name("client|"), nullptr);
  EXPECT_EQ(find_full_name("get|list"), nullptr);
  EXPECT_EQ(find_full_name("|"), nullptr);
}

TEST(CommandTable, FindsNoNameOfWhichOneBitIsAnother) {
  for (const Command& one : all_commands()) {
    if (one.name.find('|') != std::string_view::npos) {
      continue;
    }
    for (std::size_t bit = 0; bit < one.name.size() * 8; ++bit) {
      std::string name(one.name);
      name[bit / 8] = static_cast<char>(name[bit / 8] ^ (1 << (bit % 8)));
      const Command* const found = find_command(name);
      EXPECT_TRUE(found == nullptr || equal_letters(found->name, name)) << name;
      EXPECT_EQ(found == &one, equal_letters(one.name, name)) << name;
    }
  }
}

TEST(CommandTable, ResolvesCommandsAndSubcommands) {
  EXPECT_EQ(resolve_words({"Get", "k"}).command->name, "get");
  EXPECT_EQ(resolve_words({"client", "LIST"}).command->name, "client|list");
  EXPECT_EQ(resolve_words({"get", "k"}).state, Resolution::State::Known);
  const Resolution alone = resolve_words({"CLIENT"});
  EXPECT_EQ(alone.state, Resolution::State::Known);
  EXPECT_EQ(alone.command->name, "client");
  const Resolution no_sub = resolve_words({"client", "foo"});
  EXPECT_EQ(no_sub.state, Resolution::State::UnknownSubcommand);
  EXPECT_EQ(no_sub.command->name, "client");
  const Resolution unknown = resolve_words({"foo", "k"});
  EXPECT_EQ(unknown.state, Resolution::State::UnknownCommand);
  EXPECT_EQ(unknown.command, &unknown_command());
  EXPECT_EQ(resolve({}).state, Resolution::State::UnknownCommand);
}

TEST(CommandTable, ASubcommandThatHasNotComeIsUnknown) {
  constexpr std::array<std::string_view, 1> kArgs{"client"};
  EXPECT_EQ(resolve(kArgs, 2).state, Resolution::State::UnknownSubcommand);
}

TEST(CommandTable, AnUnknownCommandIsAWriteOfItsFirstArgument) {
  const Command& unknown = unknown_command();
  EXPECT_TRUE(unknown.is_write());
  EXPECT_FALSE(unknown.may_ask_replica);
  EXPECT_EQ(unknown.routing, Routing::SingleKey);
  EXPECT_EQ(unknown.first_key, 1);
  EXPECT_EQ(unknown.arity, 0);
  EXPECT_EQ(&command(unknown.id), &unknown);
  EXPECT_EQ(facts(unknown).group, "");
}

TEST(CommandTable, TellsWhatItsRowsSay) {
  const Command& get = *find_command("get");
  EXPECT_EQ(get.arity, 2);
  EXPECT_EQ(get.flags, kReadonly | kFast);
  EXPECT_EQ(get.categories, category_bit("read") | category_bit("string") | category_bit("fast"));
  EXPECT_EQ(get.routing, Routing::SingleKey);
  EXPECT_EQ(get.retry, Retry::Read);
  EXPECT_TRUE(get.may_ask_replica);
  EXPECT_EQ(facts(get).group, "string");
  const Command& mset = *find_command("mset");
  EXPECT_EQ(mset.routing, Routing::SplitKeys);
  EXPECT_EQ(mset.merge, Merge::AllOk);
  EXPECT_EQ(mset.key_step, 2);
  const Command& xread = *find_command("xread");
  ASSERT_EQ(xread.key_specs.size(), 1U);
  EXPECT_EQ(xread.key_specs[0].keyword, "STREAMS");
  EXPECT_EQ(xread.key_specs[0].limit, 2);
  EXPECT_TRUE(find_command("flushall")->is_gated);
  EXPECT_EQ(find_command("multi")->in_multi, InMulti::Nested);
  EXPECT_EQ(find_command("client")->subcommands.size(), 19U);
}

TEST(CommandTable, WhatMayGoToAReplicaOrBeRepeatedAsAReadDoesNotWrite) {
  for (const Command& one : all_commands()) {
    EXPECT_FALSE(one.is_write() && (one.may_ask_replica || one.retry == Retry::Read)) << one.name;
  }
}

TEST(PackedWord, AgreesWithTheLoopOverBytes) {
  for (int byte = 0; byte < 256; ++byte) {
    for (const std::size_t size : {1U, 3U, 7U, 8U, 9U, 16U, 17U, 24U}) {
      for (std::size_t at = 0; at < size; ++at) {
        std::string one(size, 'q');
        std::string other(size, 'Q');
        one[at] = static_cast<char>(byte);
        for (const int change : {0, 0x20, 0x40, 0x80}) {
          other[at] = static_cast<char>(byte ^ change);
          PackedWord packed;
          PackedWord other_packed;
          ASSERT_TRUE(pack_word(one, packed) && pack_word(other, other_packed));
          EXPECT_EQ(packed == other_packed, equal_letters(one, other))
              << byte << ' ' << size << ' ' << at << ' ' << change;
        }
      }
    }
  }
}

TEST(PackedWord, TakesWordsUpToItsLimit) {
  PackedWord word;
  EXPECT_FALSE(pack_word("", word));
  EXPECT_TRUE(pack_word(std::string(kWordBytesMax - 1, 'a'), word));
  EXPECT_TRUE(pack_word(std::string(kWordBytesMax, 'a'), word));
  EXPECT_FALSE(pack_word(std::string(kWordBytesMax + 1, 'a'), word));
}

}  // namespace
}  // namespace kvferry::redis
