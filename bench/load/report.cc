#include "load/report.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>

namespace kvferry::load {
namespace {

constexpr std::size_t kTextsMax = 64;

void append_string(std::string_view text, std::string& out) {
  out.push_back('"');
  for (const char byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    if (byte == '"' || byte == '\\') {
      out.push_back('\\');
      out.push_back(byte);
    } else if (code < 0x20 || code >= 0x7f) {
      std::array<char, 8> escape{};
      static_cast<void>(std::snprintf(escape.data(), escape.size(), "\\u%04x", code));
      out.append(escape.data());
    } else {
      out.push_back(byte);
    }
  }
  out.push_back('"');
}

void append_name(std::string_view name, std::string& out) {
  if (out.back() != '{') {
    out.push_back(',');
  }
  append_string(name, out);
  out.push_back(':');
}

void append_count(std::string_view name, std::uint64_t value, std::string& out) {
  append_name(name, out);
  out.append(std::to_string(value));
}

void append_decimal(std::string_view name, double value, std::string& out) {
  append_name(name, out);
  std::array<char, 48> text{};
  static_cast<void>(std::snprintf(text.data(), text.size(), "%.4f", value));
  out.append(text.data());
}

void append_map(std::string_view name, const std::map<std::string, std::uint64_t, std::less<>>& map,
                std::string& out) {
  append_name(name, out);
  out.push_back('{');
  for (const auto& [text, count] : map) {
    append_count(text, count, out);
  }
  out.push_back('}');
}

}  // namespace

std::size_t Latencies::index_of(std::uint64_t nanos) noexcept {
  if (nanos < (1U << kSubBits)) {
    return static_cast<std::size_t>(nanos);
  }
  const unsigned octave = static_cast<unsigned>(std::bit_width(nanos)) - kSubBits;
  return (std::size_t{octave} << kSubBits) +
         static_cast<std::size_t>((nanos >> (octave - 1)) & ((1U << kSubBits) - 1));
}

double Latencies::middle_of(std::size_t index) noexcept {
  if (index < (1U << kSubBits)) {
    return static_cast<double>(index);
  }
  const std::size_t octave = index >> kSubBits;
  const auto step = static_cast<double>(std::uint64_t{1} << (octave - 1));
  return (static_cast<double>((1U << kSubBits) + (index & ((1U << kSubBits) - 1))) + 0.5) * step;
}

void Latencies::record(std::uint64_t nanos) noexcept {
  ++counts_[std::min(index_of(nanos), kBuckets - 1)];
  ++total_;
}

double Latencies::quantile_us(double quantile) const noexcept {
  const auto rank = static_cast<std::uint64_t>(quantile * static_cast<double>(total_));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += counts_[i];
    if (total_ != 0 && (seen > rank || seen == total_)) {
      return middle_of(i) / 1000.0;
    }
  }
  return 0;
}

void count_text(std::map<std::string, std::uint64_t, std::less<>>& counts, std::string_view text) {
  const auto found = counts.find(text);
  if (found != counts.end()) {
    ++found->second;
  } else {
    ++counts[counts.size() < kTextsMax ? std::string(text) : std::string("(other texts)")];
  }
}

std::string Report::to_json() const {
  std::string out = "{";
  append_count("ops", answered, out);
  append_decimal("secs", seconds, out);
  append_decimal("ops_s", seconds > 0 ? static_cast<double>(answered) / seconds : 0, out);
  append_decimal("p50_us", latencies.quantile_us(0.5), out);
  append_decimal("p99_us", latencies.quantile_us(0.99), out);
  append_decimal("p999_us", latencies.quantile_us(0.999), out);
  append_count("hits", hits, out);
  append_count("misses", misses, out);
  append_count("refused", refused, out);
  append_map("refusals", refusals, out);
  append_count("wrong", wrong, out);
  append_map("wrongs", wrongs, out);
  append_count("closed", closed, out);
  append_count("connect_failures", connect_failures, out);
  append_count("lost", lost, out);
  append_count("unanswered", unanswered, out);
  append_decimal("last_bad_s", last_bad_s, out);
  append_decimal("cpu_s", cpu_s, out);
  append_name("timeline", out);
  out.push_back('[');
  for (const Interval& interval : timeline) {
    out.append(out.back() == '[' ? "[" : ",[").append(std::to_string(interval.good));
    out.append(",").append(std::to_string(interval.bad)).append("]");
  }
  out.push_back(']');
  append_name("error_keys", out);
  out.push_back('[');
  for (const std::string& key : error_keys) {
    if (out.back() != '[') {
      out.push_back(',');
    }
    append_string(key, out);
  }
  return out.append("]}");
}

}  // namespace kvferry::load
