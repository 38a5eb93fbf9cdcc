#include "base/intrusive_list.h"

#include <array>
#include <deque>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace kvferry::base {
namespace {

struct ReadyTag;
struct AllTag;

struct Member : ListHook<ReadyTag>, ListHook<AllTag> {
  int id = 0;
  Member* queue_next = nullptr;

  ListHook<ReadyTag>& ready() { return *this; }
  ListHook<AllTag>& all() { return *this; }
};
using ReadyList = List<Member, ReadyTag>;
using AllList = List<Member, AllTag>;
using Queue = Fifo<Member, &Member::queue_next>;

template <typename ListType>
std::vector<int> ids(ListType& list) {
  std::vector<int> found;
  for (Member* member = list.front(); member != nullptr; member = list.next(*member)) {
    found.push_back(member->id);
  }
  return found;
}

template <std::size_t N>
std::array<Member, N>& number(std::array<Member, N>& members) {
  int id = 0;
  for (Member& member : members) {
    member.id = id++;
  }
  return members;
}

TEST(List, KeepsTheOrderOfBothEnds) {
  std::array<Member, 4> members;
  number(members);
  ReadyList list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.front(), nullptr);
  EXPECT_EQ(list.back(), nullptr);
  EXPECT_EQ(list.pop_front(), nullptr);
  list.push_back(members[1]);
  list.push_back(members[2]);
  list.push_front(members[0]);
  list.push_back(members[3]);
  EXPECT_EQ(ids(list), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(list.back(), &members[3]);
  for (Member& member : members) {
    EXPECT_EQ(list.pop_front(), &member);
    EXPECT_FALSE(member.ready().is_linked());
  }
  EXPECT_TRUE(list.empty());
}

TEST(List, UnlinksAnyMemberAndForgivesASecondTime) {
  for (std::size_t removed = 0; removed < 3; ++removed) {
    std::array<Member, 3> members;
    number(members);
    ReadyList list;
    std::vector<int> expected;
    for (Member& member : members) {
      list.push_back(member);
      if (member.id != static_cast<int>(removed)) {
        expected.push_back(member.id);
      }
    }
    members[removed].ready().unlink();
    members[removed].ready().unlink();
    EXPECT_EQ(ids(list), expected);
    while (list.pop_front() != nullptr) {
    }
  }
}

TEST(List, MembershipOfTwoListsIsIndependent) {
  Member member;
  ReadyList ready;
  AllList all;
  ready.push_back(member);
  all.push_back(member);
  member.ready().unlink();
  EXPECT_TRUE(ready.empty());
  EXPECT_EQ(all.front(), &member);
  member.all().unlink();
}

#ifndef NDEBUG
TEST(ListDeathTest, AMemberMayNotDieOrJoinAgainWhileLinked) {
  EXPECT_DEATH(
      {
        ReadyList list;
        Member member;
        list.push_back(member);
      },
      "is_linked");
  EXPECT_DEATH(
      {
        ReadyList list;
        Member member;
        list.push_back(member);
        list.push_back(member);
      },
      "is_linked");
}
#endif

TEST(List, EqualsADequeUnderRandomSteps) {
  std::mt19937 random(7);
  std::array<Member, 16> members;
  number(members);
  ReadyList list;
  std::deque<int> model;
  for (int step = 0; step < 5000; ++step) {
    Member& member = members[random() % members.size()];
    if (member.ready().is_linked()) {
      member.ready().unlink();
      std::erase(model, member.id);
    } else if (random() % 2 == 0) {
      list.push_back(member);
      model.push_back(member.id);
    } else {
      list.push_front(member);
      model.push_front(member.id);
    }
    ASSERT_EQ(ids(list), std::vector<int>(model.begin(), model.end())) << step;
  }
  while (list.pop_front() != nullptr) {
  }
}

TEST(Fifo, GivesMembersInOrderAndCanBeFilledAgain) {
  std::array<Member, 3> members;
  Queue queue;
  EXPECT_EQ(queue.pop_front(), nullptr);
  for (int round = 0; round < 2; ++round) {
    for (Member& member : members) {
      queue.push_back(member);
    }
    for (Member& member : members) {
      EXPECT_EQ(queue.front(), &member);
      EXPECT_EQ(queue.pop_front(), &member);
      EXPECT_EQ(member.queue_next, nullptr);
    }
    EXPECT_TRUE(queue.empty());
  }
}

}  // namespace
}  // namespace kvferry::base
