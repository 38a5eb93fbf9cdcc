#include "lua/worker_state.h"

#include <string>

#include "tests/unit/lua/worker_rig.h"

namespace kvferry::lua {
namespace {

/// A configuration whose route function is `body`, with rctx, req and handles a, b, c.
std::string route(const std::string& body) {
  return R"(
function mcp_config_routes(pools)
  local fg = mcp.funcgen_new()
  local a, b, c = fg:new_handle(pools.a), fg:new_handle(pools.b), fg:new_handle(pools.c)
  fg:ready({ n = "test", f = function(rctx)
    return function(req)
)" + body +
         R"(
    end
  end })
  mcp.attach(mcp.CMD_ANY_STORAGE, fg)
end)";
}

class WorkerStateTest : public testing::Test {
 protected:
  void load(const std::string& code) {
    const base::Result<void> done = rig_.load(code);
    ASSERT_TRUE(done) << done.error().text();
  }
  std::int64_t slots() const { return rig_.names.slots()["test"]; }

  WorkerRig rig_;
};

TEST_F(WorkerStateTest, RunsARouteFunctionThroughAWait) {
  load(
      route("local res = rctx:enqueue_and_wait(req, b) if res:hit() then return res end "
            "return 'SERVER_ERROR no\\r\\n'"));
  const test::Outcome& outcome = rig_.send("mg key v\r\n");
  EXPECT_FALSE(outcome.is_done);
  EXPECT_EQ(rig_.stats.active.get(), 1U);
  EXPECT_EQ(rig_.pools["b"].received, std::vector<std::string>{"mg key v\r\n"});
  rig_.pools["b"].answer("VA 1\r\nx\r\n");
  EXPECT_EQ(outcome.bytes, "VA 1\r\nx\r\n");
  EXPECT_EQ(rig_.stats.active.get(), 0U);
}

TEST_F(WorkerStateTest, WhatNoHookTakesGoesToTheLocalServer) {
  load("function mcp_config_routes() mcp.attach(mcp.CMD_MG, function() return 'HD\\r\\n' end) end");
  rig_.local.answer_at_once = "STORED\r\n";
  EXPECT_EQ(rig_.send("set a 0 0 1\r\nx\r\n").bytes, "STORED\r\n");
  EXPECT_EQ(rig_.send("mg a\r\n").bytes, "HD\r\n");
}

TEST_F(WorkerStateTest, ASlotIsBusyUntilItsLastSubRequestHasEnded) {
  load(route("rctx:enqueue(req, {a, b}) rctx:wait_cond(1) return rctx:res_any(a)"));
  const test::Outcome& first = rig_.send("mg key v\r\n");
  rig_.pools["a"].answer("HD\r\n");
  EXPECT_TRUE(first.is_done);
  EXPECT_EQ(rig_.stats.active.get(), 1U);
  EXPECT_EQ(slots(), 1);
  const test::Outcome& second = rig_.send("mg key v\r\n");
  EXPECT_EQ(slots(), 2) << "the first slot still waits for b";
  rig_.pools["b"].answer("HD\r\n");
  rig_.pools["b"].answer("HD\r\n");
  rig_.pools["a"].answer("HD\r\n");
  EXPECT_TRUE(second.is_done);
  EXPECT_EQ(rig_.stats.active.get(), 0U);
  EXPECT_EQ(slots(), 2);
}

TEST_F(WorkerStateTest, AnErrorFailsItsOwnRequestOnly) {
  load(
      route("rctx:enqueue_and_wait(req, a) if req:key() == 'bad' then error('oh no') end "
            "return 'HD\\r\\n'"));
  const test::Outcome& bad = rig_.send("mg bad v\r\n");
  const test::Outcome& good = rig_.send("mg good v\r\n");
  rig_.pools["a"].answer("HD\r\n");
  rig_.pools["a"].answer("HD\r\n");
  EXPECT_EQ(bad.bytes, "SERVER_ERROR lua failure\r\n");
  EXPECT_EQ(good.bytes, "HD\r\n");
  ASSERT_EQ(rig_.errors.size(), 1U);
  EXPECT_NE(rig_.errors[0].find("oh no"), std::string::npos);
  const test::Outcome& again = rig_.send("mg good v\r\n");
  rig_.pools["a"].answer("HD\r\n");
  EXPECT_EQ(again.bytes, "HD\r\n") << "the coroutine that failed serves on";
}

TEST_F(WorkerStateTest, AScriptThatNeverEndsIsStopped) {
  rig_.vm_limits.run_instructions_max = 100000;
  load(route("while true do pcall(function() while true do end end) end"));
  EXPECT_EQ(rig_.send("mg key v\r\n").bytes, "SERVER_ERROR lua failure\r\n");
  ASSERT_EQ(rig_.errors.size(), 1U);
  EXPECT_NE(rig_.errors[0].find("instruction budget"), std::string::npos);
}

TEST_F(WorkerStateTest, AScriptThatTakesTooMuchMemoryIsStopped) {
  rig_.vm_limits.run_bytes_max = std::size_t{1} << 20;
  load(route("local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end"));
  EXPECT_EQ(rig_.send("mg key v\r\n").bytes, "SERVER_ERROR lua failure\r\n");
  EXPECT_EQ(rig_.send("mg key v\r\n").bytes, "SERVER_ERROR lua failure\r\n");
}

TEST_F(WorkerStateTest, EachNthAllocationOfRequestsMayFailAndLoadsDoNot) {
  rig_.state.vm().fail_allocation_for_test(16, Vm::Failing::Each);
  load(route("return 'HD s' .. #req:key() .. '\\r\\n'"));
  int failed = 0;
  for (int i = 0; i < 30; ++i) {
    const std::string bytes = rig_.send("mg key" + std::to_string(i) + "\r\n").bytes;
    failed += bytes == "SERVER_ERROR lua failure\r\n" ? 1 : 0;
    EXPECT_TRUE(bytes.starts_with("HD s") || bytes == "SERVER_ERROR lua failure\r\n") << bytes;
  }
  EXPECT_GT(failed, 0);
  EXPECT_LT(failed, 30) << "memory is there again after a failure";
}

TEST_F(WorkerStateTest, EveryAllocationMayFail) {
  load(
      route("local t = { req:key(), req:raw_line() } "
            "local res = rctx:enqueue_and_wait(req, a) t[3] = res:line() "
            "return res"));
  int failed = 0;
  int served = 0;
  for (std::uint64_t n = 1; n <= 200 && served < 3; ++n) {
    rig_.state.vm().fail_allocation_for_test(n);
    const test::Outcome& outcome = rig_.send("mg key v t\r\n");
    if (!outcome.is_done) {
      rig_.pools["a"].answer("HD t5\r\n");
    }
    ASSERT_TRUE(outcome.is_done) << n;
    served += outcome.bytes == "HD t5\r\n" ? 1 : 0;
    failed += outcome.bytes.starts_with("SERVER_ERROR lua") ? 1 : 0;
    EXPECT_EQ(rig_.stats.active.get(), 0U) << n;
    rig_.state.vm().fail_allocation_for_test(0);
  }
  EXPECT_GT(failed, 0) << "the test must reach allocations of the script";
  EXPECT_EQ(served, 3);
  EXPECT_EQ(rig_.send("mg key v\r\n").is_done, false);
  rig_.pools["a"].answer("EN\r\n");
}

TEST_F(WorkerStateTest, ARequestThatIsKeptIsDeadForTheNextOne) {
  load(R"(
local kept
function mcp_config_routes()
  mcp.attach(mcp.CMD_MG, function(req)
    local before = kept
    kept = req
    if before then return before:key() .. "\r\n" end
    return "HD\r\n"
  end)
end)");
  EXPECT_EQ(rig_.send("mg one\r\n").bytes, "HD\r\n");
  EXPECT_EQ(rig_.send("mg two\r\n").bytes, "SERVER_ERROR lua failure\r\n");
}

TEST_F(WorkerStateTest, AFailedLoadLeavesHooksAndGlobals) {
  load(R"(
word = "old"
function mcp_config_routes() mcp.attach(mcp.CMD_MG, function() return word .. "\r\n" end) end)");
  const base::Result<void> failed = rig_.load(R"(
word = "new"
fresh = true
function mcp_config_routes()
  mcp.attach(mcp.CMD_MG, function() return "never\r\n" end)
  error("late")
end)");
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().text().find("Failed to execute mcp_config_routes: "), std::string::npos);
  EXPECT_NE(failed.error().text().find("late"), std::string::npos);
  EXPECT_EQ(rig_.send("mg a\r\n").bytes, "old\r\n");
  EXPECT_FALSE(rig_.load("assert(fresh == nil) nothing = mcp.nothing.x"));
  EXPECT_EQ(rig_.send("mg a\r\n").bytes, "old\r\n");
}

TEST_F(WorkerStateTest, ALoadInTheMiddleOfARequestLetsItFinish) {
  load(route("local res = rctx:enqueue_and_wait(req, a) if res then return res end"));
  const test::Outcome& outcome = rig_.send("mg key v\r\n");
  load("function mcp_config_routes() mcp.attach(mcp.CMD_MG, function() return 'EN\\r\\n' end) end");
  EXPECT_EQ(rig_.names.generators()["test"], 1) << "other commands still use it";
  EXPECT_EQ(rig_.send("mg key v\r\n").bytes, "EN\r\n");
  rig_.pools["a"].answer("HD\r\n");
  EXPECT_EQ(outcome.bytes, "HD\r\n");
}

TEST_F(WorkerStateTest, WhatIsReplacedGoesWhenItsLastRequestHasEnded) {
  const std::string code =
      route("local res = rctx:enqueue_and_wait(req, a) if res then return res end");
  load(code);
  const test::Outcome& outcome = rig_.send("mg key v\r\n");
  load(code);
  EXPECT_EQ(rig_.names.generators()["test"], 1);
  EXPECT_EQ(slots(), 2);
  rig_.pools["a"].answer("HD\r\n");
  EXPECT_TRUE(outcome.is_done);
  rig_.rig.run_until([&] { return slots() == 1; });
  EXPECT_EQ(slots(), 1);
}

TEST_F(WorkerStateTest, MemoryIsFlatOverEqualLoads) {
  const std::string code =
      route("local res = rctx:enqueue_and_wait(req, a) if res then return res end");
  const auto run = [&](int times) {
    for (int i = 0; i < times; ++i) {
      load(code);
      rig_.send("mg key v\r\n");
      rig_.pools["a"].answer("HD\r\n");
    }
    rig_.state.keep_house();
    return rig_.stats.memory_bytes.get();
  };
  const std::uint64_t before = run(20);
  EXPECT_LE(run(50), before + before / 50);
}

TEST_F(WorkerStateTest, TaggedListenersHaveHooksOfTheirOwn) {
  load(R"(
function mcp_config_routes()
  mcp.attach(mcp.CMD_ANY_STORAGE, function() return "all\r\n" end)
  mcp.attach(mcp.CMD_MG, function() return "admin\r\n" end, "admin")
end)");
  EXPECT_EQ(rig_.send("mg a\r\n").bytes, "all\r\n");
  EXPECT_EQ(rig_.send("mg a\r\n", "admin").bytes, "admin\r\n");
  EXPECT_EQ(rig_.send("get a\r\n", "admin").bytes, "all\r\n");
  EXPECT_EQ(rig_.send("mg a\r\n", "other").bytes, "all\r\n");
}

TEST_F(WorkerStateTest, KeylessCommandsAreHookedWhenAttached) {
  EXPECT_TRUE(rig_.state.hooks().keyless("").none());
  load(
      "function mcp_config_routes() mcp.attach(mcp.CMD_VERSION, function() return 'V\\r\\n' end) "
      "end");
  EXPECT_EQ(rig_.state.hooks().keyless("").count(), 1U);
  EXPECT_EQ(rig_.send("version\r\n").bytes, "V\r\n");
}

TEST_F(WorkerStateTest, AWideGetIsCutIntoOneRequestAKey) {
  load(route("local res = rctx:enqueue_and_wait(req, a) if res then return res end"));
  const test::Outcome& outcome = rig_.send("get one two three\r\n");
  route::FakeTarget& pool = rig_.pools["a"];
  EXPECT_EQ(pool.received,
            (std::vector<std::string>{"get one\r\n", "get two\r\n", "get three\r\n"}));
  pool.answer("VALUE one 0 1\r\n1\r\nEND\r\n");
  pool.fail();
  EXPECT_FALSE(outcome.is_done);
  pool.answer("END\r\n");
  EXPECT_EQ(outcome.bytes, "VALUE one 0 1\r\n1\r\nSERVER_ERROR backend failure\r\nEND\r\n");
}

TEST_F(WorkerStateTest, SubFunctionsAnswerTheirParents) {
  load(R"(
function mcp_config_routes(pools)
  local inner = mcp.funcgen_new()
  local a = inner:new_handle(pools.a)
  inner:ready({ n = "inner", f = function(rctx)
    return function(req)
      if req:key() == "text" then return "words" end
      if req:key() == "error" then error("inside") end
      return rctx:enqueue_and_wait(req, a)
    end
  end })
  local outer = mcp.funcgen_new()
  local h = outer:new_handle(inner)
  outer:ready({ n = "outer", f = function(rctx)
    return function(req)
      local res = rctx:enqueue_and_wait(req, h)
      if type(res) == "string" then return "got " .. res .. "\r\n" end
      if not res:ok() then return "SERVER_ERROR inner\r\n" end
      return res
    end
  end })
  mcp.attach(mcp.CMD_MG, outer)
end)");
  EXPECT_EQ(rig_.send("mg text\r\n").bytes, "got words\r\n");
  EXPECT_EQ(rig_.send("mg error\r\n").bytes, "SERVER_ERROR inner\r\n");
  const test::Outcome& outcome = rig_.send("mg key v\r\n");
  rig_.pools["a"].answer("HD\r\n");
  EXPECT_EQ(outcome.bytes, "HD\r\n");
}

TEST_F(WorkerStateTest, QuietnessIsThatOfTheRequestAtTheEnd) {
  load(
      route("local res = rctx:enqueue_and_wait(req, a) if req:key() == 'loud' then "
            "req:flag_del('q') end return res"));
  const test::Outcome& quiet = rig_.send("mg key v q\r\n");
  const test::Outcome& loud = rig_.send("mg loud v q\r\n");
  EXPECT_EQ(quiet.call->quiet, call::Quiet::No) << "not decided yet";
  rig_.pools["a"].answer("EN\r\n");
  rig_.pools["a"].answer("EN\r\n");
  EXPECT_TRUE(quiet.is_done);
  EXPECT_EQ(loud.bytes, "EN\r\n");
}

TEST_F(WorkerStateTest, CountersLastOverLoadsAndBelongToIndexes) {
  rig_.user_counters = 3;
  load(
      "function mcp_config_routes() mcp.attach(mcp.CMD_MG, function() mcp.stat(2, 5) return "
      "'HD\\r\\n' end) end");
  rig_.send("mg a\r\n");
  rig_.user_counters = 5;
  load("function mcp_config_routes() end");
  rig_.send("mg a\r\n");
  EXPECT_EQ(rig_.state.user_counters()->get(2), 10U);
  EXPECT_EQ(rig_.state.user_counters()->size(), 5U);
}

}  // namespace
}  // namespace kvferry::lua
