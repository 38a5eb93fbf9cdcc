// Pool: backends behind one hash. The target that most requests end at.
//
//   one key      -> placement -> backend -> link
//   several keys -> one part per backend, merged again in request order (multiget.h)
//   big value    -> an exclusive link of the key's backend, streamed
//
// Threads: one worker. apply() comes through the worker's mailbox, between turns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "call/call.h"
#include "net/loop.h"
#include "pool/backend.h"
#include "pool/pool_gets.h"
#include "pool/snapshot.h"

namespace kvferry::pool {

/// What a worker lends its pools; all of it outlives them.
struct PoolContext {
  net::Loop& loop;
  call::CallPool& calls;
  base::MemoryBudget& budget;
  PoolEvents& events;
};

class Pool final : public call::Target {
 public:
  Pool(const PoolContext& context, std::shared_ptr<const PoolSnapshot> snapshot);
  ~Pool() override;

  void send(call::Call& call, const memcache::Request& request) override;

  /// Takes a new snapshot over: kept servers (same host, port and name) keep their links, removed
  /// ones drain.
  void apply(std::shared_ptr<const PoolSnapshot> snapshot);
  /// Removed from the configuration: everything drains.
  void retire();
  /// Fails what is still outstanding, at the end of a drain.
  void shut();
  bool is_drained() const;

  const PoolOptions& options() const { return snapshot_->options; }
  const std::vector<std::unique_ptr<Backend>>& backends() const { return backends_; }

 private:
  void send_to_one(Backend& backend, call::Call& call, const memcache::Request& request);
  void send_to_many(call::Call& call, const memcache::Request& request);
  void broadcast(call::Call& call, const memcache::Request& request);
  void refuse_all_down(call::Call& call) const;
  std::unique_ptr<Backend> take_backend(const ServerOptions& server,
                                        std::vector<std::unique_ptr<Backend>>& from);

  PoolContext context_;
  std::shared_ptr<const PoolSnapshot> snapshot_;
  std::vector<std::unique_ptr<Backend>> backends_;  // In the order of the snapshot.
  /// Removed by a reload; its options stay with it.
  struct Draining {
    std::shared_ptr<const PoolSnapshot> snapshot;
    std::unique_ptr<Backend> backend;
  };
  std::vector<Draining> draining_;
  PoolGets gets_;
  std::string scratch_;  // Requests that must be rewritten.
  std::uint64_t random_state_;
};

}  // namespace kvferry::pool
