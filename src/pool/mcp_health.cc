#include "pool/mcp_health.h"

#include <algorithm>
#include <cmath>

namespace kvferry::pool {

base::Seconds mcp_flap_pause(const McpBackendOptions& options, std::uint32_t flaps) noexcept {
  const auto longest = static_cast<double>(options.flap_backoff_max.count());
  const double pause = static_cast<double>(options.retry_waittime.count()) *
                       std::pow(options.flap_backoff_ramp, static_cast<double>(flaps));
  // Also right when the power is beyond all numbers. Without any pause a backend that closes at
  // once would be connected to in a circle.
  return std::max(base::Seconds(static_cast<std::int64_t>(std::min(pause, longest))),
                  base::Seconds(1));
}

void McpHealth::on_validated(base::SteadyTime now) noexcept {
  failures_ = 0;
  is_bad_ = false;
  last_change_at_ = now;
}

McpHealth::Verdict McpHealth::on_failure(const McpBackendOptions& options, McpFailure failure,
                                         base::SteadyTime now) noexcept {
  const bool counts_flaps = options.flap_time.count() > 0;
  ++failures_;
  if (counts_flaps && is_flap_failure(failure)) {
    flaps_ = now - last_change_at_ <= options.flap_time ? flaps_ + 1 : 0;
  }
  last_change_at_ = now;
  Verdict verdict;
  verdict.is_flapping = counts_flaps && flaps_ > options.failure_limit;
  verdict.is_bad = verdict.is_flapping || failures_ > options.failure_limit;
  verdict.is_newly_bad = verdict.is_bad && !is_bad_;
  if (verdict.is_bad) {
    verdict.pause = verdict.is_flapping ? mcp_flap_pause(options, flaps_) : options.retry_waittime;
    is_bad_ = true;
  }
  return verdict;
}

}  // namespace kvferry::pool
