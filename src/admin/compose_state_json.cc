#include <array>
#include <type_traits>

#include "admin/metrics_model.h"
#include "base/json_text.h"

namespace kvferry::admin {

namespace {

/// Puts commas and quotes where JSON wants them; knows nothing else.
class JsonWriter {
 public:
  void open(char bracket) {
    separate();
    out_ += bracket;
    is_first_ = true;
  }
  void close(char bracket) {
    out_ += bracket;
    is_first_ = false;
  }
  void key(std::string_view name) {
    separate();
    base::append_json_string(out_, name);
    out_ += ':';
    is_first_ = true;  // No comma before the value.
  }
  void value(std::string_view text) {
    separate();
    base::append_json_string(out_, text);
  }
  void value(std::uint64_t number) {
    separate();
    out_ += std::to_string(number);
  }
  void value(bool flag) {
    separate();
    out_ += flag ? "true" : "false";
  }
  template <typename Value>
  void field(std::string_view name, const Value& content) {
    key(name);
    if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
      value(std::string_view(content));
    } else {
      value(content);
    }
  }
  std::string take() noexcept { return std::move(out_); }

 private:
  void separate() {
    if (!is_first_) {
      out_ += ',';
    }
    is_first_ = false;
  }

  std::string out_;
  bool is_first_ = true;
};

void write_counts(JsonWriter& out, std::string_view name, const std::vector<NamedCount>& counts) {
  out.key(name);
  out.open('{');
  for (const NamedCount& count : counts) {
    out.field(count.name, count.value);
  }
  out.close('}');
}

void write_latency(JsonWriter& out, const base::HistogramSum& latency) {
  out.key("latency_us");
  out.open('{');
  out.field("count", latency.total());
  out.field("mean", latency.total() == 0 ? 0 : latency.sum_us() / latency.total());
  out.field("p50", latency.quantile_us(0.5));
  out.field("p99", latency.quantile_us(0.99));
  out.field("p99.9", latency.quantile_us(0.999));
  out.close('}');
}

void write_process(JsonWriter& out, const ProcessMetrics& process) {
  out.key("process");
  out.open('{');
  out.field("version", process.version);
  out.field("io", process.io_engine);
  out.field("uptime_seconds", static_cast<std::uint64_t>(process.uptime.count()));
  out.field("workers", std::uint64_t{process.workers});
  out.field("draining", process.is_draining);
  out.field("cpu_user_us", static_cast<std::uint64_t>(process.usage.cpu_user.count()));
  out.field("cpu_system_us", static_cast<std::uint64_t>(process.usage.cpu_system.count()));
  out.field("resident_memory_bytes", process.usage.resident_bytes);
  out.field("memory_budget_used_bytes", process.memory_used_bytes);
  out.field("memory_budget_limit_bytes", process.memory_limit_bytes);
  out.field("open_descriptors", process.usage.open_descriptors);
  out.field("descriptors_limit", process.usage.descriptors_max);
  out.field("config_version", process.config_version);
  out.field("reloads_ok", process.reloads_ok);
  out.field("reloads_failed", process.reloads_failed);
  out.field("last_reload_error", process.last_reload_error);
  out.field("log_lines_lost", process.log_lines_lost);
  out.field("admin_connections_rejected", process.admin_connections_rejected);
  out.close('}');
}

void write_front(JsonWriter& out, const FrontMetrics& front) {
  out.open('{');
  out.field("name", front.name);
  out.field("address", front.address);
  out.field("connections", front.connections);
  out.field("connections_total", front.connections_total);
  out.field("connections_rejected", front.connections_rejected);
  out.field("received_bytes", front.bytes_in);
  out.field("sent_bytes", front.bytes_out);
  out.key("commands");
  out.open('{');
  for (const CommandMetrics& command : front.commands) {
    out.key(command.command);
    out.open('{');
    out.field("requests", command.requests);
    write_latency(out, command.latency);
    out.close('}');
  }
  out.close('}');
  write_counts(out, "errors", front.errors);
  out.close('}');
}

void write_backend(JsonWriter& out, const BackendMetrics& backend) {
  out.open('{');
  out.field("pool", backend.pool);
  out.field("label", backend.label);
  out.field("address", backend.address);
  out.field("state", backend_state_name(backend.state));
  out.field("links", backend.links);
  out.field("inflight", backend.inflight);
  out.field("queue_bytes", backend.queue_bytes);
  out.field("requests", backend.requests);
  out.field("received_bytes", backend.bytes_in);
  out.field("sent_bytes", backend.bytes_out);
  out.field("connects", backend.connects);
  out.field("ejections", backend.ejections);
  write_counts(out, "errors", backend.errors);
  write_latency(out, backend.latency);
  out.close('}');
}

void write_tls(JsonWriter& out, const MetricsModel& model) {
  out.key("tls");
  out.open('[');
  for (const TlsMetrics& tls : model.tls) {
    out.open('{');
    out.field("peer", tls.peer);
    out.field("handshakes", tls.handshakes);
    out.field("resumed", tls.resumed);
    write_counts(out, "failures", tls.failures);
    out.close('}');
  }
  out.close(']');
  write_counts(out, "certificates", model.certificates);
}

}  // namespace

std::string_view backend_state_name(BackendState state) noexcept {
  constexpr std::array<std::string_view, 3> kNames = {"up", "down", "ejected"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string compose_state_json(const MetricsModel& model) {
  JsonWriter out;
  out.open('{');
  write_process(out, model.process);
  out.key("listeners");
  out.open('[');
  for (const FrontMetrics& front : model.fronts) {
    write_front(out, front);
  }
  out.close(']');
  out.key("backends");
  out.open('[');
  for (const BackendMetrics& backend : model.backends) {
    write_backend(out, backend);
  }
  out.close(']');
  write_tls(out, model);
  write_counts(out, "store", model.store);
  write_counts(out, "routes", model.routes);
  write_counts(out, "near_caches", model.near_caches);
  out.close('}');
  return out.take() + "\n";
}

}  // namespace kvferry::admin
