#include "lua/vm.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/check.h"

#if defined(__SANITIZE_THREAD__)
/// Debian's Lua is hardened: it leaves by this function, which ThreadSanitizer does not know, so
/// each error and each yield left frames on the stack that it keeps, and everything became slower
/// with every request.
extern "C" [[noreturn]] void __longjmp_chk(jmp_buf place, int value) {
  longjmp(place, value);
}
#endif

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

Vm& vm_of(lua_State* lua) {
  void* vm = nullptr;
  lua_getallocf(lua, &vm);
  return *static_cast<Vm*>(vm);
}

void on_instructions_used(lua_State* lua, lua_Debug* /*event*/) {
  Vm::on_used_up(lua);
}

// Coroutines that scripts make do not inherit a hook that is not set yet, and the watchdog knows
// nothing of them. So they always count.

void count_in_coroutine(lua_State* coroutine) {
  if (coroutine != nullptr) {
    lua_sethook(coroutine, &Vm::on_coroutine_step, LUA_MASKCOUNT,
                static_cast<int>(kCoroutineInstructionsStep));
  }
}

/// coroutine.create; Lua's own is the upvalue.
int create_coroutine(lua_State* lua) {
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, lua_gettop(lua) - 1, 1);
  count_in_coroutine(lua_tothread(lua, -1));
  return 1;
}

/// coroutine.wrap.
int wrap_coroutine(lua_State* lua) {
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, lua_gettop(lua) - 1, 1);
  if (lua_getupvalue(lua, -1, 1) != nullptr) {
    count_in_coroutine(lua_tothread(lua, -1));
    lua_pop(lua, 1);
  }
  return 1;
}

void replace_coroutine_functions(lua_State* lua) {
  lua_getglobal(lua, LUA_COLIBNAME);
  lua_getfield(lua, -1, "create");
  lua_pushcclosure(lua, &create_coroutine, 1);
  lua_setfield(lua, -2, "create");
  lua_getfield(lua, -1, "wrap");
  lua_pushcclosure(lua, &wrap_coroutine, 1);
  lua_setfield(lua, -2, "wrap");
  lua_pop(lua, 1);
}

int write_chunk(lua_State* /*lua*/, const void* bytes, std::size_t size, void* out) {
  static_cast<std::string*>(out)->append(static_cast<const char*>(bytes), size);
  return 0;
}

}  // namespace

Vm::Vm(const VmLimits& limits, void* owner)
    : limits_(limits),
      gc_runs_(std::make_unique<std::uint64_t>(0)),
      main_(lua_newstate(&Vm::allocate, this)),
      watchdog_(Watchdog::Callback::to<&Vm::on_watch_period>(this)) {
  KVF_CHECK(main_ != nullptr);
  *static_cast<void**>(lua_getextraspace(main_)) = owner;
  lua_atpanic(main_, &Vm::on_panic);
  luaL_openlibs(main_);
  replace_coroutine_functions(main_);
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
  if (vm.profile_ != nullptr) [[unlikely]] {
    vm.profile_->note(block, old_size, new_size);
  }
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
    if (kCanFailAllocations && vm.is_to_fail()) [[unlikely]] {
      return nullptr;
    }
  }
  void* moved = std::realloc(block, new_size);
  // NOLINTEND(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory)
  if (moved != nullptr) {
    vm.last_block_ = moved;
    vm.used_bytes_ = vm.used_bytes_ - old_size + new_size;
  }
  return moved;
}

bool Vm::is_to_fail() noexcept {
  // Outside of scripts allocations do not fail.
  if (fault_.countdown == 0 || bytes_max_ == std::numeric_limits<std::size_t>::max()) {
    return false;
  }
  const bool fails_each = fault_.failing == Failing::Each;
  if (fails_each && bounded_run() == nullptr) {
    return false;  // A load.
  }
  if (fault_.countdown > 1) {
    --fault_.countdown;
    return false;
  }
  if (!std::exchange(fault_.has_failed, true)) {
    return true;
  }
  // Lua has collected its garbage and tries again, for the last time.
  if (fails_each) {
    fault_ = Fault{.countdown = fault_.each, .each = fault_.each, .failing = Failing::Each};
  } else if (fault_.failing == Failing::One) {
    fault_.countdown = 0;
  }
  return true;
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
      outer_(vm.run_.load(std::memory_order_relaxed)),
      before_(vm.bytes_max_),
      is_bounded_(kind == Kind::Request && vm.limits_.run_instructions_max != 0) {
  if (outer_ == nullptr) {
    vm.begin_outermost(is_bounded_);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  vm.run_.store(this, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (vm.is_counting_.load(std::memory_order_relaxed)) [[unlikely]] {
    count();
  }
  const std::size_t room =
      vm.limits_.vm_bytes_max - std::min(vm.used_bytes_, vm.limits_.vm_bytes_max);
  vm.bytes_max_ = vm.used_bytes_ + std::min(room, vm.limits_.run_bytes_max);
}

bool Vm::Run::is_counted_outside() const noexcept {
  for (const Run* outer = outer_; outer != nullptr; outer = outer->outer_) {
    if (outer->lua_ == lua_ && outer->is_hooked_) {
      return true;
    }
  }
  return false;
}

/// Lets the coroutine count down from the budget, unless it does so already.
void Vm::Run::count() noexcept {
  if (is_bounded_ && !is_hooked_ && !is_counted_outside()) {
    is_hooked_ = true;
    lua_sethook(lua_, &on_instructions_used, LUA_MASKCOUNT,
                static_cast<int>(vm_.limits_.run_instructions_max));
  }
}

void Vm::Run::stop_counting() noexcept {
  if (!is_counted_outside()) {
    lua_sethook(lua_, nullptr, 0, 0);
  } else if (is_used_up_) {
    lua_sethook(lua_, &on_instructions_used, LUA_MASKCOUNT,
                static_cast<int>(vm_.limits_.run_instructions_max));
  }
  if (outer_ == nullptr) {
    vm_.is_counting_.store(false, std::memory_order_relaxed);
  }
}

void Vm::begin_outermost(bool is_bounded) noexcept {
  serial_.store(serial_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const bool is_watchable = can_watch_ && limits_.run_instructions_max >= kWatchedInstructionsMin;
  is_counting_.store(is_bounded && !is_watchable, std::memory_order_relaxed);
  if (is_bounded && is_watchable && !is_watched_.load(std::memory_order_relaxed)) [[unlikely]] {
    seen_serial_.store(serial_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    is_watched_.store(true, std::memory_order_relaxed);
    can_watch_ = watchdog_.arm();
    is_counting_.store(!can_watch_, std::memory_order_relaxed);
  }
}

/// The thread has used a period of processor time since the watchdog was armed.
void Vm::on_watch_period() noexcept {
  const Run* outermost = run_.load(std::memory_order_relaxed);
  while (outermost != nullptr && outermost->outer_ != nullptr) {
    outermost = outermost->outer_;
  }
  const std::uint64_t serial = serial_.load(std::memory_order_relaxed);
  if (outermost == nullptr || !outermost->is_bounded_ ||
      is_counting_.load(std::memory_order_relaxed)) {
    is_watched_.store(false, std::memory_order_relaxed);  // The next run arms it again.
  } else if (seen_serial_.exchange(serial, std::memory_order_relaxed) != serial) {
    watchdog_.arm();  // This run has begun meanwhile.
  } else {
    is_watched_.store(false, std::memory_order_relaxed);
    is_counting_.store(true, std::memory_order_relaxed);
    for (Run* each = run_.load(std::memory_order_relaxed); each != nullptr; each = each->outer_) {
      each->count();
    }
  }
}

void Vm::on_used_up(lua_State* lua) {
  if (Run* const run = vm_of(lua).bounded_run(); run != nullptr) {
    run->is_used_up_ = true;
    run->is_hooked_ = true;
    lua_sethook(run->lua_, &on_instructions_used, LUA_MASKCOUNT, 1);
  }
  lua_sethook(lua, &on_instructions_used, LUA_MASKCOUNT, 1);
  luaL_error(lua, "instruction budget of this request is used up (mcp.run_instruction_limit)");
  __builtin_unreachable();
}

void Vm::on_coroutine_step(lua_State* lua, lua_Debug* /*event*/) {
  const Vm& vm = vm_of(lua);
  Run* const run = vm.bounded_run();
  if (run == nullptr || !vm.is_counting_.load(std::memory_order_relaxed)) {
    return;
  }
  run->coroutine_instructions_ += kCoroutineInstructionsStep;
  if (run->is_used_up_ || run->coroutine_instructions_ > vm.limits_.run_instructions_max) {
    on_used_up(lua);
  }
}

Vm::Run* Vm::bounded_run() const noexcept {
  Run* run = run_.load(std::memory_order_relaxed);
  while (run != nullptr && !run->is_bounded_) {
    run = run->outer_;
  }
  return run;
}

std::string dump_chunk(lua_State* lua) {
  std::string bytes;
  lua_dump(lua, &write_chunk, &bytes, 0);
  return bytes;
}

}  // namespace kvferry::lua
