// Link: what its one timer is for. Down: the next attempt. Connecting: connect_timeout. Up: the
// timeout of the front call, or, while that is paused, the notice that others wait behind it.
#include <algorithm>
#include <cerrno>

#include "pool/link.h"

namespace kvferry::pool {

using call::Call;

void Link::on_timer() {
  switch (phase_) {
    case Phase::Down:
      if (!is_retired_ && host_.wants_reconnect()) {
        connect();
      }
      return;
    case Phase::Connecting:
      fail(Failure{.kind = FailureKind::ConnectTimeout, .error = ETIMEDOUT, .may_have_run = false});
      return;
    case Phase::Up:
      if (is_paused_) {
        on_stalled();
      } else {
        check_head_timeout();
      }
      return;
  }
}

void Link::on_stalled() {
  host_.on_link_stalled(*this);
  loop_.timers().arm(timer_, loop_.now() + kStallNotice);
  Call& front = *calls_.front();
  for (const Call* call = front.next_at_target; call != nullptr; call = call->next_at_target) {
    if (call->lane != front.lane) {
      front.sink->on_blocked(front);
      return;
    }
  }
}

/// How long the front call may wait; none: for ever. Even a pool without a timeout does not wait
/// for ever for a backend that takes no more of a body: others wait for this connection.
std::optional<base::Millis> Link::head_time_max() const {
  const PoolOptions& options = host_.options();
  if (!options.timeout && upload_ != nullptr && is_upload_paused_) {
    return options.body_timeout;
  }
  return options.timeout;
}

void Link::arm_reply_timer() {
  const auto timeout = head_time_max();
  const Call* head = calls_.front();
  if (!timeout || head == nullptr) {
    return;
  }
  const auto waited = base::Millis(static_cast<std::int32_t>(now_ms() - head->sent_at_ms));
  const base::Millis left = *timeout - waited;
  loop_.timers().arm(timer_, loop_.now() + std::max(left, base::Millis(0)));
}

void Link::check_head_timeout() {
  const auto timeout = head_time_max();
  const Call* head = calls_.front();
  if (!timeout || head == nullptr) {
    return;  // Armed again by the next commit().
  }
  if (head == upload_ && !is_upload_paused_) {
    // The backend waits for the client's next bytes; the time is not its own.
    loop_.timers().arm(timer_, loop_.now() + *timeout);
    return;
  }
  const auto waited = base::Millis(static_cast<std::int32_t>(now_ms() - head->sent_at_ms));
  if (waited >= *timeout) {
    fail(Failure{.kind = FailureKind::Timeout, .error = ETIMEDOUT, .may_have_run = true});
  } else {
    arm_reply_timer();
  }
}

}  // namespace kvferry::pool
