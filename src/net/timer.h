// Timers: a hashed wheel, since nearly all timers are cancelled or pushed back before they expire.
//
// Units:     one tick is kTickLength; a timer never fires early and at most one tick plus one loop
// turn late.
// Lifetime:  a Timer is a member of its user and leaves the wheel when destroyed.
// Threads:   that of the loop.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/delegate.h"
#include "base/intrusive_list.h"

namespace kvferry::net {

class TimerWheel;
struct TimerTag;

class Timer : private base::ListHook<TimerTag> {
 public:
  using Callback = base::Delegate<void()>;

  explicit Timer(Callback callback) noexcept : callback_(callback) {}
  ~Timer() { cancel(); }

  bool is_armed() const noexcept { return is_linked(); }
  /// Does nothing when not armed.
  void cancel() noexcept { unlink(); }

 private:
  friend class TimerWheel;
  template <typename T, typename Tag>
  friend class base::List;
  Callback callback_;
  std::uint64_t expires_tick_ = 0;
};

class TimerWheel {
 public:
  static constexpr base::Millis kTickLength{4};

  explicit TimerWheel(base::SteadyTime now) noexcept : start_(now) {}

  /// Arms `timer`, or moves it when it is armed, to fire once `now` has reached `at`.
  void arm(Timer& timer, base::SteadyTime at) noexcept;
  /// Fires what has expired. A callback may arm and cancel any timer, its own included.
  void advance(base::SteadyTime now) noexcept;
  /// How long the loop may sleep: no longer than until the next timer is due. Negative: no timer is
  /// armed. Timers further than one round of the wheel away may shorten it to that round.
  base::Millis sleep_max(base::SteadyTime now) noexcept;

 private:
  static constexpr std::size_t kSlots = 1024;
  static constexpr std::size_t kWordBits = 64;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  using TimerList = base::List<Timer, TimerTag>;

  std::uint64_t tick_at(base::SteadyTime now) const noexcept;
  /// The first tick from tick_ on whose slot holds a timer; kNever when all slots are empty.
  std::uint64_t next_busy_tick() noexcept;
  void run_slot(std::uint64_t tick) noexcept;

  base::SteadyTime start_;
  std::uint64_t tick_ = 0;  // Everything due before this tick has fired.
  // A bit is set when a timer enters the slot, and cleared by whoever finds the slot empty later:
  // cancelling does not know the wheel.
  std::array<std::uint64_t, kSlots / kWordBits> busy_{};
  std::array<TimerList, kSlots> slots_;
};

}  // namespace kvferry::net
