#include "route/selecting_routes.h"

#include "tests/unit/route/native_rig.h"

namespace kvferry::route {
namespace {

using memcache::Command;

class SelectingRoutesTest : public NativeRouteTest {
 protected:
  void SetUp() override {
    for (FakeTarget* target : {&a_, &b_, &c_}) {
      target->answer_at_once = "END\r\n";
    }
  }
};

TEST_F(SelectingRoutesTest, TheLongestPrefixThatFitsWins) {
  PrefixRoute route(setup({{&a_}, {&b_}, {&c_}}), {"user:", "user:9"});
  send(route, "get user:1\r\n");
  send(route, "get user:91\r\n");
  send(route, "get user\r\n");
  send(route, "get xuser:1\r\n");
  EXPECT_EQ(a_.take(), once("get user:1\r\n"));
  EXPECT_EQ(b_.take(), once("get user:91\r\n"));
  EXPECT_EQ(c_.take(), (std::vector<std::string>{"get user\r\n", "get xuser:1\r\n"}));
}

TEST_F(SelectingRoutesTest, AKeyMayBeItsPrefix) {
  PrefixRoute route(setup({{&a_}, {&b_}}), {"user:"});
  send(route, "get user:\r\n");
  EXPECT_EQ(a_.take(), once("get user:\r\n"));
}

TEST_F(SelectingRoutesTest, WithoutADefaultOtherKeysGetAnError) {
  PrefixRoute route(setup({{&a_}}), {"user:"});
  EXPECT_EQ(send(route, "get other\r\n").bytes, kNoRouteLine);
  EXPECT_EQ(route.select(Command::Get, "other"), nullptr);
  EXPECT_TRUE(a_.take().empty());
}

TEST_F(SelectingRoutesTest, CommandsHaveRoutesOfTheirOwn) {
  CommandRoute route(setup({{&a_}, {&b_}, {&c_}}), {Command::Get, Command::Set});
  send(route, "get k\r\n");
  send(route, "set k 0 0 1\r\nx\r\n");
  send(route, "mg k v\r\n");
  EXPECT_EQ(a_.take(), once("get k\r\n"));
  EXPECT_EQ(b_.take(), once("set k 0 0 1\r\nx\r\n"));
  EXPECT_EQ(c_.take(), once("mg k v\r\n"));
}

TEST_F(SelectingRoutesTest, ACommandWithoutARouteGetsAnError) {
  CommandRoute route(setup({{&a_}}), {Command::Get});
  EXPECT_EQ(send(route, "delete k\r\n").bytes, kNoRouteLine);
}

TEST_F(SelectingRoutesTest, SelectSaysWhatSendWouldDo) {
  PrefixRoute prefixes(setup({{&a_}, {&b_}}), {"x"});
  EXPECT_EQ(prefixes.select(Command::Get, "xy")->target, &a_);
  EXPECT_EQ(prefixes.select(Command::Get, "yx")->target, &b_);
  CommandRoute commands(setup({{&a_}, {&b_}}), {Command::Get});
  EXPECT_EQ(commands.select(Command::Get, "k")->target, &a_);
  EXPECT_EQ(commands.select(Command::Gets, "k")->target, &b_);
}

TEST_F(SelectingRoutesTest, AnErrorOfItsOwn) {
  ErrorRoute route(setup({}), "closed for repairs");
  test::Outcome& outcome = send(route, "get k\r\n");
  EXPECT_EQ(outcome.bytes, "SERVER_ERROR closed for repairs\r\n");
  EXPECT_TRUE(outcome.is_failure());
}

}  // namespace
}  // namespace kvferry::route
