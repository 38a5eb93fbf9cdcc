// Gets of several keys, from a request to the client's reply, over sockets: two backends that
// answer from memory run on the same loop, so their cost and the kernel's are part of every figure.
//
//   pool       a pool of a YAML file, which asks each backend once
//   native     a native route of the route library over a pool of a script
//   plain      a function that only forwards: a request a key, placed in one pass
//   inspected  a function that looks at the reply: a coroutine a key
//
// `keys` in a get, `in_flight` gets at a time. Items are gets.

#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "lua/config_state.h"
#include "lua/worker_state.h"
#include "net/loop.h"
#include "pool/mcp_backends.h"
#include "pool/mcp_pool.h"
#include "pool/pool.h"
#include "protocol/memcache/request_parser.h"
#include "protocol/memcache/token_walker.h"

namespace kvferry {
namespace {

constexpr std::size_t kBackends = 2;
constexpr std::size_t kValueBytes = 100;

constexpr const char* kScript = R"(
local native = ...
function mcp_config_routes(pool)
  if form == "native" then
    mcp.attach(mcp.CMD_GET, native.route("direct", { children = { pool } }))
    return
  end
  local fg = mcp.funcgen_new()
  local h = fg:new_handle(pool)
  fg:ready({ n = "bench", f = function(rctx)
    if form == "plain" then
      return function(req) return rctx:enqueue_and_wait(req, h) end
    end
    return function(req)
      local res = rctx:enqueue_and_wait(req, h)
      if res:ok() then return res end
      return "SERVER_ERROR failed\r\n"
    end
  end })
  mcp.attach(mcp.CMD_GET, fg)
end)";

/// Answers every key of a get with a value.
class Backend final : public net::AcceptHandler {
 public:
  explicit Backend(net::Loop& loop) {
    auto made = loop.listen(net::Address::from_ip("127.0.0.1", 0).value(), {}, *this);
    KVF_CHECK(made.has_value());
    listener_ = std::move(made).value();
  }
  const net::Address& address() const { return listener_->address(); }

  void on_accepted(net::StreamPtr stream, const net::Address& /*from*/) override {
    peers_.push_back(std::make_unique<Peer>());
    peers_.back()->stream = std::move(stream);
    peers_.back()->stream->set_handler(*peers_.back());
  }

 private:
  struct Peer final : net::StreamHandler {
    void on_connected() override {}
    void on_end() override {}
    void on_closed(int /*error*/) override { stream.reset(); }
    void on_data(std::string_view bytes) override {
      input += bytes;
      std::size_t begin = 0;
      for (std::size_t end = input.find('\n'); end != std::string::npos;
           end = input.find('\n', begin)) {
        answer(std::string_view(input).substr(begin, end - 1 - begin));
        begin = end + 1;
      }
      input.erase(0, begin);
    }
    void answer(std::string_view line) {
      memcache::TokenWalker words(line);
      if (words.next() == "version") {
        stream->write("VERSION 1.6.45\r\n");
        return;
      }
      for (std::string_view key = words.next(); !key.empty(); key = words.next()) {
        stream->write("VALUE ");
        stream->write(key);
        stream->write(item);
      }
      stream->write("END\r\n");
    }

    net::StreamPtr stream;
    std::string input;
    std::string item =
        " 0 " + std::to_string(kValueBytes) + "\r\n" + std::string(kValueBytes, 'v') + "\r\n";
  };

  std::unique_ptr<net::Listener> listener_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

/// The local cache, which nothing goes to.
class Nobody final : public call::Target {
 public:
  void send(call::Call& /*call*/, const memcache::Request& /*request*/) override {
    KVF_CHECK(false);
  }
};

class Rig final : private lua::PoolMaker,
                  private lua::ScriptEvents,
                  private pool::McpEvents,
                  private pool::PoolEvents,
                  private call::ReplySink {
 public:
  /// `form` is one of the names above.
  Rig(const std::string& form, std::int64_t keys) {
    auto opened = net::Loop::open(net::LoopOptions{.io = net::Io::Epoll}, budget_);
    KVF_CHECK(opened.has_value());
    loop_ = std::move(opened).value();
    for (std::size_t i = 0; i < kBackends; ++i) {
      backends_.push_back(std::make_unique<Backend>(*loop_));
    }
    line_ = "get";
    for (std::int64_t i = 0; i < keys; ++i) {
      line_ += " some/key/of/usual/length:" + std::to_string(i);
    }
    line_ += "\r\n";
    request_ = memcache::RequestParser(memcache::ParserLimits{}).parse(line_).value();
    if (form == "pool") {
      make_pool();
    } else {
      make_script(form);
    }
    run(1);  // Connections are made.
  }
  ~Rig() {
    if (pool_ != nullptr) {
      pool_->shut();
    }
    state_.reset();
    while (mcp_backends_ != nullptr && !mcp_backends_->is_drained()) {
      loop_->run_turn(false);
    }
  }

  /// So many gets at a time, up to their replies.
  void run(std::int64_t in_flight) {
    left_ = in_flight;
    for (std::int64_t i = 0; i < in_flight; ++i) {
      call::Call& call = calls_.acquire();
      call.sink = this;
      call.command = memcache::Command::Get;
      call.reply_kind = memcache::ReplyKind::Retrieval;
      target_->send(call, request_);
    }
    while (left_ != 0) {
      loop_->run_turn(true);
    }
  }

 private:
  static pool::PlacementOptions placement() {
    pool::PlacementOptions options;
    options.hash = pool::HashKind::Xxh3;
    options.distribution = pool::DistributionKind::Jump;
    return options;
  }
  void make_pool() {
    auto snapshot = std::make_shared<pool::PoolSnapshot>();
    snapshot->options.placement = placement();
    for (std::size_t i = 0; i < kBackends; ++i) {
      pool::ServerOptions server;
      server.host = "127.0.0.1";
      server.port = backends_[i]->address().port();
      server.label = server.point_label = "b" + std::to_string(i);
      snapshot->options.servers.push_back(server);
      snapshot->addresses.push_back(backends_[i]->address());
      snapshot->health.push_back(std::make_shared<pool::BackendHealth>(1));
    }
    snapshot->placement = pool::Placement::make(placement(), snapshot->options.servers,
                                                std::vector<bool>(kBackends, true))
                              .value();
    pool_ = std::make_unique<pool::Pool>(
        pool::PoolContext{.loop = *loop_, .calls = calls_, .budget = budget_, .events = *this},
        snapshot);
    target_ = pool_.get();
  }
  void make_script(const std::string& form) {
    mcp_backends_ = std::make_unique<pool::McpBackends>(pool::McpContext{
        .loop = *loop_, .events = *this, .stats = mcp_stats_, .process_door = nullptr});
    state_ = std::make_unique<lua::WorkerState>(lua::WorkerState::Setup{.loop = *loop_,
                                                                        .calls = calls_,
                                                                        .local = nobody_,
                                                                        .pools = *this,
                                                                        .events = *this,
                                                                        .stats = stats_,
                                                                        .names = names_,
                                                                        .start_argument = {},
                                                                        .limits = {}});
    auto options = std::make_shared<pool::McpPoolOptions>();
    options->placement = placement();
    for (std::size_t i = 0; i < kBackends; ++i) {
      auto backend = std::make_shared<pool::McpBackendOptions>();
      backend->label = "b" + std::to_string(i);
      backend->host = "127.0.0.1";
      backend->port = std::to_string(backends_[i]->address().port());
      options->backends.push_back(std::move(backend));
    }
    const std::string text = "local form = '" + form + "'\n" + kScript;
    lua_State* lua = luaL_newstate();
    KVF_CHECK(luaL_loadstring(lua, text.c_str()) == LUA_OK);
    lua::ScriptLoad load;
    load.files.push_back(
        lua::CompiledFile{.name = "@bench", .code = lua::dump_chunk(lua), .is_library = true});
    lua_close(lua);
    load.value = lua::ConfigValue{std::shared_ptr<const pool::McpPoolOptions>(std::move(options))};
    load.vm_limits.run_instructions_max = lua::kRunInstructionsMax;
    KVF_CHECK(state_->prepare(load).has_value());
    state_->commit();
    target_ = &state_->hooks().target("");
  }

  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override {
    KVF_CHECK(!memcache::is_error(part.code));
    if (part.is_last) {
      calls_.release(call);
      --left_;
    }
    return call::Flow::Continue;
  }
  std::unique_ptr<call::Target> make_pool(const lua::ConfigValue::Pool& pool) override {
    return std::make_unique<pool::McpPool>(pool, *mcp_backends_);
  }
  void on_script_error(std::string_view /*text*/, std::string_view /*traceback*/) override {
    KVF_CHECK(false);
  }
  bool wants_messages() const override { return false; }
  void on_message(std::string_view /*text*/) override {}
  bool wants_requests() const override { return false; }
  void on_request(std::string_view /*line*/) override {}
  void on_backend_error(const pool::McpBackendOptions& /*backend*/, pool::McpFailure /*failure*/,
                        std::size_t /*depth*/, std::string_view /*unread*/) override {}
  void on_marked_bad(const pool::McpBackendOptions& /*backend*/, bool /*is_flapping*/,
                     base::Seconds /*pause*/) override {}
  void on_backend_down(const pool::PoolOptions& /*pool*/,
                       const pool::ServerOptions& /*server*/) override {}
  void on_backend_failure(const pool::PoolOptions& /*pool*/, const pool::ServerOptions& /*server*/,
                          const pool::Failure& /*failure*/) override {}

  base::MemoryBudget budget_{std::size_t{1} << 30};
  std::unique_ptr<net::Loop> loop_;
  call::CallPool calls_{budget_};
  std::vector<std::unique_ptr<Backend>> backends_;
  Nobody nobody_;
  std::string line_;
  memcache::Request request_;
  std::shared_ptr<pool::McpStats> mcp_stats_ = std::make_shared<pool::McpStats>();
  std::unique_ptr<pool::McpBackends> mcp_backends_;
  lua::ScriptStats stats_;
  lua::NameCounts names_;
  std::unique_ptr<lua::WorkerState> state_;
  std::unique_ptr<pool::Pool> pool_;
  call::Target* target_ = nullptr;
  std::int64_t left_ = 0;
};

void get(benchmark::State& state, const char* form) {
  Rig rig(form, state.range(0));
  const std::int64_t in_flight = state.range(1);
  for (auto _ : state) {
    rig.run(in_flight);
  }
  state.SetItemsProcessed(state.iterations() * in_flight);
}
BENCHMARK_CAPTURE(get, pool, "pool")->ArgNames({"keys", "in_flight"})->Args({10, 1600});
BENCHMARK_CAPTURE(get, native, "native")->ArgNames({"keys", "in_flight"})->Args({10, 1600});
BENCHMARK_CAPTURE(get, plain, "plain")->ArgNames({"keys", "in_flight"})->Args({10, 1600});
BENCHMARK_CAPTURE(get, inspected, "inspected")->ArgNames({"keys", "in_flight"})->Args({10, 1600});

}  // namespace
}  // namespace kvferry
