// Budgets of instructions. What a script is stopped by is the same whether its instructions count
// from the first one on or only after the watchdog has seen it.
#include "lua/vm.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/unit/lua/worker_rig.h"

namespace kvferry::lua {
namespace {

constexpr const char* kFailure = "SERVER_ERROR lua failure\r\n";

struct Budget {
  const char* name;
  std::uint32_t instructions;
};

class RunBudgetTest : public testing::TestWithParam<Budget> {
 protected:
  /// Hooks `get` to a function with `body`, and everything else to one that answers at once. `head`
  /// stands before the hooks.
  void load(const std::string& body, const std::string& head = {}) {
    rig_.vm_limits.run_instructions_max = GetParam().instructions;
    const base::Result<void> done = rig_.load(R"(
function loop() while true do end end
)" + head + R"(
function mcp_config_routes(pools)
  local fg = mcp.funcgen_new()
  local a, b = fg:new_handle(pools.a), fg:new_handle(pools.b)
  fg:ready({ n = "test", f = function(rctx) return function(req) )" +
                                              body + R"( end end })
  mcp.attach(mcp.CMD_ANY_STORAGE, function() return "EN\r\n" end)
  mcp.attach(mcp.CMD_GET, fg)
end)");
    ASSERT_TRUE(done) << done.error().text();
    rig_.pools["a"].answer_at_once = "HD\r\n";
    rig_.pools["b"].answer_at_once = "HD\r\n";
  }
  void expect_stopped() {
    EXPECT_EQ(rig_.send("get key\r\n").bytes, kFailure);
    ASSERT_EQ(rig_.errors.size(), 1U);
    EXPECT_NE(rig_.errors[0].find("instruction budget"), std::string::npos) << rig_.errors[0];
    EXPECT_EQ(rig_.send("get key\r\n").bytes, kFailure) << "once more, on the same slot";
    EXPECT_EQ(rig_.send("mg key v\r\n").bytes, "EN\r\n") << "others are served";
  }

  WorkerRig rig_;
};

INSTANTIATE_TEST_SUITE_P(Budgets, RunBudgetTest,
                         testing::Values(Budget{"Counted", 100'000},
                                         Budget{"Watched", kWatchedInstructionsMin}),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(RunBudgetTest, StopsALoop) {
  load("loop()");
  expect_stopped();
}

TEST_P(RunBudgetTest, StopsALoopThatCatchesErrors) {
  load("while true do pcall(loop) end");
  expect_stopped();
}

TEST_P(RunBudgetTest, StopsALoopBehindAWait) {
  load("rctx:enqueue_and_wait(req, a) while true do pcall(loop) end");
  rig_.pools["a"].answer_at_once.clear();
  const test::Outcome& outcome = rig_.send("get key\r\n");
  EXPECT_FALSE(outcome.is_done);
  rig_.pools["a"].answer("HD\r\n");
  EXPECT_EQ(outcome.bytes, kFailure);
}

TEST_P(RunBudgetTest, StopsLoopsInCoroutines) {
  load("while true do pcall(coroutine.wrap(loop)) coroutine.resume(coroutine.create(loop)) end");
  expect_stopped();
}

TEST_P(RunBudgetTest, StopsALoopInACoroutineOfTheLoad) {
  load("while true do coroutine.resume(old) end", "old = coroutine.create(loop)");
  expect_stopped();
}

TEST_P(RunBudgetTest, StopsALoopInACallback) {
  load("rctx:handle_set_cb(a, loop) local res = rctx:enqueue_and_wait(req, a) return res");
  EXPECT_EQ(rig_.send("get key\r\n").bytes, "HD\r\n") << "errors in callbacks are ignored";
  EXPECT_EQ(rig_.errors.size(), 1U);
}

TEST_P(RunBudgetTest, StopsALoopInASubFunctionAndItsParentGoesOn) {
  rig_.vm_limits.run_instructions_max = GetParam().instructions;
  ASSERT_TRUE(rig_.load(R"(
local function loop() while true do end end
function mcp_config_routes()
  local inner, outer = mcp.funcgen_new(), mcp.funcgen_new()
  inner:ready({ f = function() return function() while true do pcall(loop) end end end })
  local h = outer:new_handle(inner)
  outer:ready({ f = function(rctx) return function(req)
    local res = rctx:enqueue_and_wait(req, h)
    for i = 1, 1000 do end
    if req:key() == "loop" then while true do pcall(loop) end end
    return res:ok() and "HD\r\n" or "NF\r\n"
  end end })
  mcp.attach(mcp.CMD_MG, outer)
end)"));
  EXPECT_EQ(rig_.send("mg key v\r\n").bytes, "NF\r\n");
  EXPECT_EQ(rig_.errors.size(), 1U);
  EXPECT_EQ(rig_.send("mg loop v\r\n").bytes, kFailure);
  EXPECT_EQ(rig_.errors.size(), 3U);
}

TEST_P(RunBudgetTest, StopsALoopAfterACallback) {
  load("rctx:handle_set_cb(a, function() end) rctx:enqueue_and_wait(req, a) loop()");
  expect_stopped();
}

TEST_P(RunBudgetTest, StopsALoopInAClosedVariable) {
  load(R"(local bad <close> = setmetatable({}, { __close = loop }) error("x"))");
  EXPECT_EQ(rig_.send("get key\r\n").bytes, kFailure);
  EXPECT_EQ(rig_.send("mg key v\r\n").bytes, "EN\r\n");
}

TEST_P(RunBudgetTest, ABudgetIsThatOfOneRun) {
  load(R"(
    for i = 1, 3000 do end
    local res = rctx:enqueue_and_wait(req, a)
    resume_old()
    return res)",
       R"(
local old = coroutine.wrap(function() while true do for i = 1, 3000 do end coroutine.yield() end end)
function resume_old() old() end)");
  // Together they take more than the lower budget.
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(rig_.send("get key\r\n").bytes, "HD\r\n") << i;
  }
}

TEST(RunBudget, IsExactWhereItIsLow) {
  WorkerRig rig;
  rig.vm_limits.run_instructions_max = 10'000;
  ASSERT_TRUE(rig.load(R"(
function mcp_config_routes()
  mcp.attach(mcp.CMD_MG, function(req)
    for i = 1, tonumber(req:key()) do end
    return "EN\r\n"
  end)
end)"));
  EXPECT_EQ(rig.send("mg 9900 v\r\n").bytes, "EN\r\n");
  EXPECT_EQ(rig.send("mg 10000 v\r\n").bytes, kFailure);
}

TEST(RunBudget, NoneLeavesALongRunAlone) {
  WorkerRig rig;
  rig.vm_limits.run_instructions_max = 0;
  ASSERT_TRUE(rig.load(R"(
function mcp_config_routes()
  mcp.attach(mcp.CMD_MG, function(req) for i = 1, 4e7 do end return "EN\r\n" end)
end)"));
  EXPECT_EQ(rig.send("mg a v\r\n").bytes, "EN\r\n");
}

}  // namespace
}  // namespace kvferry::lua
