// What the process uses, as the kernel counts it. For control (a scrape, a log line), not for
// workers: it reads files.
//
// Source:    proc(5): /proc/self/statm and /proc/self/fd; getrusage(2), getrlimit(2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace kvferry::base {

struct ProcessUsage {
  std::uint64_t resident_bytes = 0;    // 0 when /proc is not there.
  std::uint64_t open_descriptors = 0;  // 0 when /proc is not there.
  std::uint64_t descriptors_max = 0;   // The soft limit.
  Micros cpu_user{0};
  Micros cpu_system{0};
};

ProcessUsage read_process_usage();

/// Resident bytes from the text of statm: its second number counts pages of `page_bytes`.
std::optional<std::uint64_t> parse_statm_resident(std::string_view text,
                                                  std::uint64_t page_bytes) noexcept;

}  // namespace kvferry::base
