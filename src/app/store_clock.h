// StoreClock: the time of the embedded store, which tests may move.
//
// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>

#include "store/instant.h"

namespace kvferry::app {

class StoreClock {
 public:
  /// Seconds of the calendar, moved by what shift() was told.
  store::Instant now() const noexcept;

  // For tests (`debugtime`).
  void shift(std::int64_t seconds) noexcept;
  void pause() noexcept;
  void resume() noexcept;

 private:
  static constexpr std::int64_t kRunning = -1;

  std::atomic<std::int64_t> shift_seconds_{0};
  std::atomic<std::int64_t> paused_at_{kRunning};  // Unmoved time, or kRunning.
};

}  // namespace kvferry::app
