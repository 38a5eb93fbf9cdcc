// What the tests of links, backends and pools share: a loop, calls, recorded events, and a host for
// one link.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "pool/backend.h"
#include "pool/failure_text.h"
#include "pool/link.h"
#include "tests/support/fake_backend.h"
#include "tests/support/loop_rig.h"
#include "tests/support/recording_sink.h"

namespace kvferry::pool {

class RecordedEvents final : public PoolEvents {
 public:
  void on_backend_down(const PoolOptions& /*pool*/, const ServerOptions& server) override {
    downs.push_back(server.label);
  }
  void on_backend_failure(const PoolOptions& /*pool*/, const ServerOptions& /*server*/,
                          const Failure& failure) override {
    failures.push_back(failure.kind);
  }
  std::vector<std::string> downs;
  std::vector<FailureKind> failures;
};

inline PoolOptions quick_options() {
  PoolOptions options;
  options.name = "p";
  options.backoff_min = base::Millis(20);
  options.backoff_max = base::Millis(200);
  return options;
}

/// Answers a link's questions, and records what becomes of it.
class LinkHostRecorder final : public LinkHost {
 public:
  const net::Address& address() const override { return backend_address; }
  const PoolOptions& options() const override { return pool; }
  BackendStats& stats() override { return counters; }
  std::string failure_line(const Failure& failure) const override {
    return pool::failure_line(pool, "b", failure);
  }
  std::uint64_t random() override { return 1'000'000; }
  bool wants_reconnect() const override { return reconnects; }
  bool secure(net::Stream& /*stream*/) override { return true; }
  const Greeting& greeting() const override { return first_words; }
  void on_link_proven(Link& /*link*/) override { ++proven; }
  void on_link_failed(Link& /*link*/, const Failure& failure) override {
    failures.push_back(failure.kind);
  }
  void on_link_stalled(Link& /*link*/) override { ++stalled; }
  void on_link_empty(Link& /*link*/) override { ++emptied; }

  net::Address backend_address;
  PoolOptions pool = quick_options();
  BackendStats counters;
  Greeting first_words;
  bool reconnects = true;
  int proven = 0;
  int stalled = 0;
  int emptied = 0;
  std::vector<FailureKind> failures;
};

class PoolRig : public testing::TestWithParam<test::Engine> {
 protected:
  PoolRig() : rig_(GetParam()), calls_(rig_.budget), sink_(calls_, *rig_.loop) {}
  ~PoolRig() override { EXPECT_EQ(calls_.live(), 0U) << "calls were not answered"; }

  net::Loop& loop() const { return *rig_.loop; }
  template <typename Done>
  bool run_until(Done done) {
    return rig_.run_until(done);
  }

  test::LoopRig rig_;
  call::CallPool calls_;
  test::RecordingSink sink_;
};

}  // namespace kvferry::pool
