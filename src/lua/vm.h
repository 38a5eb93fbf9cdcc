// Vm: one Lua state, with a budget for memory.
//
// Threads: one. Errors: a script that goes over the budget gets Lua's own "not enough memory".
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include <lua.hpp>

namespace kvferry::lua {

/// What all objects of one state may take together, by default.
inline constexpr std::size_t kVmBytesMax = std::size_t{256} << 20;
/// By how much one run of a script (until it waits or ends) may make the state grow, by default.
inline constexpr std::size_t kRunBytesMax = std::size_t{64} << 20;

/// How many instructions of Lua one run may take, by default: some tenths of a second.
inline constexpr std::uint32_t kRunInstructionsMax = 20'000'000;

struct VmLimits {
  std::size_t vm_bytes_max = kVmBytesMax;
  std::size_t run_bytes_max = kRunBytesMax;
  std::uint32_t run_instructions_max = kRunInstructionsMax;  // 0: none.

  friend bool operator==(const VmLimits&, const VmLimits&) = default;
};

class Vm {
 public:
  /// A state with all standard libraries. `owner` is what owner_of() gives, in coroutines too.
  Vm(const VmLimits& limits, void* owner);
  ~Vm();
  Vm(const Vm&) = delete;
  Vm& operator=(const Vm&) = delete;

  lua_State* main() const { return main_; }
  template <typename Owner>
  static Owner& owner_of(lua_State* lua) {
    return **static_cast<Owner**>(lua_getextraspace(lua));
  }

  std::size_t used_bytes() const { return used_bytes_; }
  /// Cycles of the collector that have ended.
  std::uint64_t gc_runs() const { return *gc_runs_; }
  void set_limits(const VmLimits& limits) { limits_ = limits; }
  /// Lets the `n`-th allocation of scripts from now on fail, and all after it; for tests. 0: none.
  void fail_allocation_for_test(std::uint64_t n) { fail_countdown_ = n; }

  /// While it lives, script code runs on `lua`, and its budgets of memory and, when it serves
  /// requests, of instructions hold. Outside of it allocations do not fail: they are our own, and
  /// Lua would have nowhere to report that to.
  class Run {
   public:
    enum class Kind : std::uint8_t { Request, Load };
    Run(Vm& vm, lua_State* lua, Kind kind = Kind::Request) noexcept;
    ~Run() {
      vm_.bytes_max_ = before_;
      if (is_hooked_) {
        lua_sethook(lua_, nullptr, 0, 0);
      }
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

   private:
    Vm& vm_;
    lua_State* lua_;
    std::size_t before_;
    bool is_hooked_;
  };

 private:
  static void* allocate(void* self, void* block, std::size_t old_size, std::size_t new_size);
  static int on_panic(lua_State* lua);
  void watch_collector();

  VmLimits limits_;
  std::size_t used_bytes_ = 0;
  std::size_t bytes_max_ = std::numeric_limits<std::size_t>::max();
  std::uint64_t fail_countdown_ = 0;
  std::unique_ptr<std::uint64_t> gc_runs_;
  lua_State* main_ = nullptr;
};

/// The compiled form of a chunk, for other states. `chunk` is the function at the top of the stack.
std::string dump_chunk(lua_State* lua);

}  // namespace kvferry::lua
