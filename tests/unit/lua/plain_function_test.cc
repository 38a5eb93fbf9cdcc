#include "lua/plain_function.h"

#include <string>

#include "tests/unit/lua/plain_state.h"
#include "tests/unit/lua/worker_rig.h"

namespace kvferry::lua {
namespace {

class PlainShapesTest : public testing::Test {
 protected:
  /// The kind of the function that `code` returns.
  PlainKind kind_of(const std::string& code) {
    lua_State* lua = state_.lua;
    lua_settop(lua, 0);
    EXPECT_EQ(luaL_dostring(lua, code.c_str()), 0) << lua_tostring(lua, -1);
    return shapes_.recognise(lua, -1);
  }

  PlainState state_;
  PlainShapes shapes_{state_.lua};
};

TEST_F(PlainShapesTest, KnowsFunctionsThatForward) {
  for (const char* code :
       {"local rctx, h = {}, 1 return function(r) return rctx:enqueue_and_wait(r, h) end",
        "local x, h, y, ctx = 1, 2, 3, {}\nreturn function(anything)\n\n  return "
        "ctx:enqueue_and_wait(anything, h)\nend",
        "local c, h = {}, 1 return function(r) local s = c:enqueue_and_wait(r, h) return s end"}) {
    EXPECT_EQ(kind_of(code), PlainKind::Forward) << code;
  }
}

TEST_F(PlainShapesTest, KnowsFunctionsThatReturnAText) {
  EXPECT_EQ(kind_of("return function(r) return 'SERVER_ERROR closed\\r\\n' end"), PlainKind::Text);
  EXPECT_EQ(kind_of("return function(r) return '" + std::string(300, 'x') + "' end"),
            PlainKind::Text);
}

TEST_F(PlainShapesTest, TakesNothingElseForOne) {
  for (const char* code :
       {"local c, h = {}, 1 return function(r) return c:enqueue_and_wait(r, h, 1) end",
        "local c, h = {}, 1 return function(r) return c:enqueue_and_wait(h, r) end",
        "local c, h = {}, 1 return function(r) return c:enqueue(r, h) end",
        "local c, h = {}, 1 return function(r, s) return c:enqueue_and_wait(r, h) end",
        "local c, h = {}, 1 return function(...) return c:enqueue_and_wait(..., h) end",
        "local c, h = {}, 1 return function(r) c:enqueue_and_wait(r, h) end",
        "local c, h = {}, 1 return function(r) h = 2 return c:enqueue_and_wait(r, h) end",
        "local c = {} return function(r) return c:enqueue_and_wait(r, 1) end",
        "return function(r) return 1 end", "return function(r) return nil end",
        "return function(r) end", "return function(r) return r end",
        "return function() return 'x' end", "local t = 'x' return function(r) return t end",
        "return function(r) print('x') return 'x' end", "return print"}) {
    EXPECT_EQ(kind_of(code), PlainKind::None) << code;
  }
}

TEST(PlainFunction, ForwardsWithoutASlotAndCountsAllTheSame) {
  WorkerRig rig;
  ASSERT_TRUE(rig.load(R"(
function mcp_config_routes(pools)
  local fg = mcp.funcgen_new()
  local h = fg:new_handle(pools.a)
  fg:ready({ n = "test", f = function(rctx)
    return function(req) return rctx:enqueue_and_wait(req, h) end
  end })
  mcp.attach(mcp.CMD_ANY_STORAGE, fg)
end)"));
  const test::Outcome& first = rig.send("mg one v\r\n");
  const test::Outcome& second = rig.send("ms two 1 q\r\nx\r\n");
  EXPECT_EQ(rig.names.slots()["test"], 1) << "one slot, made by ready(), serves any number";
  EXPECT_EQ(rig.stats.active.get(), 2U);
  EXPECT_EQ(rig.pools["a"].received,
            (std::vector<std::string>{"mg one v\r\n", "ms two 1  \r\nx\r\n"}));
  rig.pools["a"].answer("EN\r\n");
  rig.pools["a"].answer("XX what\r\n");
  EXPECT_EQ(first.bytes, "EN\r\n");
  EXPECT_EQ(second.bytes, "SERVER_ERROR backend failure\r\n") << "a word that is no answer";
  EXPECT_EQ(rig.stats.active.get(), 0U);
}

TEST(PlainFunction, LooksAtWhatItsNamesStandForEachTime) {
  WorkerRig rig;
  ASSERT_TRUE(rig.load(R"(
function mcp_config_routes(pools)
  local fg = mcp.funcgen_new()
  local h = fg:new_handle(pools.a)
  local other = fg:new_handle(pools.b)
  fg:ready({ n = "test", f = function(rctx)
    return function(req) return rctx:enqueue_and_wait(req, h) end
  end })
  mcp.attach(mcp.CMD_MG, fg)
  mcp.attach(mcp.CMD_GET, function() h = other return "END\r\n" end)
  mcp.attach(mcp.CMD_SET, function() h = nil return "STORED\r\n" end)
end)"));
  rig.pools["a"].answer_at_once = "HD\r\n";
  rig.pools["b"].answer_at_once = "EN\r\n";
  EXPECT_EQ(rig.send("mg k\r\n").bytes, "HD\r\n");
  EXPECT_EQ(rig.send("get k\r\n").bytes, "END\r\n");
  EXPECT_EQ(rig.send("mg k\r\n").bytes, "EN\r\n");
  EXPECT_EQ(rig.send("set k 0 0 1\r\nx\r\n").bytes, "STORED\r\n");
  EXPECT_EQ(rig.send("mg k\r\n").bytes, "SERVER_ERROR lua failure\r\n")
      << "Lua tells what is wrong";
}

}  // namespace
}  // namespace kvferry::lua
