// Every allocation that scripts cause may fail: the n-th one, for n = 1 and so on until none does,
// in loads, in requests and in reloads. What fails is refused or answered with an error, and what
// comes next is served as if nothing had been.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "lua/config_state.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/lua/worker_rig.h"

namespace kvferry::lua {
namespace {

static_assert(kCanFailAllocations, "tests are for builds with KVF_DCHECK");

constexpr base::SteadyTime kStart{base::Seconds(1000)};

constexpr const char* kPools = R"(
function mcp_config_pools()
  mcp.backend_connect_timeout(1.5)
  mcp.add_stat(1, "tries")
  mcp.register_cron("tick", { every = 60, func = function() return { 1, 2 } end })
  local list = {}
  for i = 1, 3 do
    list[i] = mcp.backend({ label = "b" .. i, host = "127.0.0.1", port = 11300 + i, connections = 2 })
  end
  return {
    a = mcp.pool(list),
    b = mcp.pool(list, { dist = mcp.dist_ring_hash, hash = mcp.hash_xxhash, seed = "s" }),
    bucket = mcp.ratelim_global_tbf({ limit = 5, fillrate = 1, tickrate = 1000 }),
    words = { "one", "two", deep = { true, 1.5 } },
  }
end)";

constexpr const char* kRoutes = R"(
local function leaf(pool)
  local fg = mcp.funcgen_new()
  local h = fg:new_handle(pool)
  fg:ready({ n = "leaf", f = function(rctx)
    return function(req)
      local res = rctx:enqueue_and_wait(req, h)
      return res:ok() and res or "SERVER_ERROR leaf\r\n"
    end
  end })
  return fg
end

local function root(pools)
  local fg = mcp.funcgen_new()
  local a, b = fg:new_handle(pools.a), fg:new_handle(leaf(pools.b))
  fg:ready({ n = "root", u = 2, f = function(rctx)
    local look = mcp.req_inspector_new({ t = "sepkey", sep = "/", pos = 2, map = { two = "TWO" } },
                                       { t = "hasflag", flag = "t" })
    local made, answer = rctx:request_new(), rctx:response_new()
    local write = mcp.req_mutator_new({ t = "cmdset", cmd = "mg" }, { t = "keycopy", idx = 1 },
                                      { t = "flagset", flag = "v" })
    local reply = mcp.res_mutator_new({ t = "rescodeset", val = "HD" },
                                      { t = "flagset", flag = "O", val = "7" })
    local arrived = {}
    rctx:handle_set_cb(b, function(res, req) arrived[#arrived + 1] = req:key() .. tostring(res) end)
    return function(req)
      local part, has_ttl = look(req)
      mcp.log("key " .. req:key())
      if part == "TWO" then
        reply(answer)
        return answer
      end
      if req:has_flag("O") then
        local own = mcp.request("mg other v\r\n")
        return rctx:enqueue_and_wait(own, a)
      end
      req:flag_set("k")
      rctx:enqueue(req, { a, b })
      rctx:wait_cond(2, mcp.WAIT_ANY)
      write(made, req)
      local best = rctx:best_result({ a, b })
      mcp.log_req(req, best, "detail " .. tostring(has_ttl))
      if not best:hit() then return "NF miss " .. table.concat({ made:key(), part or "-" }) .. "\r\n" end
      return best
    end
  end })
  return fg
end

function mcp_config_routes(pools)
  local fg = root(pools)
  mcp.attach(mcp.CMD_MG, mcp.router_new({ map = { other = leaf(pools.c) }, default = fg }))
  mcp.attach(mcp.CMD_MD, fg, "tag")
  mcp.attach(mcp.CMD_GET, function(req) return "END\r\n" end)
end)";

/// Lets `fails` try with the n-th allocation failing, n growing in strides, until it says that none
/// has failed.
void for_each_allocation(const std::function<bool(std::uint64_t n)>& fails) {
  constexpr std::uint64_t kDense = 64;  // One by one so far, then in strides of 1/32.
  std::uint64_t n = 1;
  while (fails(n)) {
    ASSERT_FALSE(testing::Test::HasFailure()) << "with the allocation " << n;
    n += n <= kDense ? 1 : n / 32;
  }
  EXPECT_GT(n, 1U) << "nothing was allocated";
}

class AllocationFailure : public testing::TestWithParam<Vm::Failing>, private ConfigHost {
 protected:
  bool wants_messages() const override { return true; }
  void on_message(std::string_view /*text*/) override {}
  void on_cron_error(std::string_view /*text*/) override { ++cron_errors_; }
  bool compose_stats(std::string_view /*words*/, std::string& /*out*/) override { return false; }

  std::unique_ptr<ConfigState> make_config() {
    folder_.write("main.lua", kPools);
    return std::make_unique<ConfigState>(ConfigState::Setup{
        .files = {folder_.file("main.lua")}, .start_argument = {}, .host = this, .limits = {}});
  }
  void expect_good_load(ConfigState& config) {
    const base::Result<LoadedScripts> loaded = config.load(kStart);
    ASSERT_TRUE(loaded) << loaded.error().text();
    EXPECT_EQ(loaded.value().user_counters, 2U);
    config.settle();
  }

  static void answer_all(WorkerRig& rig) {
    for (const char* pool : {"a", "b", "c"}) {
      for (std::size_t left = rig.pools[pool].take().size(); left > 0; --left) {
        rig.pools[pool].answer("HD t5\r\n");
      }
    }
  }
  /// Sends each request of a set; their answers are what they are without a failure, or an error.
  void expect_answers(WorkerRig& rig, bool may_fail) {
    const struct {
      const char* request;
      const char* answer;
      std::string tag;
    } table[] = {
        {"mg key v t\r\n", "HD t5\r\n", {}},  {"mg a/two v\r\n", "HD O7\r\n", {}},
        {"mg key O1 v\r\n", "HD t5\r\n", {}}, {"mg other/x v\r\n", "HD t5\r\n", {}},
        {"md key q\r\n", "HD t5\r\n", "tag"}, {"get key\r\n", "END\r\n", {}},
    };
    for (const auto& row : table) {
      const test::Outcome& outcome = rig.send(row.request, row.tag);
      answer_all(rig);
      ASSERT_TRUE(outcome.is_done) << row.request;
      if (!may_fail || !outcome.bytes.starts_with("SERVER_ERROR ")) {
        EXPECT_EQ(outcome.bytes, row.answer) << row.request;
      }
    }
    EXPECT_EQ(rig.stats.active.get(), 0U);
    EXPECT_EQ(rig.stats.buffer_bytes.get(), 0U);
    EXPECT_EQ(rig.calls.live(), 0U);
  }
  static std::size_t settled_bytes(Vm& vm) {
    lua_gc(vm.main(), LUA_GCCOLLECT);
    lua_gc(vm.main(), LUA_GCCOLLECT);
    return vm.used_bytes();
  }

  test::TempFolder folder_;
  int cron_errors_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Kinds, AllocationFailure,
                         testing::Values(Vm::Failing::One, Vm::Failing::AllAfter),
                         [](const auto& each) {
                           return each.param == Vm::Failing::One ? "One" : "AllAfter";
                         });

TEST_P(AllocationFailure, RefusesTheLoadOfAConfiguration) {
  const std::unique_ptr<ConfigState> config = make_config();
  expect_good_load(*config);
  expect_good_load(*config);
  const std::size_t before = settled_bytes(config->vm());
  for_each_allocation([&](std::uint64_t n) {
    config->vm().fail_allocation_for_test(n, GetParam());
    const base::Result<LoadedScripts> loaded = config->load(kStart);
    const bool has_failed = config->vm().has_failed_for_test();
    config->vm().fail_allocation_for_test(0);
    EXPECT_TRUE(loaded || has_failed) << loaded.error().text();
    if (loaded) {
      config->settle();
    }
    return has_failed;
  });
  expect_good_load(*config);
  EXPECT_LE(settled_bytes(config->vm()), before + before / 50);
}

TEST_P(AllocationFailure, RefusesALoadOfAWorkerAndServesOnAsBefore) {
  WorkerRig rig;
  rig.user_counters = 2;
  ASSERT_TRUE(rig.load(kRoutes));
  const auto fail_all = [&] {
    for_each_allocation([&](std::uint64_t n) {
      rig.state.vm().fail_allocation_for_test(n, GetParam());
      const base::Result<void> done = rig.prepare(kRoutes);
      const bool has_failed = rig.state.vm().has_failed_for_test();
      rig.state.vm().fail_allocation_for_test(0);
      EXPECT_TRUE(done || has_failed) << done.error().text();
      if (done) {
        rig.state.commit();
      } else {
        rig.state.abort();
      }
      expect_answers(rig, false);
      return has_failed;
    });
    EXPECT_TRUE(rig.load(kRoutes));
    expect_answers(rig, false);
    return settled_bytes(rig.state.vm());
  };
  // Lua's tables grow with their first use.
  const std::size_t before = fail_all();
  EXPECT_LE(fail_all(), before + before / 50);
  EXPECT_EQ(rig.names.generators()["root"], 1);
  EXPECT_EQ(rig.names.slots()["root"], 1);
}

TEST_P(AllocationFailure, FailsTheRequestAndServesTheNext) {
  WorkerRig rig;
  rig.user_counters = 2;
  ASSERT_TRUE(rig.load(kRoutes));
  for_each_allocation([&](std::uint64_t n) {
    rig.state.vm().fail_allocation_for_test(n, GetParam());
    expect_answers(rig, true);
    const bool has_failed = rig.state.vm().has_failed_for_test();
    rig.state.vm().fail_allocation_for_test(0);
    expect_answers(rig, false);
    return has_failed;
  });
}

TEST_P(AllocationFailure, FailsTheRequestForWhichNoSlotCanBeMade) {
  for_each_allocation([&](std::uint64_t n) {
    WorkerRig rig;
    EXPECT_TRUE(rig.load(kRoutes));
    const test::Outcome& first = rig.send("mg key v\r\n");
    rig.state.vm().fail_allocation_for_test(n, GetParam());
    const test::Outcome& second = rig.send("mg key v\r\n");
    const bool has_failed = rig.state.vm().has_failed_for_test();
    rig.state.vm().fail_allocation_for_test(0);
    answer_all(rig);
    EXPECT_EQ(first.bytes, "HD t5\r\n");
    EXPECT_TRUE(second.is_done);
    EXPECT_TRUE(has_failed || second.bytes == "HD t5\r\n") << second.bytes;
    expect_answers(rig, false);
    return has_failed;
  });
}

}  // namespace
}  // namespace kvferry::lua
