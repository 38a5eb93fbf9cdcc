// Counters of a backend on one worker; summed over workers when somebody looks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/counter.h"
#include "base/histogram.h"

namespace kvferry::pool {

/// Why calls to a backend failed.
enum class FailureKind : std::uint8_t {
  Unresolved,      // Its name has no address (yet).
  ConnectRefused,  // connect() failed.
  ConnectTimeout,  // connect() took longer than connect_timeout.
  Timeout,         // No reply within `timeout`.
  Closed,          // The connection was closed or reset with calls outstanding.
  BadReply,        // The backend sent what is not a reply to the request.
  Overload,        // A limit of the queue to it was reached.
  Down,            // Refused at once: in back-off after a failure.
  Draining,        // Removed by a reload, and its time is over.
  Handshake,       // A Redis server refused AUTH, SELECT or HELLO on a fresh connection.
};
inline constexpr std::size_t kFailureKinds = static_cast<std::size_t>(FailureKind::Handshake) + 1;

/// The word used in metrics and logs.
std::string_view failure_name(FailureKind kind) noexcept;

struct BackendStats {
  base::Counter requests;
  base::Counter bytes_sent;
  base::Counter bytes_received;
  base::Counter connects;
  base::Counter stray_replies;  // Bytes that answered no request; the link was closed.
  base::Counter links_up;       // Gauge.
  base::Counter inflight;       // Gauge: calls that wait for a reply.
  base::Counter queue_bytes;    // Gauge, taken about once a second: bytes that wait to be sent.
  base::Counter stalls;  // Times a slow client blocked a link and a fresh one took its place.
  std::array<base::Counter, kFailureKinds> failures;  // Calls, by cause.
  base::Histogram latency;                            // Queued to answered.
};

}  // namespace kvferry::pool
