#include "lua/watchdog.h"

#include <cerrno>
#include <csignal>
#include <unistd.h>

namespace kvferry::lua {
namespace {

constexpr int kSignal = SIGVTALRM;

}  // namespace

Watchdog::~Watchdog() {
  if (is_open_) {
    // A signal that is on its way comes before this returns.
    static_cast<void>(timer_delete(timer_));
  }
}

bool Watchdog::open() noexcept {
  struct sigaction action{};
  action.sa_sigaction = &Watchdog::on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kSignal;
  event.sigev_value.sival_ptr = this;
  event._sigev_un._tid = gettid();
  // The handler is that of the process, and always the same one.
  is_open_ = kCanWatch && sigaction(kSignal, &action, nullptr) == 0 &&
             timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) == 0;
  return is_open_;
}

bool Watchdog::arm() noexcept {
  if (!is_open_ && !open()) {
    return false;
  }
  itimerspec when{};
  when.it_value.tv_nsec = std::chrono::nanoseconds(kWatchPeriod).count();
  return timer_settime(timer_, 0, &when, nullptr) == 0;
}

void Watchdog::on_signal(int /*number*/, siginfo_t* info, void* /*context*/) {
  if (info->si_code != SI_TIMER) {
    return;  // Sent by somebody else.
  }
  const int error = errno;
  static_cast<Watchdog*>(info->si_value.sival_ptr)->on_period_();
  errno = error;
}

}  // namespace kvferry::lua
