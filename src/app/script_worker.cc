#include "app/script_worker.h"

#include <cstdio>
#include <fmt/format.h>

#include "pool/mcp_pool.h"

namespace kvferry::app {

using watch::Stream;

ScriptWorker::ScriptWorker(const Setup& setup)
    : setup_(setup),
      figures_(*setup.shared.figures[setup.index]),
      backends_(std::make_unique<pool::McpBackends>(backend_context())),
      state_(std::make_unique<lua::WorkerState>(lua::WorkerState::Setup{
          .loop = setup.loop,
          .calls = setup.calls,
          .local = setup.local,
          .pools = *this,
          .events = *this,
          .stats = figures_.stats,
          .names = setup.shared.names,
          .start_argument = setup.shared.start_argument,
          .limits = {},
          .profile_name = setup.shared.profiles_memory ? "worker " + std::to_string(setup.index)
                                                       : std::string(),
          .failing_allocation = setup.shared.failing_allocation,
          .clock = &setup.local,
          .near_stores = &setup.near_stores,
          .writes = &setup.writes})) {}

void ScriptWorker::keep_house() {
  state_->keep_house();
  print_profile(state_->take_profile_line());
}

pool::McpContext ScriptWorker::backend_context() {
  pool::McpContext context{.loop = setup_.loop,
                           .events = *this,
                           .stats = figures_.backends,
                           .names = this,
                           .memory = this,
                           .process_door = setup_.shared.door,
                           .is_process_owner = setup_.index == 0,
                           .calls = &setup_.calls};
  return context;
}

ScriptWorker::~ScriptWorker() {
  *is_alive_ = false;
  // Pools live in the state, and hold backends.
  state_.reset();
}

void ScriptWorker::shut() {
  backends_->shut();
}

std::unique_ptr<call::Target> ScriptWorker::make_pool(const lua::ConfigValue::Pool& pool) {
  return std::make_unique<pool::McpPool>(pool, *backends_);
}

void ScriptWorker::on_script_error(std::string_view text, std::string_view traceback) {
  if (setup_.watch.wants(Stream::ProxyEvents)) {
    setup_.watch.write(Stream::ProxyEvents, fmt::format("type=proxy_error msg={}", text));
  }
  const base::SteadyTime now = setup_.loop.now();
  const auto known = tracebacks_.find(text);
  if (known != tracebacks_.end() && now < known->second + kTracebackPause) {
    return;
  }
  if (tracebacks_.size() >= kTracebackTextsMax) {
    tracebacks_.clear();
  }
  tracebacks_.insert_or_assign(std::string(text), now);
  setup_.log.write(base::LogLevel::Error, "lua", "a script raised an error",
                   {{"error", traceback}});
}

bool ScriptWorker::wants_messages() const {
  return setup_.watch.wants(Stream::ProxyUser);
}

void ScriptWorker::on_message(std::string_view text) {
  setup_.watch.write(Stream::ProxyUser, fmt::format("type=proxy_user msg={}", text));
}

bool ScriptWorker::wants_requests() const {
  return setup_.watch.wants(Stream::ProxyReqs);
}

void ScriptWorker::on_request(std::string_view line) {
  setup_.watch.write(Stream::ProxyReqs, line);
}

void ScriptWorker::on_backend_error(const pool::McpBackendOptions& backend,
                                    pool::McpFailure failure, std::size_t depth,
                                    std::string_view unread) {
  if (setup_.watch.wants(Stream::ProxyEvents)) {
    setup_.watch.write(
        Stream::ProxyEvents,
        fmt::format("type=proxy_backend error={} name={} port={} label={} depth={} rbuf={}",
                    pool::mcp_failure_word(failure), backend.host, backend.port, backend.label,
                    depth, uri_encode(unread)));
  }
  setup_.log.write(base::LogLevel::Info, "pool", "backend failed",
                   {{"backend", backend.label},
                    {"kind", pool::mcp_failure_word(failure)},
                    {"requests_lost", std::to_string(depth)}});
}

void ScriptWorker::on_marked_bad(const pool::McpBackendOptions& backend, bool is_flapping,
                                 base::Seconds pause) {
  const std::string_view word = is_flapping ? "markedbadflap" : "markedbad";
  if (setup_.watch.wants(Stream::ProxyEvents)) {
    setup_.watch.write(Stream::ProxyEvents,
                       fmt::format("type=proxy_backend error={} name={} port={} label={} retry={}",
                                   word, backend.host, backend.port, backend.label, pause.count()));
  }
  setup_.log.write(base::LogLevel::Warning, "pool", "backend marked bad",
                   {{"backend", backend.label},
                    {"host", backend.host},
                    {"port", backend.port},
                    {"next_try_seconds", std::to_string(pause.count())}});
}

bool ScriptWorker::has_reply_room() {
  return state_->hooks().has_buffer_room();
}

void ScriptWorker::resolve(const std::string& host, std::uint16_t port) {
  setup_.shared.resolve(
      host, port,
      [this, host, port, mailbox = setup_.loop.mailbox(), alive = is_alive_](const auto& address) {
        mailbox->post([this, host, port, address, alive] {
          if (*alive) {
            backends_->on_resolved(host, port, address);
          }
        });
      });
}

std::string uri_encode(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string text;
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    const bool is_plain = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                          (byte >= 'a' && byte <= 'z') || byte == '-' || byte == '.' ||
                          byte == '_' || byte == '~';
    if (is_plain) {
      text.push_back(each);
    } else {
      text.push_back('%');
      text.push_back(kDigits[byte >> 4U]);
      text.push_back(kDigits[byte & 15U]);
    }
  }
  return text;
}

void print_profile(const std::string& line) {
  if (!line.empty()) {
    static_cast<void>(std::fputs(line.c_str(), stderr));
  }
}

}  // namespace kvferry::app
