// One link, its host, and the backend at its other end.
#pragma once

#include "tests/unit/pool/pool_rig.h"

namespace kvferry::pool {

class LinkRig : public PoolRig {
 protected:
  LinkRig() : backend_(loop()) { host_.backend_address = backend_.address(); }
  ~LinkRig() override {
    if (link_) {
      link_->retire();
      link_->shut(FailureKind::Draining);
    }
  }

  void make_link(Link::Use use = Link::Use::Shared) {
    link_ = std::make_unique<Link>(host_, loop(), use);
  }
  /// Sends "get <key>".
  test::Outcome& get(std::string_view key, std::uint64_t lane = 1) {
    const auto refusal = link_->admit();
    EXPECT_FALSE(refusal.has_value()) << failure_name(*refusal);
    test::Outcome& outcome = sink_.make(memcache::Command::Get, lane);
    link_->write("get " + std::string(key) + "\r\n");
    link_->commit(*outcome.call);
    return outcome;
  }
  /// Starts "set k 0 0 <size>".
  test::Outcome& upload(std::size_t size) {
    EXPECT_FALSE(link_->admit().has_value());
    test::Outcome& outcome = sink_.make(memcache::Command::Set);
    link_->write("set k 0 0 " + std::to_string(size) + "\r\n");
    link_->commit_upload(*outcome.call);
    return outcome;
  }
  /// Waits until the backend has `bytes` on connection `index`, and takes them.
  void expect_received(std::string_view bytes, std::size_t index = 0) {
    ASSERT_TRUE(run_until([&] {
      return backend_.peers.size() > index && backend_.peer(index).data.size() >= bytes.size();
    }));
    ASSERT_EQ(backend_.peer(index).take(), bytes);
  }
  /// A first request and its reply.
  void prove() {
    test::Outcome& first = get("first");
    ASSERT_TRUE(
        run_until([&] { return !backend_.peers.empty() && peer().data == "get first\r\n"; }));
    peer().take();
    peer().send("END\r\n");
    ASSERT_TRUE(run_until([&] { return first.is_done; }));
  }
  test::Peer& peer() { return *backend_.peers.back(); }
  std::uint64_t failed(FailureKind kind) const {
    return host_.counters.failures[static_cast<std::size_t>(kind)].get();
  }

  LinkHostRecorder host_;
  test::FakeBackend backend_;
  std::unique_ptr<Link> link_;
};

}  // namespace kvferry::pool
