#include "net/timer.h"

#include <algorithm>
#include <bit>

namespace kvferry::net {

std::uint64_t TimerWheel::tick_at(base::SteadyTime now) const noexcept {
  return now <= start_ ? 0 : static_cast<std::uint64_t>((now - start_) / kTickLength);
}

void TimerWheel::arm(Timer& timer, base::SteadyTime at) noexcept {
  timer.unlink();
  // Rounded up: the tick begins when `at` has passed.
  const std::uint64_t tick =
      at <= start_ ? 0 : tick_at(at + kTickLength - base::SteadyTime::duration(1));
  timer.expires_tick_ = std::max(tick, tick_);
  const std::size_t slot = timer.expires_tick_ % kSlots;
  slots_[slot].push_back(timer);
  busy_[slot / kWordBits] |= std::uint64_t{1} << (slot % kWordBits);
}

std::uint64_t TimerWheel::next_busy_tick() noexcept {
  const std::size_t first = tick_ % kSlots;
  std::size_t word = first / kWordBits;
  // The first word is looked at twice: its upper bits first, its lower ones after a whole round.
  std::uint64_t bits = busy_[word] & (~std::uint64_t{0} << (first % kWordBits));
  for (std::size_t seen = 0; seen <= busy_.size();) {
    if (bits == 0) {
      ++seen;
      word = (word + 1) % busy_.size();
      bits = busy_[word];
      continue;
    }
    const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
    const std::size_t slot = word * kWordBits + bit;
    if (!slots_[slot].empty()) {
      return tick_ + (slot + kSlots - first) % kSlots;
    }
    bits &= bits - 1;
    busy_[word] &= ~(std::uint64_t{1} << bit);
  }
  return kNever;
}

void TimerWheel::run_slot(std::uint64_t tick) noexcept {
  TimerList& slot = slots_[tick % kSlots];
  TimerList due;
  for (Timer* timer = slot.front(); timer != nullptr;) {
    Timer* next = slot.next(*timer);
    if (timer->expires_tick_ <= tick) {
      timer->unlink();
      due.push_back(*timer);
    }
    timer = next;
  }
  // A callback may cancel others of this list, so take them one by one.
  while (Timer* timer = due.pop_front()) {
    timer->callback_();
  }
}

void TimerWheel::advance(base::SteadyTime now) noexcept {
  const std::uint64_t now_tick = tick_at(now);
  while (tick_ <= now_tick) {
    const std::uint64_t tick = next_busy_tick();
    if (tick > now_tick) {
      tick_ = now_tick + 1;
      return;
    }
    // What callbacks arm from here on goes to a later tick.
    tick_ = tick + 1;
    run_slot(tick);
  }
}

base::Millis TimerWheel::sleep_max(base::SteadyTime now) noexcept {
  const std::uint64_t tick = next_busy_tick();
  if (tick == kNever) {
    return base::Millis(-1);
  }
  const base::SteadyTime due = start_ + kTickLength * tick;
  if (due <= now) {
    return base::Millis(0);
  }
  return std::chrono::ceil<base::Millis>(due - now);
}

}  // namespace kvferry::net
