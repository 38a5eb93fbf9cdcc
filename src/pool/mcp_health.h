// McpHealth: whether one connection of a script's backend may be used, and how long it rests.
//
// Failures in a row are counted until a connection is validated. Beside that, connections that end
// soon after they were made are counted as flapping; a connection that lasts resets that count.
//
// Pure: failures and the time go in, decisions come out.
// Source:    docs/lua.md, "Backends".
// Threads:   one.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "pool/mcp_failure.h"
#include "pool/mcp_options.h"

namespace kvferry::pool {

class McpHealth {
 public:
  struct Verdict {
    bool is_bad = false;        // Rest for `pause`; otherwise connect again at once.
    bool is_newly_bad = false;  // It was not bad before.
    bool is_flapping = false;   // That is the reason.
    base::Seconds pause{0};
  };

  /// A connection was made and has answered the question for the version.
  void on_validated(base::SteadyTime now) noexcept;
  Verdict on_failure(const McpBackendOptions& options, McpFailure failure,
                     base::SteadyTime now) noexcept;

  bool is_bad() const noexcept { return is_bad_; }
  std::uint32_t failures() const noexcept { return failures_; }
  std::uint32_t flaps() const noexcept { return flaps_; }

 private:
  std::uint32_t failures_ = 0;         // Since the last validation.
  std::uint32_t flaps_ = 0;            // Connections in a row that did not last.
  base::SteadyTime last_change_at_{};  // Validated, or failed.
  bool is_bad_ = false;
};

/// The pause of a backend that flaps for the `flaps`th time: the usual pause, growing by the ramp,
/// in whole seconds, up to the maximum and at least one.
base::Seconds mcp_flap_pause(const McpBackendOptions& options, std::uint32_t flaps) noexcept;

}  // namespace kvferry::pool
