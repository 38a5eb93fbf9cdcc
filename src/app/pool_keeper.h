// PoolKeeper: control's side of one pool: what its names resolve to, which backends are down, and
// the snapshot that follows.
//
//   worker: failure limit reached --> on_down() --> (on_down: rehash) snapshot without it --> probe
//   every retry_timeout
//                                                                        probe answered -->
//                                                                        snapshot with it
// Threads: control.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "net/loop.h"
#include "net/resolver.h"
#include "net/timer.h"
#include "pool/probe.h"
#include "pool/snapshot.h"

namespace kvferry::app {

class PoolKeeper {
 public:
  /// What control lends its keepers; all of it outlives them. `publish` sends the snapshots of all
  /// pools to the workers.
  struct Context {
    net::Loop& loop;
    net::Resolver& resolver;
    base::Log& log;
    std::function<void()> publish;
    net::TlsMonitor* tls_monitor = nullptr;
  };

  /// `before` is the keeper of the same pool in the configuration so far, or null: kept servers
  /// keep address and health.
  static base::Result<std::unique_ptr<PoolKeeper>> make(const Context& context,
                                                        const pool::PoolOptions& options,
                                                        const PoolKeeper* before);
  PoolKeeper(const PoolKeeper&) = delete;
  PoolKeeper& operator=(const PoolKeeper&) = delete;

  /// Starts looking up names, and lets its limits hold. Not part of make(): a configuration that is
  /// refused must ask nobody and change nothing.
  void start();
  const std::shared_ptr<const pool::PoolSnapshot>& snapshot() const { return snapshot_; }
  const pool::PoolOptions& options() const { return options_; }
  /// How often the backend called `label` was ejected.
  std::uint64_t ejections(const std::string& label) const;

  /// A worker saw the failure that took a backend down.
  void on_down(const std::string& label);
  /// A connection failed: its name may mean another address now.
  void on_failed(const std::string& label);

 private:
  struct Server {
    explicit Server(PoolKeeper& keeper_in)
        : keeper(keeper_in),
          timer(net::Timer::Callback::to<&Server::on_timer>(this)),
          lookup_timer(net::Timer::Callback::to<&Server::on_lookup_timer>(this)) {}
    void on_timer() { keeper.probe(*this); }
    void on_lookup_timer() { keeper.look_up(*this); }

    PoolKeeper& keeper;
    std::size_t index = 0;
    net::Address address;
    std::shared_ptr<pool::BackendHealth> health;
    net::Timer timer;                // Until the next probe.
    net::Timer lookup_timer;         // Until the name is looked up again.
    base::SteadyTime next_lookup{};  // Failures cause no look-up before this.
    std::unique_ptr<pool::Probe> prober;
    bool is_name = false;  // Its host must be looked up.
    bool is_looking_up = false;
    bool is_ejected = false;
    std::uint64_t ejections = 0;
  };

  PoolKeeper(Context context, pool::PoolOptions options)
      : context_(std::move(context)), options_(std::move(options)) {}

  /// What a reload must not forget of a server that stays.
  static void take_over(Server& server, const pool::ServerOptions& options,
                        const PoolKeeper& before);
  base::Result<void> open_tls();
  base::Result<void> fill_servers(const PoolKeeper* before);
  base::Result<void> make_snapshot();
  void publish();
  void look_up(Server& server);
  void on_resolved(Server& server, base::Result<net::Resolution> outcome);
  void eject(Server& server);
  void probe(Server& server);
  void on_probed(Server& server, bool is_well);
  Server* find(const std::string& label);

  Context context_;
  pool::PoolOptions options_;
  net::TlsContextPtr tls_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::shared_ptr<const pool::PoolSnapshot> snapshot_;
  std::shared_ptr<bool> alive_ =
      std::make_shared<bool>(true);  // Answers of the resolver may come after the end.
};

}  // namespace kvferry::app
