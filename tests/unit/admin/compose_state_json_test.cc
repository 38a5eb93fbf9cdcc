#include <string>

#include <gtest/gtest.h>

#include "admin/metrics_model.h"
#include "tests/unit/admin/model_sample.h"

namespace kvferry::admin {
namespace {

TEST(ComposeStateJson, EmptyModelIsExactlyThis) {
  EXPECT_EQ(
      compose_state_json(MetricsModel{}),
      R"({"process":{"version":"","io":"","uptime_seconds":0,"workers":0,"draining":false,)"
      R"("cpu_user_us":0,"cpu_system_us":0,"resident_memory_bytes":0,"memory_budget_used_bytes":0,)"
      R"("memory_budget_limit_bytes":0,"open_descriptors":0,"descriptors_limit":0,)"
      R"("config_version":0,"reloads_ok":0,"reloads_failed":0,"last_reload_error":"",)"
      R"("log_lines_lost":0,"admin_connections_rejected":0},"listeners":[],"backends":[],)"
      R"("tls":[],"certificates":{},"store":{},"routes":{},"near_caches":{}})"
      "\n");
}

TEST(ComposeStateJson, ShowsListenersBackendsAndStore) {
  const std::string text = compose_state_json(make_model_sample());
  const char* const parts[] = {
      R"("listeners":[{"name":"alpha","address":"127.0.0.1:22121","connections":1008,)"
      R"("connections_total":1009,"connections_rejected":1010,"received_bytes":1011,)"
      R"("sent_bytes":1012,"commands":{"get":{"requests":1013,"latency_us":{"count":1,)"
      R"("mean":100,"p50":104,"p99":104,"p99.9":104}},"set":{"requests":0,"latency_us":{"count":0,)"
      R"("mean":0,"p50":0,"p99":0,"p99.9":0}}},"errors":{"too_large":1014}}],)",
      R"("backends":[{"pool":"alpha","label":"one","address":"10.0.0.1:11211","state":"ejected",)"
      R"("links":1015,"inflight":1016,"queue_bytes":1017,"requests":1018,"received_bytes":1019,)"
      R"("sent_bytes":1020,"connects":1021,"ejections":1022,"errors":{"timeout":1023,)"
      R"("closed":1024},"latency_us":{"count":1,"mean":200,)",
      R"("last_reload_error":"line 3: no")",
      R"("store":{"curr_items":1025},"routes":{"front/default":1026},"near_caches":{"bytes":1027}})",
  };
  for (const char* part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
  }
}

TEST(ComposeStateJson, NamesFromOutsideAreEscaped) {
  MetricsModel model;
  model.process.last_reload_error = "bad \"key\"\n\xff";
  EXPECT_NE(compose_state_json(model).find(R"("last_reload_error":"bad \"key\"\n\\xff")"),
            std::string::npos);
}

TEST(BackendStateName, NamesEveryState) {
  EXPECT_EQ(backend_state_name(BackendState::Up), "up");
  EXPECT_EQ(backend_state_name(BackendState::Down), "down");
  EXPECT_EQ(backend_state_name(BackendState::Ejected), "ejected");
}

}  // namespace
}  // namespace kvferry::admin
