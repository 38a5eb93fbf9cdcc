// Traces for comparing caches: who is asked for when, generated from a seed.
//
// Keys are numbers. Steady ones are drawn by Zipf's law from a fixed population; a scan walks over
// keys that nobody else asks for. Size and TTL belong to the key, so every reader of a key agrees
// on them. Units:     a trace has its own clock, in seconds; it ticks after so many accesses.
// Threads:   one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvferry::hits {

/// What a trace is made of.
struct TraceSpec {
  std::string name;
  double zipf = 0.9;                // The exponent: the larger, the fewer keys are hot.
  std::uint32_t keys = 1'000'000;   // Steady keys.
  double scan_share = 0;            // Of all accesses.
  std::uint32_t scan_length = 0;    // Keys of one scan, which come one after another.
  bool is_scan_repeated = false;    // Every scan walks over the same keys again.
  bool has_ttls = false;            // Half of the keys live for a while only.
  bool has_sizes = false;           // From 20 bytes to 60 KiB; else all are value_bytes long.
  std::uint32_t value_bytes = 100;  // Without has_sizes.
  std::uint32_t accesses_per_second = 50'000;
};

struct Access {
  std::uint64_t key = 0;
  std::uint32_t value_bytes = 0;
  std::uint32_t ttl_seconds = 0;  // 0: none.
  std::uint32_t second = 0;
};

/// Length of every key as it travels.
inline constexpr std::size_t kKeyBytes = 20;
/// The text of a key: kKeyBytes characters.
void append_key(std::uint64_t key, std::string& out);

/// A few good bits of `number`.
std::uint64_t mix(std::uint64_t number) noexcept;

class Trace {
 public:
  Trace(const TraceSpec& spec, std::uint64_t seed);
  Access next();
  /// Bytes of all steady items: keys and values.
  std::uint64_t steady_bytes() const;

 private:
  std::uint64_t random() noexcept;
  double random_share() noexcept;
  std::uint32_t draw_rank() noexcept;
  Access access_of(std::uint64_t key) const noexcept;

  TraceSpec spec_;
  std::vector<double> sums_;  // Of the weights of the ranks, up to and with each.
  std::uint64_t state_;
  std::uint64_t count_ = 0;
  std::uint64_t scan_key_ = 0;
  std::uint32_t scan_left_ = 0;
};

/// Zipf 0.7 to 1.1, scans, TTLs, sizes: what a cache is judged by.
std::vector<TraceSpec> standard_traces(std::uint32_t keys);

}  // namespace kvferry::hits
