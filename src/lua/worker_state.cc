#include "lua/worker_state.h"

#include <utility>

#include "call/answerer.h"
#include "lua/boxes.h"
#include "lua/config_state.h"
#include "lua/log_line.h"
#include "lua/native_hook.h"
#include "lua/router.h"
#include "lua/script_slot.h"

namespace kvferry::lua {

namespace {

constexpr std::size_t kTracebackBytesMax = 4096;

/// Message handler: adds a traceback to texts.
int add_traceback(lua_State* lua) {
  if (lua_type(lua, 1) == LUA_TSTRING) {
    luaL_traceback(lua, lua, lua_tostring(lua, 1), 1);
  }
  return 1;
}

std::string text_of_error(lua_State* lua, int index) {
  return lua_type(lua, index) == LUA_TSTRING ? std::string(text_at(lua, index)) : "(null)";
}

}  // namespace

WorkerState::WorkerState(const Setup& setup)
    : setup_(setup),
      local_(setup.local),
      vm_(setup.limits, this),
      globals_(vm_.main()),
      hooks_(setup.loop, setup.calls, setup.local, setup.stats),
      burial_(net::Task::Callback::to<&WorkerState::empty_graveyard>(this)) {
  if (!setup.profile_name.empty()) {
    vm_.profile_memory(setup.profile_name);
  }
  vm_.fail_allocation_for_test(setup.failing_allocation, Vm::Failing::Each);
  lua_State* lua = main();
  lua_newtable(lua);
  lua_newtable(lua);
  lua_pushliteral(lua, "v");
  lua_setfield(lua, -2, "__mode");
  lua_setmetatable(lua, -2);
  objects_ref_ = luaL_ref(lua, LUA_REGISTRYINDEX);
  shapes_ = std::make_unique<PlainShapes>(lua);
  define_api();
}

WorkerState::~WorkerState() {
  hooks_.clear();
  drop_staged();
  graveyard_.clear();
}

void LocalTarget::send(call::Call& call, const memcache::Request& request) {
  if (!can_run_locally(request.command)) {
    call.sink->on_reply(call, call::ReplyPart{.bytes = "SERVER_ERROR backend failure\r\n",
                                              .code = memcache::ReplyCode::ServerError,
                                              .is_first = true,
                                              .is_last = true,
                                              .origin = call::ReplyOrigin::Failure});
    return;
  }
  store_.send(call, request);
}

void WorkerState::define_api() {
  lua_State* lua = main();
  lua_newtable(lua);
  define_constants(lua);
  define_request(lua);
  define_reply(lua);
  define_tickets(lua);
  define_inspectors(lua);
  define_mutators(lua);
  define_context(lua);
  define_generator(lua);
  define_router(lua);
  define_worker_functions(lua, *this);
  define_placement_objects(lua);
  setup_.start_argument.push(lua);
  lua_setfield(lua, -2, "start_arg");
  lua_setglobal(lua, "mcp");
}

base::Result<void> WorkerState::prepare(const ScriptLoad& load) {
  drop_staged();
  globals_.save();
  base::Result<void> done = run_files(load);
  if (done) {
    done = run_routes(load);
  }
  lua_settop(main(), 0);
  next_limits_ = load.limits;
  next_shrink_ = load.shrink;
  next_vm_limits_ = load.vm_limits;
  next_gc_ratio_ = load.gc_ratio;
  next_counters_ =
      load.user_counters == 0 ? user_counters_ : std::make_shared<UserCounters>(load.user_counters);
  renamed_counters_ = load.renamed_counters;
  return done;
}

base::Result<void> WorkerState::run_files(const ScriptLoad& load) {
  lua_State* lua = main();
  for (const CompiledFile& file : load.files) {
    if (luaL_loadbufferx(lua, file.code.data(), file.code.size(), file.name.c_str(), "b") !=
        LUA_OK) {
      return base::Error(base::ErrorCode::InvalidInput,
                         "Failed to load data into worker thread: " + text_of_error(lua, -1));
    }
    if (file.is_library) {
      push_native_functions(lua);
    }
    if (auto done =
            call_protected(file.is_library ? 1 : 0, "Failed to load data into worker thread: ");
        !done) {
      return done;
    }
  }
  return {};
}

base::Result<void> WorkerState::run_routes(const ScriptLoad& load) {
  lua_State* lua = main();
  if (lua_getglobal(lua, "mcp_config_routes") != LUA_TFUNCTION) {
    return base::Error(base::ErrorCode::InvalidInput,
                       "Configuration file missing 'mcp_config_routes' function");
  }
  push_config_value(lua, load.value, *this);
  return call_protected(1, "Failed to execute mcp_config_routes: ");
}

base::Result<void> WorkerState::call_protected(int arguments, std::string_view what) {
  lua_State* lua = main();
  const int function = lua_gettop(lua) - arguments;
  lua_pushcfunction(lua, &add_traceback);
  lua_insert(lua, function);
  const Vm::Run run(vm_, lua, Vm::Run::Kind::Load);
  if (lua_pcall(lua, arguments, 0, function) != LUA_OK) {
    return base::Error(base::ErrorCode::InvalidInput, std::string(what) + text_of_error(lua, -1));
  }
  lua_settop(lua, function - 1);
  return {};
}

void WorkerState::commit() {
  hooks_.apply(staged_);
  hooks_.set_limits(next_limits_);
  vm_.set_limits(next_vm_limits_);
  lua_gc(main(), LUA_GCINC, static_cast<int>(next_gc_ratio_ * 100), 0, 0);
  shrink_ = next_shrink_;
  if (next_counters_ != user_counters_) {
    if (user_counters_ != nullptr) {
      next_counters_->copy_from(*user_counters_);
    }
    for (const std::size_t index : renamed_counters_) {
      next_counters_->reset(index);
    }
    user_counters_ = next_counters_;
  }
  drop_staged();
  globals_.forget();
  // What was replaced goes now rather than some time.
  lua_gc(main(), LUA_GCCOLLECT);
  keep_house();
}

void WorkerState::abort() {
  drop_staged();
  globals_.restore();  // What goes on running finds the functions that it was written with.
  lua_gc(main(), LUA_GCCOLLECT);
}

void WorkerState::keep_house() {
  setup_.stats.memory_bytes.set(vm_.used_bytes());
  setup_.stats.gc_runs.set(vm_.gc_runs());
}

void WorkerState::stage(lua_State* lua, StagedHook hook) {
  staged_.push_back(std::move(hook));
  staged_refs_.push_back(luaL_ref(lua, LUA_REGISTRYINDEX));
}

void WorkerState::drop_staged() {
  for (const int ref : staged_refs_) {
    luaL_unref(main(), LUA_REGISTRYINDEX, ref);
  }
  staged_refs_.clear();
  staged_.clear();
}

void WorkerState::register_object(lua_State* lua, const void* object) const {
  lua_rawgeti(lua, LUA_REGISTRYINDEX, objects_ref_);
  lua_pushvalue(lua, -2);
  lua_rawsetp(lua, -2, object);
  lua_pop(lua, 1);
}

void WorkerState::push_object(lua_State* lua, const void* object) const {
  lua_rawgeti(lua, LUA_REGISTRYINDEX, objects_ref_);
  lua_rawgetp(lua, -1, object);
  lua_remove(lua, -2);
}

void WorkerState::pin(const void* object) {
  lua_State* lua = current();
  push_object(lua, object);
  lua_rawsetp(lua, LUA_REGISTRYINDEX, object);
}

void WorkerState::unpin(const void* object) {
  lua_State* lua = current();
  lua_pushnil(lua);
  lua_rawsetp(lua, LUA_REGISTRYINDEX, object);
}

bool WorkerState::is_router(lua_State* lua, int index) {
  return router_at(lua, index) != nullptr;
}

void WorkerState::report_error(lua_State* lua) {
  const std::string text = text_of_error(lua, -1);
  lua_pop(lua, 1);
  setup_.events.on_script_error(one_line(text), text);
}

void WorkerState::report_script_error(lua_State* lua) {
  const std::string text = text_of_error(lua, -1);
  luaL_traceback(main(), lua, text.c_str(), 0);
  const std::string traceback(text_at(main(), -1).substr(0, kTracebackBytesMax));
  lua_pop(main(), 1);
  setup_.events.on_script_error(one_line(text), traceback);
}

bool WorkerState::is_sampled(std::uint32_t rate) {
  random_state_ ^= random_state_ << 13U;
  random_state_ ^= random_state_ >> 7U;
  random_state_ ^= random_state_ << 17U;
  return rate != 0 && random_state_ % rate == 0;
}

bool WorkerState::wants_sample(const route::RouteReply* reply, base::Millis deadline,
                               std::uint32_t rate, bool logs_errors) {
  if (logs_errors && reply != nullptr && !reply->is_ok()) {
    return true;
  }
  if (deadline.count() > 0 && reply != nullptr && reply->elapsed > deadline) {
    return true;
  }
  return is_sampled(rate);
}

void WorkerState::on_reply(const route::RouteReply& reply, const route::RouteRequest* request,
                           int client_fd) {
  if (reply.answerer == nullptr || !reply.answerer->logging.is_on ||
      !setup_.events.wants_requests()) {
    return;
  }
  const call::ReplyLogging& logging = reply.answerer->logging;
  const bool is_plain = !logging.logs_errors && logging.deadline.count() == 0 && logging.rate == 0;
  if (wants_sample(&reply, logging.deadline, is_plain ? 1 : logging.rate, logging.logs_errors)) {
    setup_.events.on_request(compose_request_line(&reply, request, logging.tag, client_fd));
  }
}

int WorkerState::running_fd() const {
  return current_slot_ == nullptr ? 0 : current_slot_->context().client_fd();
}

void WorkerState::bury(std::unique_ptr<ScriptSlot> slot) {
  graveyard_.push_back(std::move(slot));
  if (!burial_.is_queued()) {
    setup_.loop.defer(burial_);
  }
}

void WorkerState::empty_graveyard() {
  graveyard_.clear();
}

StartArgument StartArgument::parse(const std::string* given) {
  StartArgument argument;
  if (given == nullptr) {
    return argument;
  }
  if (given->find(':') == std::string::npos) {
    argument.kind = Kind::Text;
    argument.text = *given;
    return argument;
  }
  argument.kind = Kind::Table;
  std::string_view rest = *given;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    // Pieces between underscores that hold nothing do not count.
    std::vector<std::string_view> pieces;
    for (std::string_view left = part; !left.empty();) {
      const std::string_view piece = left.substr(0, left.find('_'));
      left.remove_prefix(std::min(piece.size() + 1, left.size()));
      if (!piece.empty()) {
        pieces.push_back(piece);
      }
    }
    if (!pieces.empty()) {
      argument.entries.push_back(Entry{.key = std::string(pieces[0]),
                                       .value = std::string(pieces.size() > 1 ? pieces[1] : ""),
                                       .has_value = pieces.size() > 1});
    }
  }
  return argument;
}

void StartArgument::push(lua_State* lua) const {
  switch (kind) {
    case Kind::None:
      lua_pushboolean(lua, 0);
      return;
    case Kind::Text:
      push_text(lua, text);
      return;
    case Kind::Table:
      lua_newtable(lua);
      for (const Entry& entry : entries) {
        push_text(lua, entry.key);
        if (entry.has_value) {
          push_text(lua, entry.value);
        } else {
          lua_pushboolean(lua, 1);
        }
        lua_rawset(lua, -3);
      }
      return;
  }
}

}  // namespace kvferry::lua
