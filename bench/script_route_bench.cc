// What scripts add to a request: nanoseconds from a hook to the client's reply, with a pool that
// answers at once. No sockets.
//
//   direct      the pool itself, for comparison
//   plain       a function that only forwards, recognised and run without Lua
//   inspected   enqueue and wait, then a look at the reply: what most scripts do
//   waiting     the same with replies that come later, so that coroutines yield; `in_flight`
//   requests at a time

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "base/memory_budget.h"
#include "base/prefetch.h"
#include "lua/config_state.h"
#include "lua/worker_state.h"
#include "net/loop.h"
#include "protocol/memcache/request_parser.h"

namespace kvferry {
namespace {

constexpr std::string_view kRequest = "mg some/key/of/usual/length v t\r\n";
constexpr std::string_view kReply = "VA 10 t30\r\n0123456789\r\n";

constexpr const char* kPlain = R"(
function mcp_config_routes(pool)
  local fg = mcp.funcgen_new()
  local h = fg:new_handle(pool)
  fg:ready({ n = "bench", f = function(rctx)
    return function(req) return rctx:enqueue_and_wait(req, h) end
  end })
  mcp.attach(mcp.CMD_ANY_STORAGE, fg)
end)";

constexpr const char* kInspected = R"(
function mcp_config_routes(pool)
  local fg = mcp.funcgen_new()
  local h = fg:new_handle(pool)
  fg:ready({ n = "bench", f = function(rctx)
    return function(req)
      local res = rctx:enqueue_and_wait(req, h)
      if res:hit() then return res end
      return "SERVER_ERROR miss\r\n"
    end
  end })
  mcp.attach(mcp.CMD_ANY_STORAGE, fg)
end)";

/// Answers at once, or when told to.
class Pool final : public call::Target {
 public:
  void send(call::Call& call, const memcache::Request& request) override {
    benchmark::DoNotOptimize(request.key.data());
    if (is_waiting) {
      calls.push_back(&call);
    } else {
      call::answer(call, kReply, memcache::ReplyCode::MetaVa);
    }
  }
  void answer_all() {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      call::Call* const call = calls[i];
      prefetch_behind(i);
      call::answer(*call, kReply, memcache::ReplyCode::MetaVa);
    }
    calls.clear();
  }

  bool is_waiting = false;
  std::vector<call::Call*> calls;

 private:
  /// As links do it.
  void prefetch_behind(std::size_t index) {
    if (index + 1 < calls.size()) {
      calls[index + 1]->sink->prefetch(*calls[index + 1]);
    }
    if (index + 2 < calls.size()) {
      base::prefetch(calls[index + 2]->sink, 4 * base::kCacheLineBytes);
    }
    if (index + 3 < calls.size()) {
      base::prefetch(calls[index + 3], 2 * base::kCacheLineBytes);
    }
  }
};

class Client final : public call::ReplySink {
 public:
  explicit Client(call::CallPool& calls) : calls_(calls) {}
  void send(call::Target& target, const memcache::Request& request) {
    call::Call& call = calls_.acquire();
    call.sink = this;
    call.command = request.command;
    call.reply_kind = memcache::ReplyKind::Meta;
    target.send(call, request);
  }
  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override {
    benchmark::DoNotOptimize(part.bytes.data());
    calls_.release(call);
    return call::Flow::Continue;
  }

 private:
  call::CallPool& calls_;
};

class Rig final : private lua::PoolMaker, private lua::ScriptEvents {
 public:
  explicit Rig(const char* script, bool is_bounded) {
    auto opened = net::Loop::open(net::LoopOptions{.io = net::Io::Epoll}, budget_);
    KVF_CHECK(opened.has_value());
    loop_ = std::move(opened).value();
    state_ = std::make_unique<lua::WorkerState>(lua::WorkerState::Setup{.loop = *loop_,
                                                                        .calls = calls_,
                                                                        .local = pool,
                                                                        .pools = *this,
                                                                        .events = *this,
                                                                        .stats = stats_,
                                                                        .names = names_,
                                                                        .start_argument = {},
                                                                        .limits = {}});
    lua_State* lua = luaL_newstate();
    KVF_CHECK(luaL_loadstring(lua, script) == LUA_OK);
    lua::ScriptLoad load;
    load.files.push_back(lua::CompiledFile{.name = "@bench", .code = lua::dump_chunk(lua)});
    lua_close(lua);
    load.value = lua::ConfigValue{std::make_shared<const pool::McpPoolOptions>()};
    load.vm_limits.run_instructions_max = is_bounded ? lua::kRunInstructionsMax : 0;
    KVF_CHECK(state_->prepare(load).has_value());
    state_->commit();
  }
  void send() { client_.send(state_->hooks().target(""), request_); }
  void send_to_pool() { client_.send(pool, request_); }

  Pool pool;

 private:
  class Forwarder final : public call::Target {
   public:
    explicit Forwarder(call::Target& target) : target_(target) {}
    void send(call::Call& call, const memcache::Request& request) override {
      target_.send(call, request);
    }

   private:
    call::Target& target_;
  };

  std::unique_ptr<call::Target> make_pool(const lua::ConfigValue::Pool& /*pool*/) override {
    return std::make_unique<Forwarder>(pool);
  }
  void on_script_error(std::string_view /*text*/, std::string_view /*traceback*/) override {
    KVF_CHECK(false);
  }
  bool wants_messages() const override { return false; }
  void on_message(std::string_view /*text*/) override {}
  bool wants_requests() const override { return false; }
  void on_request(std::string_view /*line*/) override {}

  base::MemoryBudget budget_{std::size_t{1} << 30};
  std::unique_ptr<net::Loop> loop_;
  call::CallPool calls_{budget_};
  Client client_{calls_};
  lua::ScriptStats stats_;
  lua::NameCounts names_;
  std::unique_ptr<lua::WorkerState> state_;
  memcache::Request request_ =
      memcache::RequestParser(memcache::ParserLimits{}).parse(kRequest).value();
};

void direct(benchmark::State& state) {
  Rig rig(kPlain, true);
  for (auto _ : state) {
    rig.send_to_pool();
  }
}
BENCHMARK(direct);

void plain(benchmark::State& state) {
  Rig rig(kPlain, true);
  for (auto _ : state) {
    rig.send();
  }
}
BENCHMARK(plain);

void inspected(benchmark::State& state) {
  Rig rig(kInspected, state.range(0) != 0);
  for (auto _ : state) {
    rig.send();
  }
}
BENCHMARK(inspected)->ArgName("bounded")->Arg(0)->Arg(1);

void waiting(benchmark::State& state) {
  Rig rig(kInspected, state.range(1) != 0);
  rig.pool.is_waiting = true;
  const auto in_flight = state.range(0);
  for (auto _ : state) {
    for (std::int64_t i = 0; i < in_flight; ++i) {
      rig.send();
    }
    rig.pool.answer_all();
  }
  state.SetItemsProcessed(state.iterations() * in_flight);
}
BENCHMARK(waiting)->ArgNames({"in_flight", "bounded"})->ArgsProduct({{1, 50, 1600}, {0, 1}});

}  // namespace
}  // namespace kvferry
