// The snapshot of a server's store: read before its workers begin, written after they have ended.
#include <chrono>
#include <csignal>
#include <utility>

#include "app/server.h"
#include "app/snapshot_file.h"

namespace kvferry::app {
namespace {

/// A signal to end that nobody has taken yet. They are all blocked.
bool is_end_asked_for() {
  sigset_t pending;
  return sigpending(&pending) == 0 &&
         (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

AskSnapshotStop ask_until(base::Millis timeout) {
  return [end = std::chrono::steady_clock::now() + timeout] {
    return is_end_asked_for()                        ? SnapshotStop::IsUnwanted
           : std::chrono::steady_clock::now() >= end ? SnapshotStop::TimeIsOver
                                                     : SnapshotStop::GoOn;
  };
}

std::string millis_since(base::SteadyTime begin) {
  const auto taken = std::chrono::steady_clock::now() - begin;
  return std::to_string(std::chrono::duration_cast<base::Millis>(taken).count());
}

}  // namespace

base::Result<void> Server::read_snapshot(const config::StoreOptions& options) {
  if (options.snapshot.empty()) {
    return {};
  }
  const base::SteadyTime begin = std::chrono::steady_clock::now();
  auto read = app::read_snapshot(options.snapshot, *store_, clock_.now(),
                                 ask_until(options.snapshot_timeout));
  base::Result<void> place = check_snapshot_place(options.snapshot);
  const bool is_bad = !read || !place;
  if (is_bad) {
    const base::Error& error = read ? place.error() : read.error();
    if (options.on_bad_snapshot == config::OnBadSnapshot::Refuse || is_end_asked_for()) {
      return error;
    }
    store_->flush(store::kNever, clock_.now());
    log_->write(base::LogLevel::Error, "store", "starts without its snapshot",
                {{"error", error.text()}});
    return {};
  }
  if (!*read) {
    log_->write(base::LogLevel::Notice, "store", "there is no snapshot to read",
                {{"file", options.snapshot}});
    return {};
  }
  const SnapshotRead& done = **read;
  log_->write(done.is_whole ? base::LogLevel::Notice : base::LogLevel::Warning, "store",
              done.is_whole ? "snapshot read" : "snapshot read in part: snapshot_timeout was over",
              {{"file", options.snapshot},
               {"items", std::to_string(done.counts.stored)},
               {"expired", std::to_string(done.counts.expired)},
               {"too_large", std::to_string(done.counts.too_large)},
               {"no_memory", std::to_string(done.counts.no_memory)},
               {"written_at", std::to_string(done.written_at.get())},
               {"ms", millis_since(begin)}});
  return {};
}

bool Server::write_snapshot() {
  const config::StoreOptions& options = model_.process.store;
  if (options.snapshot.empty()) {
    return true;
  }
  const base::SteadyTime begin = std::chrono::steady_clock::now();
  auto written = app::write_snapshot(options.snapshot, *store_, clock_.now(),
                                     ask_until(options.snapshot_timeout));
  if (!written) {
    log_->write(base::LogLevel::Error, "store", "no snapshot was written",
                {{"error", written.error().text()}});
    return false;
  }
  log_->write(base::LogLevel::Notice, "store", "snapshot written",
              {{"file", options.snapshot},
               {"items", std::to_string(written->items)},
               {"bytes", std::to_string(written->bytes)},
               {"ms", millis_since(begin)}});
  return true;
}

}  // namespace kvferry::app
