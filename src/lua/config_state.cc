#include "lua/config_state.h"

#include "lua/constants.h"
#include "lua/log_line.h"
#include "lua/routelib.h"

namespace kvferry::lua {
namespace {

int add_traceback(lua_State* lua) {
  if (lua_type(lua, 1) == LUA_TSTRING) {
    luaL_traceback(lua, lua, lua_tostring(lua, 1), 1);
  }
  return 1;
}

std::string text_of_error(lua_State* lua) {
  return lua_type(lua, -1) == LUA_TSTRING ? std::string(text_at(lua, -1)) : "(null)";
}

base::Error failure(std::string_view what, std::string_view why) {
  return {base::ErrorCode::InvalidInput, std::string(what).append(why)};
}

}  // namespace

ConfigState::ConfigState(Setup setup)
    : setup_(std::move(setup)), vm_(setup_.limits, this), globals_(vm_.main()) {
  if (!setup_.profile_name.empty()) {
    vm_.profile_memory(setup_.profile_name);
  }
  lua_State* lua = vm_.main();
  lua_newtable(lua);
  define_constants(lua);
  define_config_functions(lua);
  setup_.start_argument.push(lua);
  lua_setfield(lua, -2, "start_arg");
  lua_setglobal(lua, "mcp");
}

base::Result<LoadedScripts> ConfigState::load(base::SteadyTime now) {
  globals_.save();
  settings_before_ = settings_;
  now_ = now;
  is_loading_ = true;
  base::Result<LoadedScripts> loaded = run(now);
  is_loading_ = false;
  lua_settop(vm_.main(), 0);
  if (!loaded) {
    revert();
  }
  return loaded;
}

base::Result<LoadedScripts> ConfigState::run(base::SteadyTime /*now*/) {
  LoadedScripts loaded;
  for (const std::string& name : setup_.files) {
    base::Result<CompiledFile> file = run_file(name);
    if (!file) {
      return std::move(file).error();
    }
    loaded.files.push_back(std::move(file).value());
  }
  lua_State* lua = vm_.main();
  if (lua_getglobal(lua, "mcp_config_pools") != LUA_TFUNCTION) {
    return failure("Configuration file missing 'mcp_config_pools' function", {});
  }
  if (auto done = call_protected(1, "Failed to execute mcp_config_pools: "); !done) {
    return std::move(done).error();
  }
  base::Result<ConfigValue> value = read_config_value(lua);
  if (!value) {
    return failure("Failed to execute mcp_config_pools: ", value.error().text());
  }
  loaded.value = std::move(value).value();
  loaded.active_request_limit = settings_.active_request_limit;
  loaded.buffer_memory_limit_bytes = settings_.buffer_memory_limit_bytes;
  loaded.gc_ratio = settings_.gc_ratio;
  loaded.vm_limits = settings_.vm_limits;
  loaded.user_counter_names = settings_.user_counter_names;
  if (!loaded.user_counter_names.empty()) {
    loaded.user_counters = loaded.user_counter_names.rbegin()->first + 1;
  }
  return loaded;
}

base::Result<CompiledFile> ConfigState::run_file(const std::string& name) {
  lua_State* lua = vm_.main();
  const bool is_library = is_routelib(name);
  const std::string_view text = is_library ? routelib_text() : std::string_view{};
  const int loaded = is_library ? luaL_loadbufferx(lua, text.data(), text.size(), "=routelib", "t")
                                : luaL_loadfilex(lua, name.c_str(), "t");
  if (loaded != LUA_OK) {
    return failure("Failed to load proxy_startfile: ", text_of_error(lua));
  }
  CompiledFile file{.name = "@" + name, .code = dump_chunk(lua), .is_library = is_library};
  if (auto done = call_protected(0, "Failed to load data into lua config state: "); !done) {
    return std::move(done).error();
  }
  return file;
}

/// Calls the function at the top of the stack, without arguments.
base::Result<void> ConfigState::call_protected(int results, std::string_view what) {
  lua_State* lua = vm_.main();
  const int function = lua_gettop(lua);
  lua_pushcfunction(lua, &add_traceback);
  lua_insert(lua, function);
  const Vm::Run run(vm_, lua, Vm::Run::Kind::Load);
  if (lua_pcall(lua, 0, results, function) != LUA_OK) {
    return failure(what, text_of_error(lua));
  }
  lua_remove(lua, function);
  return {};
}

void ConfigState::drop_cron(std::map<std::string, CronEntry, std::less<>>& entries) {
  for (auto& [name, entry] : entries) {
    luaL_unref(vm_.main(), LUA_REGISTRYINDEX, entry.function_ref);
  }
  entries.clear();
}

void ConfigState::revert() {
  globals_.restore();
  settings_ = std::move(settings_before_);
  drop_cron(next_cron_);
  lua_gc(vm_.main(), LUA_GCCOLLECT);
}

void ConfigState::settle() {
  globals_.forget();
  drop_cron(cron_);
  cron_ = std::move(next_cron_);
  next_cron_.clear();
  lua_gc(vm_.main(), LUA_GCCOLLECT);
}

void ConfigState::add_cron(lua_State* lua, std::string_view name, base::Seconds every,
                           bool reruns) {
  // Outside of a load (from a cron function) it counts at once.
  auto& entries = is_loading_ ? next_cron_ : cron_;
  CronEntry& entry = entries[std::string(name)];
  luaL_unref(lua, LUA_REGISTRYINDEX, entry.function_ref);
  entry.function_ref = luaL_ref(lua, LUA_REGISTRYINDEX);
  const auto before = cron_.find(name);
  const bool keeps_time = before != cron_.end() && before->second.every == every &&
                          before->second.next != base::SteadyTime{};
  entry.next = keeps_time ? before->second.next : now_ + every;
  entry.every = every;
  entry.reruns = reruns;
}

ConfigState::CronRuns ConfigState::run_cron(base::SteadyTime now) {
  now_ = now;
  CronRuns runs;
  std::vector<std::string> due;
  for (const auto& [name, entry] : cron_) {
    if (entry.next <= now) {
      due.push_back(name);
    }
  }
  lua_State* lua = vm_.main();
  for (const std::string& name : due) {
    const auto found = cron_.find(name);
    if (found == cron_.end()) {
      continue;
    }
    CronEntry& entry = found->second;
    lua_rawgeti(lua, LUA_REGISTRYINDEX, entry.function_ref);
    entry.next = now + entry.every;  // Late runs are not made up for.
    if (!entry.reruns) {
      luaL_unref(lua, LUA_REGISTRYINDEX, entry.function_ref);
      cron_.erase(found);
    }
    ++runs.runs;
    if (auto done = call_protected(0, {}); !done) {
      ++runs.fails;
      setup_.host->on_cron_error(one_line(done.error().text()));
    }
    lua_settop(lua, 0);
  }
  return runs;
}

}  // namespace kvferry::lua
