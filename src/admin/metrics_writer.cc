#include "admin/metrics_writer.h"

#include <array>
#include <charconv>

#include "base/check.h"
#include "base/json_text.h"

namespace kvferry::admin {

namespace {

constexpr std::array<std::string_view, 3> kTypeNames = {"counter", "gauge", "histogram"};

/// Microseconds as seconds, without the zeros at the end: 64 is "0.000064", 1500000 is "1.5".
std::string seconds_text(std::uint64_t micros) {
  std::string text = std::to_string(micros % 1'000'000);
  text.insert(0, 6 - text.size(), '0');
  text = std::to_string(micros / 1'000'000) + "." + text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) {
    text.pop_back();
  }
  return text;
}

void append_label_value(std::string& out, std::string_view value) {
  while (!value.empty()) {
    const std::size_t size = base::utf8_character_bytes(value);
    if (size == 0) {
      out += '\\';  // Escapes the backslash that follows.
      base::append_hex_escape(out, value.front());
    } else if (value.front() == '\n') {
      out += "\\n";
    } else {
      if (value.front() == '"' || value.front() == '\\') {
        out += '\\';
      }
      out += value.substr(0, size);
    }
    value.remove_prefix(size == 0 ? 1 : size);
  }
}

void append_label(std::string& out, std::string_view name, std::string_view value) {
  if (out.back() != '{') {
    out += ',';
  }
  out += name;
  out += "=\"";
  append_label_value(out, value);
  out += '"';
}

}  // namespace

void MetricsWriter::family(std::string_view name, std::string_view help, MetricType type) {
  KVF_DCHECK(help.find_first_of("\n\\") == std::string_view::npos);
  name_ = name;
  head_ = "# HELP " + name_ + " " + std::string(help) + "\n# TYPE " + name_ + " ";
  head_ += kTypeNames[static_cast<std::size_t>(type)];
  head_ += '\n';
}

void MetricsWriter::open_family() {
  text_ += head_;
  head_.clear();
}

void MetricsWriter::append_name(std::string_view suffix, const Labels& labels,
                                std::string_view bound) {
  text_ += name_;
  text_ += suffix;
  if (!labels.empty() || !bound.empty()) {
    text_ += '{';
    for (const Label& label : labels) {
      append_label(text_, label.name, label.value);
    }
    if (!bound.empty()) {
      append_label(text_, "le", bound);
    }
    text_ += '}';
  }
  text_ += ' ';
}

void MetricsWriter::sample(const Labels& labels, std::uint64_t value) {
  open_family();
  append_name("", labels, "");
  text_ += std::to_string(value);
  text_ += '\n';
}

void MetricsWriter::sample(const Labels& labels, double value) {
  open_family();
  append_name("", labels, "");
  std::array<char, 32> digits{};
  const auto [end, code] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  KVF_CHECK(code == std::errc());
  text_.append(digits.data(), end);
  text_ += '\n';
}

void MetricsWriter::histogram(const Labels& labels, const base::HistogramSum& sum) {
  open_family();
  std::uint64_t seen = 0;
  std::size_t next = 0;
  for (unsigned exponent = kBoundExponentMin; exponent <= kBoundExponentMax; ++exponent) {
    const std::uint64_t bound_us = std::uint64_t{1} << exponent;
    while (next < base::Histogram::kBuckets && base::Histogram::upper_bound_us(next) <= bound_us) {
      seen += sum.count(next++);
    }
    append_name("_bucket", labels, seconds_text(bound_us));
    text_ += std::to_string(seen) + "\n";
  }
  append_name("_bucket", labels, "+Inf");
  text_ += std::to_string(sum.total()) + "\n";
  append_name("_sum", labels, "");
  text_ += seconds_text(sum.sum_us()) + "\n";
  append_name("_count", labels, "");
  text_ += std::to_string(sum.total()) + "\n";
}

}  // namespace kvferry::admin
