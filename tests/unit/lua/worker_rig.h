// A worker's Lua state with targets that the test answers for.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lua/config_state.h"
#include "lua/worker_state.h"
#include "tests/unit/route/native_rig.h"

namespace kvferry::lua {

/// Compiles `code` as the control thread does it.
inline CompiledFile compiled(const std::string& code) {
  lua_State* lua = luaL_newstate();
  KVF_CHECK(luaL_loadstring(lua, code.c_str()) == LUA_OK);
  CompiledFile file{.name = "@test.lua", .code = dump_chunk(lua)};
  lua_close(lua);
  return file;
}

class WorkerRig final : private PoolMaker, private ScriptEvents {
 public:
  WorkerRig() : state(setup()) {}

  /// Prepares and commits a load whose mcp_config_routes gets pools a, b and c.
  base::Result<void> load(const std::string& code) {
    base::Result<void> done = prepare(code);
    if (done) {
      state.commit();
    } else {
      state.abort();
    }
    return done;
  }
  base::Result<void> prepare(const std::string& code) {
    ScriptLoad load;
    load.files.push_back(compiled(code));
    ConfigValue::Table table;
    for (const char* name : {"a", "b", "c"}) {
      auto options = std::make_shared<pool::McpPoolOptions>();
      options->prefix = name;
      table.push_back(
          {.key = {std::string(name)}, .value = {ConfigValue::Pool(std::move(options))}});
    }
    load.value = ConfigValue{std::move(table)};
    load.vm_limits = vm_limits;
    load.user_counters = user_counters;
    return state.prepare(load);
  }
  test::Outcome& send(std::string_view bytes, const std::string& tag = {}) {
    return client.send(state.hooks().target(tag), bytes);
  }

  test::LoopRig rig{test::kEpoll};
  call::CallPool calls{rig.budget};
  test::RecordingSink client{calls, *rig.loop};
  route::FakeTarget local;
  std::map<std::string, route::FakeTarget> pools;
  ScriptStats stats;
  NameCounts names;
  VmLimits vm_limits;
  std::size_t user_counters = 0;
  std::vector<std::string> errors;
  std::vector<std::string> messages;
  bool is_watched = true;
  WorkerState state;

 private:
  /// A pool of a script: hands on to the target of its name.
  class Forwarder final : public call::Target {
   public:
    explicit Forwarder(call::Target& target) : target_(target) {}
    void send(call::Call& call, const memcache::Request& request) override {
      target_.send(call, request);
    }

   private:
    call::Target& target_;
  };

  WorkerState::Setup setup() {
    return {.loop = *rig.loop,
            .calls = calls,
            .local = local,
            .pools = *this,
            .events = *this,
            .stats = stats,
            .names = names,
            .start_argument = {},
            .limits = {}};
  }
  std::unique_ptr<call::Target> make_pool(const ConfigValue::Pool& pool) override {
    return std::make_unique<Forwarder>(pools[pool->prefix]);
  }
  void on_script_error(std::string_view text, std::string_view /*traceback*/) override {
    errors.emplace_back(text);
  }
  bool wants_messages() const override { return is_watched; }
  void on_message(std::string_view text) override { messages.emplace_back(text); }
  bool wants_requests() const override { return is_watched; }
  void on_request(std::string_view line) override { messages.emplace_back(line); }
};

}  // namespace kvferry::lua
