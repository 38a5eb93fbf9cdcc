// KeptBackends: the backends of a pool over its snapshots. Servers that stay (same host, port and
// name) keep their links, removed ones drain.
//
// BackendType is a Backend, or what speaks to a Redis server in several lanes (RedisBackend).
// Threads: one worker.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "pool/backend.h"
#include "pool/backoff.h"
#include "pool/pool_context.h"
#include "pool/snapshot.h"

namespace kvferry::pool {

template <typename BackendType>
class KeptBackends {
 public:
  using List = std::vector<std::unique_ptr<BackendType>>;

  KeptBackends(const PoolContext& context, std::shared_ptr<const PoolSnapshot> snapshot)
      : context_(context), random_state_(seed_from(context.loop)) {
    apply(std::move(snapshot));
  }
  KeptBackends(const KeptBackends&) = delete;
  KeptBackends& operator=(const KeptBackends&) = delete;

  /// Takes a new snapshot over.
  void apply(std::shared_ptr<const PoolSnapshot> snapshot) {
    List before = std::exchange(backends_, {});
    // The old snapshot lives until every backend has let go of its options.
    const std::shared_ptr<const PoolSnapshot> old = std::exchange(snapshot_, std::move(snapshot));
    for (std::size_t i = 0; i < options().servers.size(); ++i) {
      backends_.push_back(keep_or_make(i, before));
      if (options().preconnect) {
        backends_.back()->preconnect();
      }
    }
    std::erase_if(draining_, [](const Draining& entry) { return entry.backend->is_drained(); });
    for (auto& backend : before) {
      if (backend != nullptr) {
        backend->retire();
        draining_.push_back(Draining{.snapshot = old, .backend = std::move(backend)});
      }
    }
  }

  /// The pool is removed: everything drains.
  void retire() {
    for (auto& backend : backends_) {
      backend->retire();
    }
  }

  /// Fails what is still outstanding.
  void shut() {
    for (auto& backend : backends_) {
      backend->shut();
    }
    for (auto& entry : draining_) {
      entry.backend->shut();
    }
  }

  bool is_drained() const {
    return std::all_of(backends_.begin(), backends_.end(),
                       [](const auto& backend) { return backend->is_drained(); }) &&
           std::all_of(draining_.begin(), draining_.end(),
                       [](const Draining& entry) { return entry.backend->is_drained(); });
  }

  const PoolSnapshot& snapshot() const { return *snapshot_; }
  const PoolOptions& options() const { return snapshot_->options; }
  /// In the order of the snapshot.
  const List& list() const { return backends_; }
  /// Of this pool, for what is drawn by lot.
  std::uint64_t& random_state() { return random_state_; }

 private:
  /// Removed by a reload; its options stay with it.
  struct Draining {
    std::shared_ptr<const PoolSnapshot> snapshot;
    std::unique_ptr<BackendType> backend;
  };

  static bool is_same_server(const ServerOptions& left, const ServerOptions& right) {
    return left.host == right.host && left.port == right.port && left.name == right.name &&
           left.is_unix == right.is_unix;
  }

  std::uint64_t seed_from(net::Loop& loop) const {
    const auto now = static_cast<std::uint64_t>(loop.now().time_since_epoch().count());
    return (now ^ (reinterpret_cast<std::uintptr_t>(this) * 0x9e3779b97f4a7c15U)) | 1;
  }

  std::unique_ptr<BackendType> keep_or_make(std::size_t index, List& from) {
    const ServerOptions& server = options().servers[index];
    Backend::Setup setup{.options = &options(),
                         .server = server,
                         .address = snapshot_->addresses[index],
                         .health = snapshot_->health[index],
                         .tls = snapshot_->tls};
    const auto found = std::find_if(from.begin(), from.end(), [&](const auto& backend) {
      return backend && is_same_server(backend->server(), server);
    });
    if (found == from.end()) {
      return std::make_unique<BackendType>(std::move(setup), context_.loop, context_.events,
                                           next_random(random_state_));
    }
    (*found)->configure(std::move(setup));
    return std::move(*found);
  }

  PoolContext context_;
  std::shared_ptr<const PoolSnapshot> snapshot_;
  List backends_;
  std::vector<Draining> draining_;
  std::uint64_t random_state_;
};

}  // namespace kvferry::pool
