// Answerer: who answers calls, as logs name it, and which of its answers are logged.
//
// Lifetime:  as long as the worker that asked.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace kvferry::call {

/// Which answers are written to the stream of requests (docs/lua.md, "Logging").
struct ReplyLogging {
  bool is_on = false;
  bool logs_errors = false;
  base::Millis deadline{0};  // Slower answers are logged; 0: none for that reason.
  std::uint32_t rate = 0;    // One in so many is logged; 0: none for that reason.
  std::string tag;           // What the line shows as its detail.

  friend bool operator==(const ReplyLogging&, const ReplyLogging&) = default;
};

struct Answerer {
  std::string place;  // "host:port", as configured.
  ReplyLogging logging;
};

}  // namespace kvferry::call
