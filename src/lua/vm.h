// Vm: one Lua state, with budgets for memory and for instructions.
//
// Lua counts instructions at the price of a function call for each, so with the budgets that are
// usual nothing is counted until a watchdog has seen a run go on for long:
//
//   run begins -> 50 to 100 ms of processor time -> instructions count -> budget used up: errors
//                                                                         until the run is over
//
// Threads: one. Errors: a script that goes over its memory gets Lua's own "not enough memory".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include <lua.hpp>

#include "lua/memory_profile.h"
#include "lua/watchdog.h"

namespace kvferry::lua {

/// What all objects of one state may take together, by default.
inline constexpr std::size_t kVmBytesMax = std::size_t{256} << 20;
/// By how much one run of a script (until it waits or ends) may make the state grow, by default.
inline constexpr std::size_t kRunBytesMax = std::size_t{64} << 20;

/// How many instructions of Lua one run may take, by default: some tenths of a second.
inline constexpr std::uint32_t kRunInstructionsMax = 20'000'000;
/// Budgets below this are counted from the first instruction on; others take longer than the
/// watchdog needs to see a run.
inline constexpr std::uint32_t kWatchedInstructionsMin = 10'000'000;
/// Coroutines that scripts make count in steps of this.
inline constexpr std::uint32_t kCoroutineInstructionsStep = 1000;

/// Allocations can be made to fail where KVF_DCHECK checks.
#ifdef NDEBUG
inline constexpr bool kCanFailAllocations = false;
#else
inline constexpr bool kCanFailAllocations = true;
#endif

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
  /// What the last allocation gave: what Lua made last, as far as that tells.
  const void* last_block() const { return last_block_; }
  /// Cycles of the collector that have ended.
  std::uint64_t gc_runs() const { return *gc_runs_; }
  void set_limits(const VmLimits& limits) { limits_ = limits; }
  /// From now on counts what is allocated, by kind; `name` is that of the state.
  void profile_memory(std::string name) {
    profile_ = std::make_unique<MemoryProfile>(std::move(name));
  }
  /// MemoryProfile::take_line(); empty when nothing is counted.
  std::string take_profile_line() {
    return profile_ == nullptr ? std::string() : profile_->take_line();
  }
  /// Where the budget of instructions is used up. Until the run is over every further instruction
  /// raises, so that a pcall in the script cannot go on for ever.
  [[noreturn]] static void on_used_up(lua_State* lua);
  /// A coroutine that a script has made is at a step of its count.
  static void on_coroutine_step(lua_State* lua, lua_Debug* event);
  /// Which allocations of scripts fail, where kCanFailAllocations; the second try that Lua makes
  /// after it has collected its garbage counts with the first.
  enum class Failing : std::uint8_t {
    One,  // Memory is there again for what follows, such as the error.
    AllAfter,
    // Memory is there again for what follows, until the next n-th one; loads are left alone.
    Each,
  };
  /// Lets the `n`-th allocation of scripts from now on fail; 0: none any more.
  void fail_allocation_for_test(std::uint64_t n, Failing failing = Failing::AllAfter) {
    fault_ = Fault{.countdown = n, .each = n, .failing = failing};
  }
  /// Whether one has failed since.
  bool has_failed_for_test() const { return fault_.has_failed; }

  /// While it lives, script code runs on `lua`, and its budgets of memory and, when it serves
  /// requests, of instructions hold. Outside of it allocations do not fail: they are our own, and
  /// Lua would have nowhere to report that to.
  class Run {
   public:
    enum class Kind : std::uint8_t { Request, Load };
    Run(Vm& vm, lua_State* lua, Kind kind = Kind::Request) noexcept;
    ~Run() {
      vm_.bytes_max_ = before_;
      vm_.run_.store(outer_, std::memory_order_relaxed);
      // Once it is out of the list the watchdog does not touch it.
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (is_hooked_) [[unlikely]] {
        stop_counting();
      }
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    /// Whether the script was stopped for its instructions. Its coroutine is of no use any more:
    /// Lua leaves hooks off in one that an error in a hook has ended.
    bool is_used_up() const { return is_used_up_; }

   private:
    friend class Vm;
    void count() noexcept;
    void stop_counting() noexcept;
    /// Whether a run that this one is part of has its coroutine count.
    bool is_counted_outside() const noexcept;

    Vm& vm_;
    lua_State* lua_;
    Run* outer_;  // That this one is part of.
    std::size_t before_;
    std::uint64_t coroutine_instructions_ = 0;  // Of coroutines that the script has made.
    bool is_bounded_;                           // By instructions.
    bool is_hooked_ = false;
    bool is_used_up_ = false;
  };

  /// While it lives, a run is interrupted by work of our own: other requests are sent on, finished,
  /// reported. Its allocations must not fail in the name of the script, which would raise errors
  /// through our frames.
  class Pause {
   public:
    explicit Pause(Vm& vm) noexcept
        : vm_(vm), before_(std::exchange(vm.bytes_max_, std::numeric_limits<std::size_t>::max())) {}
    ~Pause() { vm_.bytes_max_ = before_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Vm& vm_;
    std::size_t before_;
  };

 private:
  static void* allocate(void* self, void* block, std::size_t old_size, std::size_t new_size);
  static int on_panic(lua_State* lua);
  void watch_collector();
  void begin_outermost(bool is_bounded) noexcept;
  /// The innermost that has a budget; null when none has.
  Run* bounded_run() const noexcept;
  void on_watch_period() noexcept;

  VmLimits limits_;
  std::size_t used_bytes_ = 0;
  std::size_t bytes_max_ = std::numeric_limits<std::size_t>::max();
  struct Fault {
    std::uint64_t countdown = 0;  // At 1 the next one fails; 0: none.
    std::uint64_t each = 0;       // Where the countdown begins again.
    Failing failing = Failing::AllAfter;
    bool has_failed = false;
  };
  bool is_to_fail() noexcept;
  Fault fault_;
  const void* last_block_ = nullptr;
  // What follows is read and written by the watchdog too, between any two instructions.
  std::atomic<Run*> run_{nullptr};             // The innermost.
  std::atomic<std::uint64_t> serial_{0};       // Of the outermost run.
  std::atomic<std::uint64_t> seen_serial_{0};  // That of the run when the watchdog was armed.
  std::atomic<bool> is_watched_{false};
  std::atomic<bool> is_counting_{false};
  bool can_watch_ = kCanWatch;
  std::unique_ptr<std::uint64_t> gc_runs_;
  std::unique_ptr<MemoryProfile> profile_;  // Null: nothing is counted.
  lua_State* main_ = nullptr;
  Watchdog watchdog_;
};

/// The compiled form of a chunk, for other states. `chunk` is the function at the top of the stack.
std::string dump_chunk(lua_State* lua);

}  // namespace kvferry::lua
