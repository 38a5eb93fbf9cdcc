#include "lua/vm.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/check.h"

namespace kvferry::lua {
namespace {

/// Lua tells nobody when a cycle of its collector has ended; an object that is garbage in every
/// cycle does. Its finalizer counts, and makes the next one.
int on_cycle(lua_State* lua) {
  auto* runs = static_cast<std::uint64_t*>(lua_touserdata(lua, lua_upvalueindex(1)));
  ++*runs;
  lua_newuserdatauv(lua, 0, 0);
  lua_getmetatable(lua, 1);
  lua_setmetatable(lua, -2);
  return 0;
}

/// The budget of instructions is used up. From now on every further instruction raises, so that a
/// pcall in the script cannot go on for ever.
void on_instructions_used(lua_State* lua, lua_Debug* /*event*/) {
  lua_sethook(lua, &on_instructions_used, LUA_MASKCOUNT, 1);
  luaL_error(lua, "instruction budget of this request is used up (mcp.run_instruction_limit)");
}

int write_chunk(lua_State* /*lua*/, const void* bytes, std::size_t size, void* out) {
  static_cast<std::string*>(out)->append(static_cast<const char*>(bytes), size);
  return 0;
}

}  // namespace

Vm::Vm(const VmLimits& limits, void* owner)
    : limits_(limits),
      gc_runs_(std::make_unique<std::uint64_t>(0)),
      main_(lua_newstate(&Vm::allocate, this)) {
  KVF_CHECK(main_ != nullptr);
  *static_cast<void**>(lua_getextraspace(main_)) = owner;
  lua_atpanic(main_, &Vm::on_panic);
  luaL_openlibs(main_);
  watch_collector();
}

Vm::~Vm() {
  lua_close(main_);
}

void Vm::watch_collector() {
  lua_newuserdatauv(main_, 0, 0);
  lua_newtable(main_);
  lua_pushlightuserdata(main_, gc_runs_.get());
  lua_pushcclosure(main_, &on_cycle, 1);
  lua_setfield(main_, -2, "__gc");
  lua_setmetatable(main_, -2);
  lua_pop(main_, 1);
}

void* Vm::allocate(void* self, void* block, std::size_t old_size, std::size_t new_size) {
  Vm& vm = *static_cast<Vm*>(self);
  if (block == nullptr) {
    old_size = 0;  // Lua passes the kind of the object here.
  }
  // Lua's allocator is meant to be a realloc.
  // NOLINTBEGIN(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory)
  if (new_size == 0) {
    std::free(block);
    vm.used_bytes_ -= old_size;
    return nullptr;
  }
  if (new_size > old_size) {
    if (vm.used_bytes_ - old_size + new_size > vm.bytes_max_) {
      return nullptr;
    }
    const bool is_limited = vm.bytes_max_ != std::numeric_limits<std::size_t>::max();
    if (vm.fail_countdown_ != 0 && is_limited) {
      if (vm.fail_countdown_ == 1) {
        return nullptr;  // Every time: Lua collects its garbage and tries again.
      }
      --vm.fail_countdown_;
    }
  }
  void* moved = std::realloc(block, new_size);
  // NOLINTEND(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory)
  if (moved != nullptr) {
    vm.used_bytes_ = vm.used_bytes_ - old_size + new_size;
  }
  return moved;
}

int Vm::on_panic(lua_State* lua) {
  const char* text = lua_tostring(lua, -1);
  static_cast<void>(std::fprintf(stderr, "kvferry: Lua error outside of a script: %s\n",
                                 text == nullptr ? "(no text)" : text));
  return 0;  // Lua ends the process: this is our own mistake.
}

Vm::Run::Run(Vm& vm, lua_State* lua, Kind kind) noexcept
    : vm_(vm),
      lua_(lua),
      before_(vm.bytes_max_),
      is_hooked_(kind == Kind::Request && vm.limits_.run_instructions_max != 0) {
  if (is_hooked_) {
    // Lua counts down from here; coroutines that the script makes count for themselves.
    lua_sethook(lua, &on_instructions_used, LUA_MASKCOUNT,
                static_cast<int>(vm.limits_.run_instructions_max));
  }
  const std::size_t room =
      vm.limits_.vm_bytes_max - std::min(vm.used_bytes_, vm.limits_.vm_bytes_max);
  vm.bytes_max_ = vm.used_bytes_ + std::min(room, vm.limits_.run_bytes_max);
}

std::string dump_chunk(lua_State* lua) {
  std::string bytes;
  lua_dump(lua, &write_chunk, &bytes, 0);
  return bytes;
}

}  // namespace kvferry::lua
