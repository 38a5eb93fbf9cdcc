// Texts of merged replies of Redis servers.
//
// Threads: pure functions; they allocate, and are for failures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pool/options.h"

namespace kvferry::pool {

/// Longest line that tells of a failure, its line end included.
inline constexpr std::size_t kFailureLineBytesMax = 512;

/// What became of a command of several parts, some of which failed.
struct PartialResult {
  std::string_view command;          // As the table has it.
  std::size_t done = 0;              // Shards that succeeded ...
  std::size_t total = 0;             // ... out of so many.
  std::int64_t counted = 0;          // The sum of what they told.
  std::string_view first_failure{};  // The whole reply of the first that failed.
};

/// The error for it, in the wording of the pool.
std::string partial_line(const PoolOptions& options, const PartialResult& result);

/// The text of an error reply ("-ERR x\r\n" or "!5\r\nERR x\r\n"), without its first byte and ends.
std::string_view error_text(std::string_view reply) noexcept;

/// What a client is told of a part whose reply was the error `reply`: that, or twemproxy's words.
std::string_view part_failure(const PoolOptions& options, std::string_view reply) noexcept;

/// A part was answered with what the command does not give.
std::string bad_part_line(const PoolOptions& options);
/// The reply of a part was cut off.
std::string lost_part_line(const PoolOptions& options);
/// The parts together are larger than may be kept.
std::string too_large_line(const PoolOptions& options);

}  // namespace kvferry::pool
