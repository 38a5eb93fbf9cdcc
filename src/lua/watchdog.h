// Watchdog: interrupts its thread when that has used a period of processor time.
//
// A thread that is busy with one thing cannot look at a clock, and counting what it does costs too
// much. So the kernel does it: a timer on the thread's processor time sends SIGVTALRM to the thread
// itself. A thread that sleeps uses no time, so nothing wakes it.
//
// Threads: arm() and destruction on one thread. The callback runs there too, between any two
//          instructions: it may touch lock-free atomics and what is documented as safe in signal
//          handlers, such as lua_sethook().
#pragma once

#include <chrono>
#include <csignal>
#include <ctime>

#include "base/delegate.h"

namespace kvferry::lua {

inline constexpr std::chrono::milliseconds kWatchPeriod{50};

// ThreadSanitizer holds signals back until the next call into the C library, which a loop in a
// script may never make.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kCanWatch = false;
#else
inline constexpr bool kCanWatch = true;
#endif

class Watchdog {
 public:
  using Callback = base::Delegate<void()>;

  explicit Watchdog(Callback on_period) : on_period_(on_period) {}
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Lets the callback come once, after kWatchPeriod. False: the system has no such timer for us.
  bool arm() noexcept;

 private:
  bool open() noexcept;
  static void on_signal(int number, siginfo_t* info, void* context);

  Callback on_period_;
  timer_t timer_{};
  bool is_open_ = false;
};

}  // namespace kvferry::lua
