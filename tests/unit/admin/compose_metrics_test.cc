#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "admin/metrics_model.h"
#include "tests/unit/admin/model_sample.h"

namespace kvferry::admin {
namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(ComposeMetrics, ShowsEveryNumberOfTheModel) {
  const std::string text = compose_metrics(make_model_sample());
  const char* const lines[] = {
      R"(kvferry_build_info{version="1.2.3",io="epoll"} 1)",
      "kvferry_uptime_seconds 61",
      "kvferry_workers 2",
      "kvferry_draining 0",
      R"(kvferry_cpu_seconds_total{mode="user"} 2.5)",
      R"(kvferry_cpu_seconds_total{mode="system"} 0.25)",
      "kvferry_resident_memory_bytes 1001",
      "kvferry_open_descriptors 1002",
      "kvferry_descriptors_limit 1003",
      "kvferry_memory_budget_used_bytes 1004",
      "kvferry_memory_budget_limit_bytes 1005",
      "kvferry_config_version 3",
      R"(kvferry_reloads_total{result="ok"} 2)",
      R"(kvferry_reloads_total{result="failed"} 1)",
      "kvferry_last_reload_failed 1",
      "kvferry_log_lines_lost_total 1006",
      "kvferry_admin_connections_rejected_total 1007",
      R"(kvferry_listener_info{listener="alpha",address="127.0.0.1:22121"} 1)",
      R"(kvferry_connections{listener="alpha"} 1008)",
      R"(kvferry_connections_total{listener="alpha"} 1009)",
      R"(kvferry_connections_rejected_total{listener="alpha"} 1010)",
      R"(kvferry_received_bytes_total{listener="alpha"} 1011)",
      R"(kvferry_sent_bytes_total{listener="alpha"} 1012)",
      R"(kvferry_requests_total{listener="alpha",command="get"} 1013)",
      R"(kvferry_requests_total{listener="alpha",command="set"} 0)",
      R"(kvferry_request_duration_seconds_count{listener="alpha",command="get"} 1)",
      R"(kvferry_request_errors_total{listener="alpha",kind="too_large"} 1014)",
      R"(kvferry_backend_info{pool="alpha",backend="one",address="10.0.0.1:11211"} 1)",
      R"(kvferry_backend_state{pool="alpha",backend="one",state="up"} 0)",
      R"(kvferry_backend_state{pool="alpha",backend="one",state="down"} 0)",
      R"(kvferry_backend_state{pool="alpha",backend="one",state="ejected"} 1)",
      R"(kvferry_backend_links{pool="alpha",backend="one"} 1015)",
      R"(kvferry_backend_inflight{pool="alpha",backend="one"} 1016)",
      R"(kvferry_backend_queue_bytes{pool="alpha",backend="one"} 1017)",
      R"(kvferry_backend_requests_total{pool="alpha",backend="one"} 1018)",
      R"(kvferry_backend_received_bytes_total{pool="alpha",backend="one"} 1019)",
      R"(kvferry_backend_sent_bytes_total{pool="alpha",backend="one"} 1020)",
      R"(kvferry_backend_connects_total{pool="alpha",backend="one"} 1021)",
      R"(kvferry_backend_ejections_total{pool="alpha",backend="one"} 1022)",
      R"(kvferry_backend_errors_total{pool="alpha",backend="one",kind="timeout"} 1023)",
      R"(kvferry_backend_errors_total{pool="alpha",backend="one",kind="closed"} 1024)",
      R"(kvferry_backend_request_duration_seconds_sum{pool="alpha",backend="one"} 0.0002)",
      R"(kvferry_store_value{name="curr_items"} 1025)",
      R"(kvferry_route_events_total{name="front/default"} 1026)",
      R"(kvferry_near_caches_value{name="bytes"} 1027)",
  };
  for (const char* line : lines) {
    EXPECT_TRUE(has_line(text, line)) << line;
  }
  EXPECT_EQ(text.find(R"(duration_seconds_count{listener="alpha",command="set"})"),
            std::string::npos);
}

TEST(ComposeMetrics, EveryFamilyIsDescribedOnceAndDocumented) {
  const std::ifstream file(std::string(KVF_TEST_DATA) + "/../docs/operations.md");
  std::stringstream document;
  document << file.rdbuf();
  std::istringstream text(compose_metrics(make_model_sample()));
  std::set<std::string> names;
  const std::string mark = "# TYPE ";
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with(mark)) {
      continue;
    }
    const std::string name = line.substr(mark.size(), line.find(' ', mark.size()) - mark.size());
    EXPECT_TRUE(names.insert(name).second) << name << " has two heads";
    EXPECT_NE(document.str().find("`" + name + "`"), std::string::npos)
        << name << " is missing in docs/operations.md";
  }
  EXPECT_GT(names.size(), 30U);
}

TEST(ComposeMetrics, EmptyModelHasTheProcessOnly) {
  const std::string text = compose_metrics(MetricsModel{});
  EXPECT_TRUE(has_line(text, "kvferry_last_reload_failed 0"));
  EXPECT_EQ(text.find("kvferry_backend"), std::string::npos);
  EXPECT_EQ(text.find("kvferry_store"), std::string::npos);
}

}  // namespace
}  // namespace kvferry::admin
