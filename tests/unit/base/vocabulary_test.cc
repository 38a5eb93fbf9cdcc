// The small types of base that need a line or two each: Strong, Delegate, Counter, checks.
#include <cstdint>
#include <type_traits>

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/counter.h"
#include "base/delegate.h"
#include "base/strong.h"

namespace kvferry::base {
namespace {

using CasUnique = Strong<struct CasUniqueTag, std::uint64_t>;
using Opaque = Strong<struct OpaqueTag, std::uint64_t>;

static_assert(!std::is_convertible_v<std::uint64_t, CasUnique>);
static_assert(!std::is_convertible_v<CasUnique, std::uint64_t>);
static_assert(!std::is_constructible_v<CasUnique, Opaque>);
static_assert(sizeof(CasUnique) == sizeof(std::uint64_t));
static_assert(sizeof(Delegate<void()>) == 2 * sizeof(void*));

TEST(Strong, ComparesByValue) {
  EXPECT_EQ(CasUnique(3), CasUnique(3));
  EXPECT_LT(CasUnique(3), CasUnique(4));
  EXPECT_EQ(CasUnique().get(), 0U);
}

struct Adder {
  int total = 0;
  int add(int amount) {
    total += amount;
    return total;
  }
};

TEST(Delegate, CallsTheBoundMemberOfTheBoundObject) {
  Adder first;
  Adder second;
  const auto to_first = Delegate<int(int)>::to<&Adder::add>(&first);
  const auto to_second = Delegate<int(int)>::to<&Adder::add>(&second);
  EXPECT_EQ(to_first(2), 2);
  EXPECT_EQ(to_first(3), 5);
  EXPECT_EQ(to_second(7), 7);
}

TEST(Delegate, IsFalseUntilItIsBound) {
  Adder adder;
  Delegate<int(int)> delegate;
  EXPECT_FALSE(static_cast<bool>(delegate));
  delegate = Delegate<int(int)>::to<&Adder::add>(&adder);
  EXPECT_TRUE(static_cast<bool>(delegate));
}

TEST(Counter, AddsSubtractsAndSets) {
  Counter counter;
  counter.add(5);
  counter.sub(2);
  EXPECT_EQ(counter.get(), 3U);
  counter.set(9);
  EXPECT_EQ(counter.get(), 9U);
}

TEST(CheckDeathTest, NamesTheConditionAndThePlace) {
  const int answer = 41;
  KVF_CHECK(answer == 41);
  EXPECT_DEATH(KVF_CHECK(answer == 42), "bug: answer == 42 does not hold at .*vocabulary_test.cc:");
}

}  // namespace
}  // namespace kvferry::base
