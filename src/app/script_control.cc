#include "app/script_control.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <fmt/format.h>

#include "app/worker.h"
#include "lua/log_line.h"

namespace kvferry::app {

using watch::Stream;

namespace {

constexpr base::Seconds kCronTick{1};

/// Slots are given up quickly in test runs, so that tests can see it.
constexpr lua::SlotShrink kTestShrink{
    .pressure_max = 100, .pressure_drop = 10, .wait = base::Seconds(0)};

/// A limit of the process, shared out.
std::uint32_t share_of(std::uint32_t limit, std::size_t workers) {
  const auto count = static_cast<std::uint32_t>(workers);
  return limit > 2 * count ? limit / count : limit;
}

}  // namespace

/// One load on its way through the workers.
struct ScriptControl::Load {
  lua::LoadedScripts scripts;
  lua::ScriptLoad for_workers;
  std::mutex mutex;
  std::condition_variable is_done;
  std::size_t left = 0;
  std::string error;  // The first one.
  std::vector<std::shared_ptr<const lua::UserCounters>> counters;
};

ScriptControl::ScriptControl(Setup setup)
    : setup_(std::move(setup)),
      config_(lua::ConfigState::Setup{
          .files = setup_.files,
          .start_argument = lua::StartArgument::parse(setup_.proxy_argument),
          .host = this,
          .limits = {},
          .profile_name = setup_.profiles_memory ? "config" : "",
          .tls_monitor = setup_.tls_monitor}) {
  shared_.profiles_memory = setup_.profiles_memory;
  shared_.failing_allocation = setup_.failing_allocation;
  shared_.start_argument = lua::StartArgument::parse(setup_.proxy_argument);
  if (setup_.has_test_hooks) {
    shared_.shrink = kTestShrink;
  }
  for (std::size_t i = 0; i < setup_.workers; ++i) {
    shared_.figures.push_back(std::make_shared<ScriptFigures>());
  }
  shared_.resolve = [this](const std::string& host, std::uint16_t port,
                           const std::function<void(const net::Address&)>& on_resolved) {
    setup_.loop.post([this, host, port, on_resolved] {
      setup_.resolver.resolve(host, port,
                              [on_resolved](const base::Result<net::Resolution>& found) {
                                on_resolved(found ? found->addresses.front() : net::Address{});
                              });
    });
  };
}

base::Result<std::shared_ptr<ScriptControl::Load>> ScriptControl::begin(std::size_t workers) {
  {
    const std::lock_guard<std::mutex> guard(figures_mutex_);
    ++counts_.reloads;
  }
  base::Result<lua::LoadedScripts> loaded = config_.load(setup_.loop.now());
  if (!loaded) {
    return base::Error(loaded.error().code(), "ERROR: " + loaded.error().text());
  }
  auto load = std::make_shared<Load>();
  load->scripts = std::move(loaded).value();
  load->for_workers.files = std::move(load->scripts.files);
  load->for_workers.value = std::move(load->scripts.value);
  load->for_workers.limits.active_max = share_of(load->scripts.active_request_limit, workers);
  load->for_workers.limits.buffer_bytes_max =
      load->scripts.buffer_memory_limit_bytes / std::max<std::size_t>(workers, 1);
  load->for_workers.vm_limits = load->scripts.vm_limits;
  load->for_workers.gc_ratio = load->scripts.gc_ratio;
  load->for_workers.shrink = shared_.shrink;
  load->for_workers.user_counters = load->scripts.user_counters;
  for (const auto& [index, name] : load->scripts.user_counter_names) {
    const auto before = in_force_.user_counter_names.find(index);
    if (before != in_force_.user_counter_names.end() && before->second != name) {
      load->for_workers.renamed_counters.push_back(index);
    }
  }
  load->left = workers;
  load->counters.resize(workers);
  write_event("type=proxy_conf status=start");
  return load;
}

namespace {

/// Runs the files on one worker, on its thread.
template <typename LoadPointer>
bool prepare_on(ScriptWorker& worker, const LoadPointer& load, std::size_t index) {
  const base::Result<void> done = worker.state().prepare(load->for_workers);
  const std::lock_guard<std::mutex> guard(load->mutex);
  if (!done && load->error.empty()) {
    load->error = done.error().text();
  }
  load->counters[index] = worker.state().next_user_counters();
  const bool is_last = --load->left == 0;
  load->is_done.notify_all();
  return is_last;
}

}  // namespace

base::Result<void> ScriptControl::load_first(const std::vector<std::unique_ptr<Worker>>& workers) {
  auto begun = begin(workers.size());
  if (!begun) {
    return std::move(begun).error();
  }
  const std::shared_ptr<Load> load = std::move(begun).value();
  for (std::size_t i = 0; i < workers.size(); ++i) {
    workers[i]->run_with_scripts([load, i](ScriptWorker& worker) { prepare_on(worker, load, i); });
  }
  {
    std::unique_lock<std::mutex> lock(load->mutex);
    load->is_done.wait(lock, [&load] { return load->left == 0; });
  }
  if (!load->error.empty()) {
    return base::Error(base::ErrorCode::InvalidInput, load->error);
  }
  finish(load, workers);
  return {};
}

void ScriptControl::reload(const std::vector<std::unique_ptr<Worker>>& workers) {
  if (is_loading_) {
    is_reload_wanted_ = true;
    return;
  }
  auto begun = begin(workers.size());
  if (!begun) {
    report_failure(begun.error().text());
    return;
  }
  is_loading_ = true;
  const std::shared_ptr<Load> load = std::move(begun).value();
  const std::function<void()> on_prepared = [this, load, &workers] { finish(load, workers); };
  for (std::size_t i = 0; i < workers.size(); ++i) {
    workers[i]->run_with_scripts([this, load, i, on_prepared](ScriptWorker& worker) {
      if (prepare_on(worker, load, i)) {
        setup_.loop.post(on_prepared);
      }
    });
  }
}

void ScriptControl::finish(const std::shared_ptr<Load>& load,
                           const std::vector<std::unique_ptr<Worker>>& workers) {
  const bool is_good = load->error.empty();
  for (const auto& worker : workers) {
    worker->run_with_scripts([is_good](ScriptWorker& scripts) {
      if (is_good) {
        scripts.state().commit();
      } else {
        scripts.state().abort();
      }
    });
  }
  if (is_good) {
    config_.settle();
    {
      const std::lock_guard<std::mutex> guard(figures_mutex_);
      in_force_ = std::move(load->scripts);
      user_counters_ = std::move(load->counters);
    }
    write_event("type=proxy_conf status=done");
  } else {
    config_.revert();
    report_failure(load->error);
  }
  is_loading_ = false;
  if (std::exchange(is_reload_wanted_, false)) {
    reload(workers);
  }
}

void ScriptControl::report_failure(const std::string& text) {
  {
    const std::lock_guard<std::mutex> guard(figures_mutex_);
    ++counts_.reload_fails;
  }
  static_cast<void>(std::fprintf(stderr, "%s\n", text.c_str()));
  write_event("type=proxy_error msg=" + lua::one_line(text));
  write_event("type=proxy_conf status=failed");
  setup_.log.write(base::LogLevel::Error, "lua",
                   "reload of the scripts failed; what ran goes on unchanged", {{"error", text}});
}

void ScriptControl::tick(const std::vector<std::unique_ptr<Worker>>& workers) {
  const base::SteadyTime now = setup_.loop.now();
  if (now < next_cron_ || is_loading_) {
    return;
  }
  next_cron_ = now + kCronTick;
  print_profile(config_.take_profile_line());
  const lua::ConfigState::CronRuns runs = config_.run_cron(now);
  {
    const std::lock_guard<std::mutex> guard(figures_mutex_);
    counts_.cron_runs += runs.runs;
    counts_.cron_fails += runs.fails;
  }
  if (config_.take_reload_wish()) {
    reload(workers);
  }
}

ScriptControl::Counts ScriptControl::counts() const {
  const std::lock_guard<std::mutex> guard(figures_mutex_);
  return counts_;
}

std::vector<std::pair<std::string, std::uint64_t>> ScriptControl::user_counters() const {
  const std::lock_guard<std::mutex> guard(figures_mutex_);
  std::vector<std::pair<std::string, std::uint64_t>> rows;
  for (const auto& [index, name] : in_force_.user_counter_names) {
    if (name.empty()) {
      continue;  // Hidden.
    }
    std::uint64_t sum = 0;
    for (const auto& counters : user_counters_) {
      sum += counters != nullptr && index < counters->size() ? counters->get(index) : 0;
    }
    rows.emplace_back(name, sum);
  }
  return rows;
}

std::uint64_t ScriptControl::active_request_limit() const {
  const std::lock_guard<std::mutex> guard(figures_mutex_);
  return std::uint64_t{share_of(in_force_.active_request_limit, setup_.workers)} * setup_.workers;
}

std::uint64_t ScriptControl::buffer_memory_limit() const {
  const std::lock_guard<std::mutex> guard(figures_mutex_);
  return in_force_.buffer_memory_limit_bytes;
}

bool ScriptControl::wants_messages() const {
  return setup_.watch.wants(Stream::ProxyUser);
}

void ScriptControl::on_message(std::string_view text) {
  setup_.watch.write(Stream::ProxyUser, fmt::format("type=proxy_user msg={}",
                                                    text.substr(0, lua::kLogMessageBytesMax)));
}

void ScriptControl::on_cron_error(std::string_view text) {
  write_event(fmt::format("type=proxy_error msg={}", text));
  setup_.log.write(base::LogLevel::Error, "lua", "a cron function raised an error",
                   {{"error", text}});
}

bool ScriptControl::compose_stats(std::string_view words, std::string& out) {
  return setup_.compose_stats(words, out);
}

void ScriptControl::write_event(std::string_view fields) {
  if (setup_.watch.wants(Stream::ProxyEvents)) {
    setup_.watch.write(Stream::ProxyEvents, fields);
  }
}

}  // namespace kvferry::app
