// ListenKeeper: control's side of listeners. Sockets for all workers are opened before a
// configuration is applied, so that an address that cannot be bound refuses the whole of it.
//
// Threads: control.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "app/plan.h"
#include "base/result.h"
#include "config/model.h"
#include "net/tls_context.h"

namespace kvferry::app {

/// Where the TLS of listeners comes from.
struct TlsSources {
  net::TlsMonitor* monitor = nullptr;  // Outlives the plans.
  /// Taken for listeners with these options; certificates are read anew for all others.
  net::TlsContextPtr ready{};
};

/// Listeners of one configuration, with the sockets that workers have not been given yet.
class ListenSet {
 public:
  ListenSet() = default;
  ListenSet(const ListenSet&) = delete;
  ListenSet& operator=(const ListenSet&) = delete;
  ListenSet(ListenSet&&) noexcept = default;
  // Nobody needs it, and the sockets that it would overwrite would stay open.
  ListenSet& operator=(ListenSet&&) = delete;
  /// Closes what was not handed out.
  ~ListenSet();

  /// Opens `workers` sockets for each listener of `model` that `before` does not have; takes those
  /// that it has over.
  static base::Result<ListenSet> open(const config::Model& model, std::size_t workers,
                                      const ListenSet& before) {
    return open(model, workers, before, TlsSources{});
  }
  static base::Result<ListenSet> open(const config::Model& model, std::size_t workers,
                                      const ListenSet& before, const TlsSources& tls);

  const std::vector<ListenerPlan>& plans() const { return plans_; }
  /// The configuration was accepted: its limits hold from now on, for kept listeners too.
  void adopt();
  /// The sockets of worker `index`, one per listener, -1 where the worker has it already. Each is
  /// handed out once.
  std::vector<int> take_sockets(std::size_t index);

 private:
  struct Entry {
    config::Endpoint endpoint;
    std::uint32_t max_clients = 0;
    std::vector<int> sockets;  // By worker; -1 once handed out.
  };

  /// Adds the entry of `listener`, with the sockets that `before` has or with new ones.
  base::Result<void> take_or_open(const config::ListenerOptions& listener, ListenerPlan& plan,
                                  std::size_t workers, const ListenSet& before);
  base::Result<void> open_one(const config::ListenerOptions& options, ListenerPlan& plan,
                              std::size_t workers, Entry& entry);

  std::vector<ListenerPlan> plans_;
  std::vector<Entry> entries_;  // Beside plans_.
};

}  // namespace kvferry::app
