#include "lua/passed_gets.h"

#include <map>

#include "lua/worker_state.h"
#include "tests/unit/lua/worker_rig.h"
#include "tests/unit/pool/mcp_rig.h"

namespace kvferry::lua {
namespace {

using memcache::Command;
using test::Outcome;

std::string item(std::string_view key) {
  return "VALUE " + std::string(key) + " 0 1\r\n" + std::string(key.substr(0, 1)) + "\r\n";
}

/// A worker's state over real pools: `one` and `two`, of one fake server each.
class PassedGetsTest : public pool::McpRig, private PoolMaker, private ScriptEvents {
 protected:
  PassedGetsTest() : second_(loop()), state_(setup()) {
    answer_version(second_);
    pools_["one"] = options_of(server_, "one");
    pools_["two"] = options_of(second_, "two");
  }
  ~PassedGetsTest() override {
    EXPECT_EQ(stats_.active.get(), 0U);
    EXPECT_EQ(stats_.buffer_bytes.get(), 0U);
  }

  /// The text has `native` and, as arguments of mcp_config_routes, the pools.
  void load(const std::string& routes, RequestLimits limits = {}) {
    ScriptLoad load;
    load.files.push_back(compiled("local native = ...\nfunction mcp_config_routes(pools)\n" +
                                  std::string(kHelpers) + routes + "\nend"));
    load.files.back().is_library = true;
    ConfigValue::Table table;
    for (const auto& [name, options] : pools_) {
      table.push_back({.key = {std::string(name)}, .value = {ConfigValue::Pool(options)}});
    }
    load.value = ConfigValue{std::move(table)};
    load.limits = limits;
    const auto done = state_.prepare(load);
    ASSERT_TRUE(done.has_value()) << done.error().text();
    state_.commit();
    ASSERT_TRUE(run_until([&] { return !server_.peers.empty() && !second_.peers.empty(); }));
    rig_.run_turns(10);
  }
  Outcome& send(std::string_view bytes) { return sink_.send(state_.hooks().target(""), bytes); }
  void expect_received(test::FakeBackend& server, std::string_view bytes) {
    ASSERT_TRUE(run_until([&] { return server.peers.back()->data.size() >= bytes.size(); }));
    ASSERT_EQ(server.peers.back()->take(), bytes);
  }
  static void reply(test::FakeBackend& server, std::string_view bytes) {
    server.peers.back()->send(bytes);
  }
  bool wait_for(const Outcome& outcome) {
    return run_until([&] { return outcome.is_done; });
  }
  /// "get a b" is sent to server one as `wanted`, and answered.
  void expect_form(std::string_view wanted) {
    Outcome& outcome = send("get a b\r\n");
    expect_received(server_, wanted);
    const bool is_row = wanted.find('\n') + 1 != wanted.size();
    reply(server_, item("a") + (is_row ? "END\r\n" : "") + item("b") + "END\r\n");
    ASSERT_TRUE(wait_for(outcome));
    EXPECT_EQ(outcome.bytes, item("a") + item("b") + "END\r\n");
  }
  std::int64_t funcs(const std::string& name) const { return names_.generators()[name]; }
  std::shared_ptr<pool::McpPoolOptions> options_of(const test::FakeBackend& server,
                                                   const std::string& label) const {
    auto backend = std::make_shared<pool::McpBackendOptions>(options_);
    backend->label = label;
    backend->port = std::to_string(server.address().port());
    auto made = std::make_shared<pool::McpPoolOptions>();
    made->backends.push_back(std::move(backend));
    made->placement.hash = pool::HashKind::Xxh3;
    made->placement.distribution = pool::DistributionKind::Jump;
    return made;
  }

  static constexpr std::string_view kWide = "get a b\r\n";
  static constexpr std::string_view kRow = "get a\r\nget b\r\n";

  /// A function that forwards, and one that looks at what comes back.
  static constexpr const char* kHelpers = R"(
    kept = pools  -- Their connections stay, whatever uses them.
    local function plain(pool)
      local fg = mcp.funcgen_new()
      local h = fg:new_handle(pool)
      fg:ready({ n = "plain", f = function(rctx)
        return function(r) return rctx:enqueue_and_wait(r, h) end
      end })
      return fg
    end
    local function inspecting(pool)
      local fg = mcp.funcgen_new()
      local h = fg:new_handle(pool)
      fg:ready({ n = "inspecting", f = function(rctx)
        return function(r)
          local res = rctx:enqueue_and_wait(r, h)
          if res:ok() then return res end
          return "SERVER_ERROR seen\r\n"
        end
      end })
      return fg
    end
    local function direct(child, label)
      return native.route("direct", { label = label or "direct", children = { child } })
    end
  )";

  test::FakeBackend second_;
  route::FakeTarget local_;
  std::map<std::string, std::shared_ptr<pool::McpPoolOptions>> pools_;
  ScriptStats stats_;
  NameCounts names_;

 private:
  WorkerState::Setup setup() {
    return {.loop = loop(),
            .calls = calls_,
            .local = local_,
            .pools = *this,
            .events = *this,
            .stats = stats_,
            .names = names_,
            .start_argument = {},
            .limits = {}};
  }
  std::unique_ptr<call::Target> make_pool(const ConfigValue::Pool& pool) override {
    return std::make_unique<pool::McpPool>(pool, backends_);
  }
  void on_script_error(std::string_view text, std::string_view /*traceback*/) override {
    ADD_FAILURE() << text;
  }
  bool wants_messages() const override { return false; }
  void on_message(std::string_view /*text*/) override {}
  bool wants_requests() const override { return true; }
  void on_request(std::string_view line) override { logged_.emplace_back(line); }

 protected:
  std::vector<std::string> logged_;
  WorkerState state_;
};

TEST_P(PassedGetsTest, NativeRoutesAskABackendOnce) {
  load("mcp.attach(mcp.CMD_ANY_STORAGE, direct(pools.one))");
  expect_form(kWide);
}

TEST_P(PassedGetsTest, NestedNativeRoutesToo) {
  load(R"(mcp.attach(mcp.CMD_ANY_STORAGE,
            direct(direct(direct(pools.one)))))");
  expect_form(kWide);
}

TEST_P(PassedGetsTest, FunctionsAskForEachKey) {
  load("mcp.attach(mcp.CMD_ANY_STORAGE, plain(pools.one))");
  expect_form(kRow);
}

TEST_P(PassedGetsTest, APoolMaySayOtherwise) {
  pools_["one"]->has_wide_gets = true;
  load("mcp.attach(mcp.CMD_ANY_STORAGE, plain(pools.one))");
  expect_form(kWide);
  pools_["one"] = options_of(server_, "one");
  pools_["one"]->has_wide_gets = false;
  load("mcp.attach(mcp.CMD_ANY_STORAGE, direct(pools.one))");
  expect_form(kRow);
}

TEST_P(PassedGetsTest, FunctionsThatLookAtRepliesRunForEachKey) {
  load("mcp.attach(mcp.CMD_ANY_STORAGE, inspecting(pools.one))");
  expect_form(kRow);
  Outcome& outcome = send("get a b\r\n");
  expect_received(server_, kRow);
  reply(server_, "SERVER_ERROR x\r\n" + item("b") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes, "SERVER_ERROR seen\r\n" + item("b") + "END\r\n");
}

TEST_P(PassedGetsTest, KeysOfSeveralRoutesAreGroupedByTheirBackends) {
  load(R"(mcp.attach(mcp.CMD_ANY_STORAGE, mcp.router_new({ map = {
            x = direct(pools.one), y = { [mcp.CMD_GET] = direct(pools.two) },
            z = direct(pools.one) } })))");
  Outcome& outcome = send("get x/1 y/2 z/3 y/4\r\n");
  expect_received(server_, "get x/1 z/3\r\n");
  expect_received(second_, "get y/2 y/4\r\n");
  reply(second_, item("y/4") + "END\r\n");
  reply(server_, item("x/1") + item("z/3") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes, item("x/1") + item("z/3") + item("y/4") + "END\r\n");
}

TEST_P(PassedGetsTest, WhereAFunctionTakesSomeKeysAllAreAskedForOneByOne) {
  load(R"(mcp.attach(mcp.CMD_ANY_STORAGE, mcp.router_new({ map = {
            x = direct(pools.one), y = plain(pools.two) } })))");
  Outcome& outcome = send("get x/1 y/2 x/3\r\n");
  expect_received(server_, "get x/1\r\nget x/3\r\n");
  expect_received(second_, "get y/2\r\n");
  reply(second_, item("y/2") + "END\r\n");
  reply(server_, item("x/1") + "END\r\n" + item("x/3") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes, item("x/1") + item("y/2") + item("x/3") + "END\r\n");
}

TEST_P(PassedGetsTest, KeysThatCannotBePassedOnHaveTheirLines) {
  load(R"(mcp.attach(mcp.CMD_ANY_STORAGE, mcp.router_new({ map = { x = direct(pools.one) } })))");
  Outcome& outcome = send("get x/1 nowhere x/2\r\n");
  expect_received(server_, "get x/1\r\nget x/2\r\n");
  reply(server_, item("x/1") + "END\r\n" + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes, item("x/1") + "SERVER_ERROR lua start failure\r\nEND\r\n");
  Outcome& malformed = send("get" + std::string(30, ' ') + "x/1 x/2\r\n");
  EXPECT_EQ(malformed.bytes, "CLIENT_ERROR malformed request\r\n");
}

TEST_P(PassedGetsTest, OtherNativeRoutesRunForEachKey) {
  load(R"(mcp.attach(mcp.CMD_ANY_STORAGE,
            native.route("failover", { children = { pools.one, pools.two } })))");
  Outcome& outcome = send("get a b\r\n");
  expect_received(server_, kRow);
  reply(server_, "SERVER_ERROR x\r\n" + item("b") + "END\r\n");
  expect_received(second_, "get a\r\n");
  reply(second_, item("a") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes, item("a") + item("b") + "END\r\n");
}

TEST_P(PassedGetsTest, AnswersThatAreLoggedAreLookedAtOneByOne) {
  auto backend = std::make_shared<pool::McpBackendOptions>(*pools_["one"]->backends[0]);
  backend->logging.is_on = true;
  pools_["one"]->backends[0] = backend;
  load("mcp.attach(mcp.CMD_ANY_STORAGE, direct(pools.one))");
  expect_form(kRow);
  EXPECT_EQ(logged_.size(), 2U);
}

TEST_P(PassedGetsTest, EachKeyCountsAsARequest) {
  for (const char* route : {"direct", "plain"}) {
    const std::uint64_t requests = stats_.requests.get();
    load("mcp.attach(mcp.CMD_ANY_STORAGE, " + std::string(route) + "(pools.one))");
    Outcome& outcome = send("gets a b c\r\n");
    EXPECT_EQ(stats_.active.get(), 3U);
    EXPECT_EQ(stats_.requests.get(), requests + 3);
    EXPECT_EQ(stats_.commands[static_cast<std::size_t>(Command::Gets)].get(), requests + 3);
    ASSERT_TRUE(run_until([&] { return server_.peers.back()->data.ends_with("c\r\n"); }));
    const bool is_row = server_.peers.back()->take() != "gets a b c\r\n";
    reply(server_, is_row ? "END\r\nEND\r\nEND\r\n" : "END\r\n");
    ASSERT_TRUE(wait_for(outcome));
    EXPECT_EQ(stats_.active.get(), 0U);
  }
}

TEST_P(PassedGetsTest, KeysAboveTheLimitOfRequestsAreRefused) {
  load("mcp.attach(mcp.CMD_ANY_STORAGE, direct(pools.one))", RequestLimits{.active_max = 2});
  expect_form(kWide);
  Outcome& outcome = send("get a b c\r\n");
  expect_received(server_, kRow);
  reply(server_, item("a") + "END\r\n" + item("b") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes,
            item("a") + item("b") + "SERVER_ERROR active request limit reached\r\nEND\r\n");
}

TEST_P(PassedGetsTest, ARouteMayGoWhileItsGetIsUnderWay) {
  load("mcp.attach(mcp.CMD_ANY_STORAGE, direct(pools.one))");
  Outcome& outcome = send("get a b\r\n");
  expect_received(server_, kWide);
  load("mcp.attach(mcp.CMD_ANY_STORAGE, direct(pools.two))");
  reply(server_, item("b") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes, item("b") + "END\r\n");
}

TEST_P(PassedGetsTest, WhatIsKeptIsCounted) {
  for (const char* route :
       {"direct(pools.one)", "plain(pools.one)", "direct(inspecting(pools.one))",
        "plain(direct(pools.one))", "plain(native.route('failover', { children = { pools.one } }))",
        "native.route('failover', { children = { pools.one, pools.two } })",
        "native.route('ttl', { children = { pools.one }, ttl = '5' })"}) {
    load("mcp.attach(mcp.CMD_ANY_STORAGE, " + std::string(route) + ")");
    Outcome& outcome = send("set a 0 5 5\r\nvalue\r\n");
    EXPECT_EQ(stats_.buffer_bytes.get(), 5U) << route;
    expect_received(server_, "set a 0 5 5\r\nvalue\r\n");
    reply(server_, "STORED\r\n");
    ASSERT_TRUE(wait_for(outcome));
    EXPECT_EQ(outcome.bytes, "STORED\r\n");
    EXPECT_EQ(stats_.buffer_bytes.get(), 0U) << route;
  }
}

TEST_P(PassedGetsTest, RepliesThatWaitForOthersAreCounted) {
  load(R"(mcp.attach(mcp.CMD_ANY_STORAGE,
            native.route("allsync", { children = { pools.one, pools.two } })))");
  Outcome& all = send("get a\r\n");
  expect_received(server_, "get a\r\n");
  expect_received(second_, "get a\r\n");
  const std::string answer = item("a") + "END\r\n";
  reply(server_, answer);
  ASSERT_TRUE(run_until([&] { return stats_.buffer_bytes.get() == answer.size(); }));
  reply(second_, answer);
  ASSERT_TRUE(wait_for(all));
  EXPECT_EQ(stats_.buffer_bytes.get(), 0U);

  load(R"(mcp.attach(mcp.CMD_ANY_STORAGE, mcp.router_new({ map = {
            x = direct(pools.one), y = direct(pools.two) } })))");
  Outcome& outcome = send("get x/1 y/2\r\n");
  expect_received(server_, "get x/1\r\n");
  expect_received(second_, "get y/2\r\n");
  reply(server_, item("x/1") + "END\r\n");
  ASSERT_TRUE(run_until([&] { return stats_.buffer_bytes.get() == item("x/1").size(); }));
  reply(second_, "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
}

TEST_P(PassedGetsTest, AboveTheLimitOfMemoryNativeRoutesRefuseValuesToo) {
  load("mcp.attach(mcp.CMD_ANY_STORAGE, direct(pools.one))", RequestLimits{.buffer_bytes_max = 4});
  Outcome& first = send("set a 0 0 5\r\nvalue\r\n");
  Outcome& second = send("set b 0 0 5\r\nvalue\r\n");
  ASSERT_TRUE(second.is_done);
  EXPECT_EQ(second.bytes, "SERVER_ERROR out of memory\r\n");
  expect_received(server_, "set a 0 0 5\r\nvalue\r\n");
  reply(server_, "STORED\r\n");
  ASSERT_TRUE(wait_for(first));
  Outcome& third = send("set b 0 0 5\r\nvalue\r\n");
  expect_received(server_, "set b 0 0 5\r\nvalue\r\n");
  reply(server_, "STORED\r\n");
  ASSERT_TRUE(wait_for(third));
}

TEST_P(PassedGetsTest, FunctionsBelowNativeRoutesAreCounted) {
  load("mcp.attach(mcp.CMD_ANY_STORAGE, direct(direct(plain(pools.one), 'inner'), 'outer'))");
  EXPECT_EQ(funcs("plain"), 1);
  EXPECT_EQ(funcs("inner"), 1);
  EXPECT_EQ(funcs("outer"), 1);
  // A native route that is a handle of a function, too.
  load("mcp.attach(mcp.CMD_ANY_STORAGE, inspecting(direct(plain(pools.one), 'inner')))");
  EXPECT_EQ(funcs("inspecting"), 1);
  EXPECT_EQ(funcs("plain"), 1);
  EXPECT_EQ(funcs("inner"), 1);
  EXPECT_EQ(funcs("outer"), 0);
  load("mcp.attach(mcp.CMD_ANY_STORAGE, function(r) return 'END\\r\\n' end)");
  EXPECT_EQ(funcs("inspecting"), 0);
  EXPECT_EQ(funcs("plain"), 0);
  EXPECT_EQ(funcs("inner"), 0);
}

INSTANTIATE_TEST_SUITE_P(Engines, PassedGetsTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::lua
