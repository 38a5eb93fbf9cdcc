#include "admin/metrics_writer.h"

#include <string>

#include <gtest/gtest.h>

namespace kvferry::admin {
namespace {

TEST(MetricsWriter, WritesHeadOnceBeforeTheSamples) {
  MetricsWriter out;
  out.family("kvferry_x_total", "Things.", MetricType::Counter);
  out.sample({{"a", "1"}, {"b", "2"}}, std::uint64_t{7});
  out.sample({}, 0.25);
  EXPECT_EQ(out.text(),
            "# HELP kvferry_x_total Things.\n"
            "# TYPE kvferry_x_total counter\n"
            "kvferry_x_total{a=\"1\",b=\"2\"} 7\n"
            "kvferry_x_total 0.25\n");
}

TEST(MetricsWriter, LeavesOutFamiliesWithoutSamples) {
  MetricsWriter out;
  out.family("kvferry_x", "Things.", MetricType::Gauge);
  out.family("kvferry_y", "Things.", MetricType::Gauge);
  out.sample({}, std::uint64_t{1});
  EXPECT_EQ(out.text().find("kvferry_x"), std::string::npos);
}

TEST(MetricsWriter, EscapesLabelValues) {
  MetricsWriter out;
  out.family("m", "Things.", MetricType::Gauge);
  out.sample({{"l", "a\"b\\c\nd\xff"}}, std::uint64_t{1});
  EXPECT_TRUE(out.text().ends_with("m{l=\"a\\\"b\\\\c\\nd\\\\xff\"} 1\n")) << out.text();
}

TEST(MetricsWriter, BoundsAreEdgesOfTheRecordedBuckets) {
  for (unsigned exponent = kBoundExponentMin; exponent <= kBoundExponentMax; ++exponent) {
    const std::uint64_t bound = std::uint64_t{1} << exponent;
    EXPECT_EQ(base::Histogram::upper_bound_us(base::Histogram::index_of(bound - 1)), bound);
    EXPECT_GT(base::Histogram::upper_bound_us(base::Histogram::index_of(bound)), bound);
  }
}

TEST(MetricsWriter, HistogramsAreCumulative) {
  base::Histogram latency;
  latency.record(base::Micros(1));
  latency.record(base::Micros(63));
  latency.record(base::Micros(64));  // Not below the first bound.
  latency.record(base::Millis(1500));
  latency.record(base::Seconds(30));  // Above the last bound.
  base::HistogramSum sum;
  sum.add(latency);
  MetricsWriter out;
  out.family("m_seconds", "Times.", MetricType::Histogram);
  out.histogram({{"c", "get"}}, sum);
  const std::string& text = out.text();
  EXPECT_NE(text.find("m_seconds_bucket{c=\"get\",le=\"0.000064\"} 2\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("m_seconds_bucket{c=\"get\",le=\"0.000128\"} 3\n"), std::string::npos);
  EXPECT_NE(text.find("m_seconds_bucket{c=\"get\",le=\"1.048576\"} 3\n"), std::string::npos);
  EXPECT_NE(text.find("m_seconds_bucket{c=\"get\",le=\"2.097152\"} 4\n"), std::string::npos);
  EXPECT_NE(text.find("m_seconds_bucket{c=\"get\",le=\"8.388608\"} 4\n"), std::string::npos);
  EXPECT_NE(text.find("m_seconds_bucket{c=\"get\",le=\"+Inf\"} 5\n"), std::string::npos);
  EXPECT_NE(text.find("m_seconds_sum{c=\"get\"} 31.500128\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("m_seconds_count{c=\"get\"} 5\n"));
}

TEST(MetricsWriter, WholeSecondsHaveNoPoint) {
  base::Histogram latency;
  latency.record(base::Seconds(2));
  base::HistogramSum sum;
  sum.add(latency);
  MetricsWriter out;
  out.family("m_seconds", "Times.", MetricType::Histogram);
  out.histogram({}, sum);
  EXPECT_NE(out.text().find("m_seconds_sum 2\n"), std::string::npos);
}

}  // namespace
}  // namespace kvferry::admin
