// Instants and durations. Only net and app read clocks; everyone else is handed `now`.
#pragma once

#include <chrono>

namespace kvferry::base {

/// Never jumps; deadlines, latencies and back-off are measured with it.
using SteadyTime = std::chrono::steady_clock::time_point;
/// Seconds of the calendar; expiry of stored items is counted in it.
using WallTime = std::chrono::system_clock::time_point;

using Nanos = std::chrono::nanoseconds;
using Micros = std::chrono::microseconds;
using Millis = std::chrono::milliseconds;
using Seconds = std::chrono::seconds;

}  // namespace kvferry::base
