// MetricsWriter: text in the exposition format 0.0.4 of Prometheus.
//
// Source:    prometheus.io, "Exposition formats", text format.
// Threads:   one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/histogram.h"

namespace kvferry::admin {

inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

/// Upper bounds of exposed latency buckets are powers of two of a microsecond, 64 us to 8.4 s.
/// They are edges of base::Histogram as well, so every exposed bucket is exact.
inline constexpr unsigned kBoundExponentMin = 6;
inline constexpr unsigned kBoundExponentMax = 23;

enum class MetricType : std::uint8_t { Counter, Gauge, Histogram };

struct Label {
  Label(std::string_view label_name, std::string_view label_value) noexcept
      : name(label_name), value(label_value) {}

  std::string_view name;
  std::string_view value;  // Any bytes.
};
using Labels = std::vector<Label>;

class MetricsWriter {
 public:
  /// Starts a family; its samples follow. A family without samples is left out.
  void family(std::string_view name, std::string_view help, MetricType type);
  void sample(const Labels& labels, std::uint64_t value);
  void sample(const Labels& labels, double value);
  /// All samples of one histogram, in seconds.
  void histogram(const Labels& labels, const base::HistogramSum& sum);

  const std::string& text() const noexcept { return text_; }
  std::string take_text() noexcept { return std::move(text_); }

 private:
  void open_family();
  void append_name(std::string_view suffix, const Labels& labels, std::string_view bound);

  std::string text_;
  std::string name_;
  std::string head_;  // HELP and TYPE lines that the first sample will write.
};

}  // namespace kvferry::admin
