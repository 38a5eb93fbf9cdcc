#include "admin/metrics_model.h"
#include "admin/metrics_writer.h"

namespace kvferry::admin {

namespace {

using enum MetricType;

/// The samples of one family, one for each of `items`.
template <typename Item, typename LabelsOf, typename ValueOf>
void write_each(MetricsWriter& out, const std::vector<Item>& items, LabelsOf labels_of,
                ValueOf value_of) {
  for (const Item& item : items) {
    out.sample(labels_of(item), value_of(item));
  }
}

template <typename Number>
void write_one(MetricsWriter& out, std::string_view name, std::string_view help, MetricType type,
               Number value) {
  out.family(name, help, type);
  out.sample({}, value);
}

double seconds_of(base::Micros time) noexcept {
  return std::chrono::duration<double>(time).count();
}

void write_process(MetricsWriter& out, const ProcessMetrics& process) {
  out.family("kvferry_build_info", "Version of the program and the I/O engine in use; always 1.",
             Gauge);
  out.sample({{"version", process.version}, {"io", process.io_engine}}, std::uint64_t{1});
  write_one(out, "kvferry_uptime_seconds", "Time since the start of the process.", Gauge,
            static_cast<std::uint64_t>(process.uptime.count()));
  write_one(out, "kvferry_workers", "Worker threads.", Gauge, std::uint64_t{process.workers});
  write_one(out, "kvferry_draining", "1 while the process drains before it exits.", Gauge,
            std::uint64_t{process.is_draining ? 1U : 0U});
  out.family("kvferry_cpu_seconds_total", "CPU time of the process.", Counter);
  out.sample({{"mode", "user"}}, seconds_of(process.usage.cpu_user));
  out.sample({{"mode", "system"}}, seconds_of(process.usage.cpu_system));
  write_one(out, "kvferry_resident_memory_bytes", "Resident memory of the process.", Gauge,
            process.usage.resident_bytes);
  write_one(out, "kvferry_memory_budget_used_bytes", "Bytes charged to memory_limit.", Gauge,
            process.memory_used_bytes);
  write_one(out, "kvferry_memory_budget_limit_bytes", "memory_limit; 0 means no limit.", Gauge,
            process.memory_limit_bytes);
  write_one(out, "kvferry_open_descriptors", "Open file descriptors.", Gauge,
            process.usage.open_descriptors);
  write_one(out, "kvferry_descriptors_limit", "Most descriptors that the process may open.", Gauge,
            process.usage.descriptors_max);
  write_one(out, "kvferry_config_version", "Configurations applied since the start.", Gauge,
            process.config_version);
  out.family("kvferry_reloads_total", "Reloads by result.", Counter);
  out.sample({{"result", "ok"}}, process.reloads_ok);
  out.sample({{"result", "failed"}}, process.reloads_failed);
  write_one(out, "kvferry_last_reload_failed", "1 when the last reload was refused.", Gauge,
            std::uint64_t{process.last_reload_error.empty() ? 0U : 1U});
  write_one(out, "kvferry_log_lines_lost_total", "Log lines that were dropped.", Counter,
            process.log_lines_lost);
  write_one(out, "kvferry_admin_connections_rejected_total",
            "Admin connections closed at once because there were too many.", Counter,
            process.admin_connections_rejected);
}

Labels front_labels(const FrontMetrics& front) {
  return {{"listener", front.name}};
}

void write_front_commands(MetricsWriter& out, const std::vector<FrontMetrics>& fronts) {
  const auto labels_of = [](const FrontMetrics& front, const CommandMetrics& command) {
    return Labels{{"listener", front.name}, {"command", command.command}};
  };
  out.family("kvferry_requests_total", "Requests of clients by command.", Counter);
  for (const FrontMetrics& front : fronts) {
    for (const CommandMetrics& command : front.commands) {
      out.sample(labels_of(front, command), command.requests);
    }
  }
  out.family("kvferry_request_duration_seconds", "Request parsed to reply queued, by command.",
             Histogram);
  for (const FrontMetrics& front : fronts) {
    for (const CommandMetrics& command : front.commands) {
      // Commands that nobody has sent would be most of the page.
      if (command.latency.total() != 0) {
        out.histogram(labels_of(front, command), command.latency);
      }
    }
  }
  out.family("kvferry_request_errors_total", "Error replies to clients by kind.", Counter);
  for (const FrontMetrics& front : fronts) {
    for (const NamedCount& error : front.errors) {
      out.sample({{"listener", front.name}, {"kind", error.name}}, error.value);
    }
  }
}

void write_fronts(MetricsWriter& out, const std::vector<FrontMetrics>& fronts) {
  out.family("kvferry_listener_info", "Address of each listener; always 1.", Gauge);
  for (const FrontMetrics& front : fronts) {
    out.sample({{"listener", front.name}, {"address", front.address}}, std::uint64_t{1});
  }
  const auto write = [&](std::string_view name, std::string_view help, MetricType type,
                         std::uint64_t FrontMetrics::* member) {
    out.family(name, help, type);
    write_each(out, fronts, front_labels,
               [member](const FrontMetrics& front) { return front.*member; });
  };
  write("kvferry_connections", "Client connections now.", Gauge, &FrontMetrics::connections);
  write("kvferry_connections_total", "Client connections accepted.", Counter,
        &FrontMetrics::connections_total);
  write("kvferry_connections_rejected_total", "Client connections closed at once by a limit.",
        Counter, &FrontMetrics::connections_rejected);
  write("kvferry_received_bytes_total", "Bytes received from clients.", Counter,
        &FrontMetrics::bytes_in);
  write("kvferry_sent_bytes_total", "Bytes sent to clients.", Counter, &FrontMetrics::bytes_out);
  write_front_commands(out, fronts);
}

Labels backend_labels(const BackendMetrics& backend) {
  return {{"pool", backend.pool}, {"backend", backend.label}};
}

void write_backend_states(MetricsWriter& out, const std::vector<BackendMetrics>& backends) {
  out.family("kvferry_backend_info", "Address of each backend; always 1.", Gauge);
  for (const BackendMetrics& backend : backends) {
    Labels labels = backend_labels(backend);
    labels.emplace_back("address", backend.address);
    out.sample(labels, std::uint64_t{1});
  }
  out.family("kvferry_backend_state", "1 for the state that a backend is in.", Gauge);
  for (const BackendMetrics& backend : backends) {
    for (const BackendState state : {BackendState::Up, BackendState::Down, BackendState::Ejected}) {
      Labels labels = backend_labels(backend);
      labels.emplace_back("state", backend_state_name(state));
      out.sample(labels, std::uint64_t{backend.state == state ? 1U : 0U});
    }
  }
}

void write_backends(MetricsWriter& out, const std::vector<BackendMetrics>& backends) {
  write_backend_states(out, backends);
  const auto write = [&](std::string_view name, std::string_view help, MetricType type,
                         std::uint64_t BackendMetrics::* member) {
    out.family(name, help, type);
    write_each(out, backends, backend_labels,
               [member](const BackendMetrics& backend) { return backend.*member; });
  };
  write("kvferry_backend_links", "Connections to the backend that are up.", Gauge,
        &BackendMetrics::links);
  write("kvferry_backend_inflight", "Requests that wait for their reply.", Gauge,
        &BackendMetrics::inflight);
  write("kvferry_backend_queue_bytes", "Bytes that wait to be sent.", Gauge,
        &BackendMetrics::queue_bytes);
  write("kvferry_backend_requests_total", "Requests sent to the backend.", Counter,
        &BackendMetrics::requests);
  write("kvferry_backend_received_bytes_total", "Bytes received from the backend.", Counter,
        &BackendMetrics::bytes_in);
  write("kvferry_backend_sent_bytes_total", "Bytes sent to the backend.", Counter,
        &BackendMetrics::bytes_out);
  write("kvferry_backend_connects_total", "Connections opened to the backend.", Counter,
        &BackendMetrics::connects);
  write("kvferry_backend_ejections_total", "Times the backend was taken out of use.", Counter,
        &BackendMetrics::ejections);
  out.family("kvferry_backend_errors_total", "Failed requests by kind.", Counter);
  for (const BackendMetrics& backend : backends) {
    for (const NamedCount& error : backend.errors) {
      Labels labels = backend_labels(backend);
      labels.emplace_back("kind", error.name);
      out.sample(labels, error.value);
    }
  }
  out.family("kvferry_backend_request_duration_seconds", "Request queued to reply received.",
             Histogram);
  for (const BackendMetrics& backend : backends) {
    out.histogram(backend_labels(backend), backend.latency);
  }
}

void write_tls(MetricsWriter& out, const MetricsModel& model) {
  if (model.tls.empty()) {
    return;
  }
  out.family("kvferry_tls_handshakes_total", "TLS handshakes that were done.", Counter);
  for (const TlsMetrics& tls : model.tls) {
    out.sample({{"peer", tls.peer}}, tls.handshakes);
  }
  out.family("kvferry_tls_resumptions_total", "Those that went on with an earlier session.",
             Counter);
  for (const TlsMetrics& tls : model.tls) {
    out.sample({{"peer", tls.peer}}, tls.resumed);
  }
  out.family("kvferry_tls_failures_total", "TLS connections that failed, by kind.", Counter);
  for (const TlsMetrics& tls : model.tls) {
    for (const NamedCount& failure : tls.failures) {
      out.sample({{"peer", tls.peer}, {"kind", failure.name}}, failure.value);
    }
  }
  out.family("kvferry_tls_certificate_expires_seconds",
             "When a certificate of ours ends to be valid, in seconds since 1970.", Gauge);
  for (const NamedCount& certificate : model.certificates) {
    out.sample({{"at", certificate.name}}, certificate.value);
  }
}

}  // namespace

std::string compose_metrics(const MetricsModel& model) {
  MetricsWriter out;
  write_process(out, model.process);
  write_fronts(out, model.fronts);
  write_backends(out, model.backends);
  write_tls(out, model);
  out.family("kvferry_store_value", "Values of the embedded store, under the names of its stats.",
             Gauge);
  for (const NamedCount& value : model.store) {
    out.sample({{"name", value.name}}, value.value);
  }
  out.family("kvferry_route_events_total",
             "What native routes count: further tries, refused requests, hits and misses of near "
             "caches, joined reads.",
             Counter);
  for (const NamedCount& value : model.routes) {
    out.sample({{"name", value.name}}, value.value);
  }
  if (!model.near_caches.empty()) {
    out.family("kvferry_near_caches_value", "What the copies of all near caches take.", Gauge);
  }
  for (const NamedCount& value : model.near_caches) {
    out.sample({{"name", value.name}}, value.value);
  }
  return out.take_text();
}

}  // namespace kvferry::admin
