#include "protocol/memcache/command.h"

#include <string>

#include <gtest/gtest.h>

#include "protocol/memcache/token_walker.h"

namespace kvferry::memcache {
namespace {

TEST(Command, IsFoundByItsNameAndByNothingNear) {
  for (std::size_t index = 1; index < kCommandCount; ++index) {
    const auto command = static_cast<Command>(index);
    const std::string name(command_name(command));
    EXPECT_EQ(find_command(name), command) << name;
    EXPECT_NE(find_command(name + "x"), command) << name;
    EXPECT_NE(find_command(name.substr(0, name.size() - 1)), command) << name;
    std::string upper = name;
    upper[0] = static_cast<char>(upper[0] - 'a' + 'A');
    EXPECT_EQ(find_command(upper), Command::Unknown) << name;
  }
  for (const std::string_view word : {"", "m", "mx", "?", "xx", "geta", "lru crawler"}) {
    EXPECT_EQ(find_command(word), Command::Unknown) << word;
  }
}

TEST(Command, KnowsWhoHasAKeyAndAValue) {
  EXPECT_TRUE(has_key(Command::Mg) && has_key(Command::Get) && has_key(Command::Delete));
  EXPECT_FALSE(has_key(Command::Mn) || has_key(Command::Version) || has_key(Command::Unknown));
  EXPECT_TRUE(has_value(Command::Ms) && has_value(Command::Set) && has_value(Command::Cas));
  EXPECT_FALSE(has_value(Command::Mg) || has_value(Command::Incr) || has_value(Command::Gats));
}

TEST(TokenWalker, YieldsWordsBetweenAnyNumberOfBlanks) {
  TokenWalker walker("  a bb   c\td  ");
  EXPECT_EQ(walker.next(), "a");
  EXPECT_EQ(walker.rest(), " bb   c\td  ");
  EXPECT_EQ(walker.next(), "bb");
  EXPECT_EQ(walker.next(), "c\td");
  EXPECT_EQ(walker.next(), "");
  EXPECT_EQ(walker.next(), "");
  EXPECT_EQ(TokenWalker("").next(), "");
}

TEST(TokenWalker, YieldsTheSameWordsByEitherSearch) {
  const std::string_view text = "  a bb   12345678901234567890\tx  c ";
  TokenWalker one(text);
  TokenWalker other(text);
  for (int count = 0; count < 5; ++count) {
    EXPECT_EQ(one.next(), other.next_short());
    EXPECT_EQ(one.rest(), other.rest());
  }
}

TEST(TokenWalker, FindsAWordByItsIndex) {
  EXPECT_EQ(token_at("get a  b", 0), "get");
  EXPECT_EQ(token_at("get a  b", 2), "b");
  EXPECT_EQ(token_at("get a  b", 3), "");
  EXPECT_EQ(token_at("", 0), "");
}

}  // namespace
}  // namespace kvferry::memcache
