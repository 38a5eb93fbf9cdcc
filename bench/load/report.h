// What a run of the load generator found out: counts, latencies, and the line of JSON that tells
// it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kvferry::load {

/// Latencies in nanoseconds, in buckets at most 1.6 percent wide.
class Latencies {
 public:
  void record(std::uint64_t nanos) noexcept;
  /// Microseconds at `quantile` (0..1); 0 when nothing was recorded.
  double quantile_us(double quantile) const noexcept;

 private:
  static constexpr unsigned kSubBits = 6;
  static constexpr std::size_t kBuckets = std::size_t{64} << kSubBits;
  static std::size_t index_of(std::uint64_t nanos) noexcept;
  static double middle_of(std::size_t index) noexcept;

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t total_ = 0;
};

/// Good and bad answers of one interval.
struct Interval {
  std::uint64_t good = 0;
  std::uint64_t bad = 0;
};

struct Report {
  Latencies latencies;
  std::uint64_t answered = 0;  // Measured requests with an answer, errors among them.
  double seconds = 0;          // Measured time.
  std::uint64_t hits = 0;      // Values received.
  std::uint64_t misses = 0;
  std::uint64_t refused = 0;                                   // Answers that were error lines.
  std::map<std::string, std::uint64_t, std::less<>> refusals;  // The same by text.
  std::uint64_t wrong = 0;  // Replies that did not belong to their request.
  std::map<std::string, std::uint64_t, std::less<>> wrongs;  // The same by kind.
  std::uint64_t closed = 0;  // Connections that the server closed, or that failed.
  std::uint64_t connect_failures = 0;
  std::uint64_t lost = 0;        // Requests in flight on a connection that ended.
  std::uint64_t unanswered = 0;  // Requests still in flight when the run gave up waiting.
  double last_bad_s = -1;        // When the last error, close or wrong reply came; since the start.
  double cpu_s = 0;              // Processor time of the generator itself.
  std::vector<Interval> timeline;
  std::set<std::string, std::less<>> error_keys;

  std::string to_json() const;
};

/// Counts `text` in `counts`, and what is beyond a fair number of texts under one name.
void count_text(std::map<std::string, std::uint64_t, std::less<>>& counts, std::string_view text);

}  // namespace kvferry::load
