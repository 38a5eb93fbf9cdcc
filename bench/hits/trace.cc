#include "hits/trace.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace kvferry::hits {
namespace {

/// Keys of scans begin here, behind all steady ones.
constexpr std::uint64_t kFirstScanKey = std::uint64_t{1} << 40;
constexpr std::uint32_t kScanLength = 20'000;

/// Shares of a mixture of sizes, in percent, and what they are.
struct SizeClass {
  std::uint32_t percent;
  std::uint32_t bytes_min;
  std::uint32_t bytes_max;
};
constexpr std::array<SizeClass, 4> kSizes{{
    {60, 20, 200},
    {30, 200, 2'000},
    {9, 2'000, 8'000},
    {1, 8'000, 60'000},
}};
constexpr std::array<std::uint32_t, 4> kTtls{{2, 5, 20, 60}};

std::uint32_t size_of(std::uint64_t bits) noexcept {
  std::uint64_t percent = bits % 100;
  for (const SizeClass& each : kSizes) {
    if (percent < each.percent) {
      return each.bytes_min +
             static_cast<std::uint32_t>((bits >> 20) % (each.bytes_max - each.bytes_min));
    }
    percent -= each.percent;
  }
  return kSizes.front().bytes_min;
}

}  // namespace

// splitmix64's finish.
std::uint64_t mix(std::uint64_t number) noexcept {
  number += 0x9E3779B97F4A7C15ULL;
  number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9ULL;
  number = (number ^ (number >> 27)) * 0x94D049BB133111EBULL;
  return number ^ (number >> 31);
}

void append_key(std::uint64_t key, std::string& out) {
  std::array<char, kKeyBytes> text{};
  text.fill('k');
  for (std::size_t i = kKeyBytes; i-- > 4;) {
    text[i] = "0123456789abcdef"[key & 15];
    key >>= 4;
  }
  out.append(text.data(), text.size());
}

Trace::Trace(const TraceSpec& spec, std::uint64_t seed) : spec_(spec), state_(mix(seed)) {
  sums_.reserve(spec_.keys);
  double sum = 0;
  for (std::uint32_t rank = 1; rank <= spec_.keys; ++rank) {
    sum += 1 / std::pow(rank, spec_.zipf);
    sums_.push_back(sum);
  }
  scan_key_ = kFirstScanKey;
}

std::uint64_t Trace::random() noexcept {
  state_ += 0x9E3779B97F4A7C15ULL;
  return mix(state_);
}

double Trace::random_share() noexcept {
  return static_cast<double>(random() >> 11) / 9007199254740992.0;  // 2^53
}

std::uint32_t Trace::draw_rank() noexcept {
  const double at = random_share() * sums_.back();
  return static_cast<std::uint32_t>(std::lower_bound(sums_.begin(), sums_.end(), at) -
                                    sums_.begin());
}

Access Trace::access_of(std::uint64_t key) const noexcept {
  const std::uint64_t bits = mix(key ^ 0x51ED);
  Access access{.key = key};
  access.value_bytes = spec_.has_sizes ? size_of(bits) : spec_.value_bytes;
  if (spec_.has_ttls && (bits >> 60) % 2 == 0) {
    access.ttl_seconds = kTtls[(bits >> 50) % kTtls.size()];
  }
  return access;
}

Access Trace::next() {
  // A scan goes on in between the others until it is through.
  const bool is_scan = spec_.scan_share > 0 && random_share() < spec_.scan_share;
  std::uint64_t key = 0;
  if (is_scan) {
    if (scan_left_ == 0) {
      scan_left_ = spec_.scan_length;
      scan_key_ = spec_.is_scan_repeated ? kFirstScanKey : scan_key_;
    }
    --scan_left_;
    key = scan_key_++;
  } else {
    key = draw_rank();
  }
  Access access = access_of(key);
  access.second = static_cast<std::uint32_t>(count_++ / spec_.accesses_per_second);
  return access;
}

std::uint64_t Trace::steady_bytes() const {
  std::uint64_t sum = 0;
  for (std::uint32_t key = 0; key < spec_.keys; ++key) {
    sum += kKeyBytes + access_of(key).value_bytes;
  }
  return sum;
}

std::vector<TraceSpec> standard_traces(std::uint32_t keys) {
  std::vector<TraceSpec> traces;
  for (const double zipf : {0.7, 0.9, 1.0, 1.1}) {
    const std::string number = std::to_string(zipf).substr(0, 3);
    traces.push_back({.name = "zipf" + number, .zipf = zipf, .keys = keys});
  }
  for (const double zipf : {0.7, 0.9, 1.0, 1.1}) {
    const std::string number = std::to_string(zipf).substr(0, 3);
    traces.push_back({.name = "zipf" + number + "-scans",
                      .zipf = zipf,
                      .keys = keys,
                      .scan_share = 0.3,
                      .scan_length = kScanLength});
  }
  traces.push_back({.name = "zipf0.9-loop",
                    .keys = keys,
                    .scan_share = 0.3,
                    .scan_length = keys / 2,
                    .is_scan_repeated = true});
  traces.push_back({.name = "zipf0.9-ttls", .keys = keys, .has_ttls = true});
  traces.push_back({.name = "zipf0.9-sizes", .keys = keys, .has_sizes = true});
  traces.push_back({.name = "zipf0.9-all",
                    .keys = keys,
                    .scan_share = 0.3,
                    .scan_length = kScanLength,
                    .has_ttls = true,
                    .has_sizes = true});
  return traces;
}

}  // namespace kvferry::hits
