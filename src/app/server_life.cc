// How a server lives on: signals, reloads, ticks, and its end.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <poll.h>
#include <unistd.h>
#include <utility>
#include <variant>

#include "app/server.h"
#include "net/tls_context.h"

namespace kvferry::app {
namespace {

/// Logs are written out, and the store is kept clean, this often.
constexpr base::Millis kTick{100};

}  // namespace

int Server::run() {
  if (auto started = start(); !started) {
    if (log_ != nullptr) {
      log_->flush();
    }
    static_cast<void>(std::fprintf(stderr, "kvferry: %s\n", started.error().text().c_str()));
    for (auto& worker : workers_) {
      worker->drain(base::Millis(0));
    }
    for (auto& worker : workers_) {
      worker->join();
    }
    return 1;
  }
  loop_->run();
  for (auto& worker : workers_) {
    worker->join();
  }
  const bool is_kept = write_snapshot();
  log_->write(base::LogLevel::Notice, "app", "ended", {});
  log_->flush();
  if (!options_.pid_file.empty()) {
    static_cast<void>(unlink(options_.pid_file.c_str()));
  }
  return is_kept ? 0 : 1;
}

base::Result<void> Server::watch_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
    sigaddset(&set, signal);
  }
  // Blocked before any worker starts, so that they inherit it.
  if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) {
    return base::Error(base::ErrorCode::System, "cannot block signals");
  }
  signal_fd_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (signal_fd_ < 0) {
    return base::Error::from_errno("signalfd", errno);
  }
  auto watch = loop_->watch_fd(signal_fd_, POLLIN,
                               base::Delegate<void(unsigned)>::to<&Server::on_signal>(this));
  if (!watch) {
    return std::move(watch).error();
  }
  signal_watch_ = std::move(watch).value();
  return {};
}

void Server::on_signal(unsigned /*events*/) {
  signalfd_siginfo info{};
  while (read(signal_fd_, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    switch (static_cast<int>(info.ssi_signo)) {
      case SIGUSR1:
        // memcached ends for a warm start at this signal.
        if (!wishes_.snapshot_file.empty()) {
          drain();
          break;
        }
        [[fallthrough]];
      case SIGHUP:
        if (auto reopened = log_->reopen(); !reopened) {
          log_->write(base::LogLevel::Error, "app", "cannot reopen the log",
                      {{"error", reopened.error().text()}});
        }
        if (static_cast<int>(info.ssi_signo) == SIGHUP && model_.process.reload_on_hup) {
          reload();
        }
        break;
      default:
        drain();
        break;
    }
  }
}

void Server::reload() {
  if (is_draining_) {
    return;
  }
  if (scripts_ != nullptr) {
    scripts_->reload(workers_);
    return;
  }
  auto loaded = load();
  const base::Result<void> applied =
      loaded ? apply(std::move(loaded).value()) : base::Result<void>(loaded.error());
  if (applied) {
    ++reloads_ok_;
    last_reload_error_.clear();
    return;
  }
  ++reloads_failed_;
  last_reload_error_ = applied.error().text();
  log_->write(base::LogLevel::Error, "app", "reload failed, the running configuration stays",
              {{"error", last_reload_error_}});
}

/// memcached's command for it; comes from a worker, which looks at the files itself, as memcached
/// does: the answer is to say what is wrong with them. They are a few small ones, and operators do
/// not ask often.
std::string Server::refresh_certificates() {
  if (!wishes_.has_tls) {
    return "TLS not enabled";
  }
  const auto opened = net::TlsContext::open(wishes_.tls, "refresh_certs", nullptr);
  if (const auto* const problem = std::get_if<net::TlsProblem>(&opened)) {
    return problem->text;
  }
  loop_->post([this] {
    auto loaded = load();
    const base::Result<void> applied =
        loaded ? apply(std::move(loaded).value()) : base::Result<void>(loaded.error());
    if (!applied) {
      log_->write(base::LogLevel::Error, "app", "cannot take over new certificates",
                  {{"error", applied.error().text()}});
    }
  });
  return {};
}

void Server::drain() {
  const base::Millis deadline = is_draining_ ? base::Millis(0) : model_.process.drain_timeout;
  drain_deadline_ = deadline;
  if (!std::exchange(is_draining_, true)) {
    log_->write(base::LogLevel::Notice, "app", "draining",
                {{"timeout_ms", std::to_string(deadline.count())}});
    if (admin_ != nullptr) {
      admin_->set_draining(true);
    }
  }
  // The first worker may drive connections that the others use: it goes last.
  const std::size_t first = scripts_ != nullptr && workers_left_ > 1 ? 1 : 0;
  for (std::size_t i = first; i < workers_.size(); ++i) {
    workers_[i]->drain(deadline);
  }
}

void Server::tick() {
  retired_admins_.clear();
  config_watch_retired_.reset();
  log_->flush();
  store_->maintain(clock_.now());
  near_stores_->maintain(clock_.now());
  if (scripts_ != nullptr && !is_draining_) {
    scripts_->tick(workers_);
  }
  loop_->timers().arm(*tick_timer_, loop_->now() + kTick);
}

void Server::on_backend_down(const std::string& pool, const std::string& label) {
  loop_->post([this, pool, label] {
    if (const auto found = keepers_.find(pool); found != keepers_.end()) {
      found->second->on_down(label);
    }
  });
}

void Server::on_backend_failed(const std::string& pool, const std::string& label) {
  loop_->post([this, pool, label] {
    if (const auto found = keepers_.find(pool); found != keepers_.end()) {
      found->second->on_failed(label);
    }
  });
}

void Server::on_worker_ended(std::size_t /*index*/) {
  loop_->post([this] {
    if (--workers_left_ == 0) {
      loop_->stop();
    } else if (workers_left_ == 1 && scripts_ != nullptr && is_draining_) {
      workers_.front()->drain(drain_deadline_);
    }
  });
}

}  // namespace kvferry::app
