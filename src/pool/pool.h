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
#include <utility>
#include <vector>

#include "call/call.h"
#include "net/loop.h"
#include "pool/backend.h"
#include "pool/kept_backends.h"
#include "pool/pool_context.h"
#include "pool/pool_gets.h"
#include "pool/snapshot.h"

namespace kvferry::pool {

class Pool final : public call::Target {
 public:
  Pool(const PoolContext& context, std::shared_ptr<const PoolSnapshot> snapshot);
  ~Pool() override;

  void send(call::Call& call, const memcache::Request& request) override;

  /// Takes a new snapshot over: kept servers (same host, port and name) keep their links, removed
  /// ones drain.
  void apply(std::shared_ptr<const PoolSnapshot> snapshot) { kept_.apply(std::move(snapshot)); }
  /// Removed from the configuration: everything drains.
  void retire() { kept_.retire(); }
  /// Fails what is still outstanding, at the end of a drain.
  void shut() { kept_.shut(); }
  bool is_drained() const { return kept_.is_drained(); }

  const PoolOptions& options() const { return kept_.options(); }
  const std::vector<std::unique_ptr<Backend>>& backends() const { return kept_.list(); }

 private:
  void send_to_one(Backend& backend, call::Call& call, const memcache::Request& request);
  void send_to_many(call::Call& call, const memcache::Request& request);
  void broadcast(call::Call& call, const memcache::Request& request);
  void refuse_all_down(call::Call& call) const;

  PoolContext context_;
  KeptBackends<Backend> kept_;
  PoolGets gets_;
  std::string scratch_;  // Requests that must be rewritten.
};

}  // namespace kvferry::pool
