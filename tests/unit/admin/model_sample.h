// A model with something in every field, for tests of what is composed from it.
#pragma once

#include "admin/metrics_model.h"

namespace kvferry::admin {

inline base::HistogramSum latency_of(base::Micros micros) {
  base::Histogram histogram;
  histogram.record(micros);
  base::HistogramSum sum;
  sum.add(histogram);
  return sum;
}

inline MetricsModel make_model_sample() {
  MetricsModel model;
  model.process.version = "1.2.3";
  model.process.io_engine = "epoll";
  model.process.uptime = base::Seconds(61);
  model.process.workers = 2;
  model.process.usage = {.resident_bytes = 1001,
                         .open_descriptors = 1002,
                         .descriptors_max = 1003,
                         .cpu_user = base::Millis(2500),
                         .cpu_system = base::Millis(250)};
  model.process.memory_used_bytes = 1004;
  model.process.memory_limit_bytes = 1005;
  model.process.config_version = 3;
  model.process.reloads_ok = 2;
  model.process.reloads_failed = 1;
  model.process.last_reload_error = "line 3: no";
  model.process.log_lines_lost = 1006;
  model.process.admin_connections_rejected = 1007;
  model.fronts.push_back(
      {.name = "alpha",
       .address = "127.0.0.1:22121",
       .connections = 1008,
       .connections_total = 1009,
       .connections_rejected = 1010,
       .bytes_in = 1011,
       .bytes_out = 1012,
       .commands = {{.command = "get", .requests = 1013, .latency = latency_of(base::Micros(100))},
                    {.command = "set", .requests = 0}},
       .errors = {{"too_large", 1014}}});
  model.backends.push_back({.pool = "alpha",
                            .label = "one",
                            .address = "10.0.0.1:11211",
                            .state = BackendState::Ejected,
                            .links = 1015,
                            .inflight = 1016,
                            .queue_bytes = 1017,
                            .requests = 1018,
                            .bytes_in = 1019,
                            .bytes_out = 1020,
                            .connects = 1021,
                            .ejections = 1022,
                            .errors = {{"timeout", 1023}, {"closed", 1024}},
                            .latency = latency_of(base::Micros(200))});
  model.store = {{"curr_items", 1025}};
  model.routes = {{"front/default", 1026}};
  model.near_caches = {{"bytes", 1027}};
  return model;
}

}  // namespace kvferry::admin
