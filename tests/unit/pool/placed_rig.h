// Several fake backends behind one placement, and keys that belong to each of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pool/placement.h"
#include "pool/pool_context.h"
#include "pool/snapshot.h"
#include "tests/unit/pool/pool_rig.h"

namespace kvferry::pool {

class PlacedRig : public PoolRig {
 protected:
  std::shared_ptr<const PoolSnapshot> snapshot() {
    auto made = std::make_shared<PoolSnapshot>();
    made->options = options_;
    made->options.servers.clear();
    for (std::size_t i = 0; i < fakes_.size(); ++i) {
      ServerOptions server;
      server.host = "127.0.0.1";
      server.port = fakes_[i]->address().port();
      server.label = server.point_label = "b" + std::to_string(i);
      made->options.servers.push_back(server);
      made->addresses.push_back(fakes_[i]->address());
      made->health.push_back(std::make_shared<BackendHealth>(options_.failure_limit));
    }
    made->placement = Placement::make(made->options.placement, made->options.servers,
                                      std::vector<bool>(fakes_.size(), true))
                          .value();
    return made;
  }
  /// Starts the backends and makes a first snapshot of them.
  void start(std::size_t backends) {
    options_.placement.distribution = DistributionKind::Modula;
    for (std::size_t i = 0; i < backends; ++i) {
      fakes_.push_back(std::make_unique<test::FakeBackend>(loop()));
    }
    snapshot_ = snapshot();
  }
  PoolContext context() {
    return {.loop = loop(), .calls = calls_, .budget = rig_.budget, .events = events_};
  }

  /// The `number`-th key of backend `backend`.
  std::string key(std::size_t backend, std::size_t number = 0) const {
    std::uint64_t random = 1;
    for (std::size_t i = 0;; ++i) {
      std::string text = "k" + std::to_string(i);
      if (snapshot_->placement->select(text, random) == backend && number-- == 0) {
        return text;
      }
    }
  }
  /// Waits for the one connection to backend `backend` and for `bytes` on it, and takes them.
  void expect_received(std::size_t backend, std::string_view bytes) {
    ASSERT_TRUE(run_until([&] { return fakes_[backend]->received().size() >= bytes.size(); }));
    ASSERT_EQ(fakes_[backend]->peers.back()->take(), bytes);
  }
  void reply(std::size_t backend, std::string_view bytes) {
    fakes_[backend]->peers.back()->send(bytes);
  }
  void cut(std::size_t backend) { fakes_[backend]->peers.back()->close(); }
  bool wait_for(const test::Outcome& outcome) {
    return run_until([&] { return outcome.is_done; });
  }

  PoolOptions options_ = quick_options();
  RecordedEvents events_;
  std::vector<std::unique_ptr<test::FakeBackend>> fakes_;
  std::shared_ptr<const PoolSnapshot> snapshot_;
};

}  // namespace kvferry::pool
