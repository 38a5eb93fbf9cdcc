#include "app/store_clock.h"

#include <chrono>

#include "base/clock.h"

namespace kvferry::app {
namespace {

std::int64_t wall_seconds() noexcept {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<base::Seconds>(now).count();
}

}  // namespace

store::Instant StoreClock::now() const noexcept {
  const std::int64_t paused_at = paused_at_.load(std::memory_order_relaxed);
  const std::int64_t seconds = paused_at == kRunning ? wall_seconds() : paused_at;
  return store::Instant(
      static_cast<std::uint32_t>(seconds + shift_seconds_.load(std::memory_order_relaxed)));
}

void StoreClock::shift(std::int64_t seconds) noexcept {
  shift_seconds_.fetch_add(seconds, std::memory_order_relaxed);
}

void StoreClock::pause() noexcept {
  paused_at_.store(wall_seconds(), std::memory_order_relaxed);
}

void StoreClock::resume() noexcept {
  paused_at_.store(kRunning, std::memory_order_relaxed);
}

}  // namespace kvferry::app
