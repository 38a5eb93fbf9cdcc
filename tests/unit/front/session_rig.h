// A service on a real listener, clients, and a target that answers when the test says so.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "front/service.h"
#include "front/session.h"
#include "tests/support/fake_backend.h"
#include "tests/support/loop_rig.h"

namespace kvferry::front {

/// Keeps the calls that it is sent, and can be the source of big replies and the sink of bodies.
class HeldTarget final : public call::Target, public call::ReplySource, public call::BodySink {
 public:
  struct Held {
    call::Call* call = nullptr;
    std::string text;  // The request as it came.
    std::string body;
    bool is_whole = false;  // The last byte of the body has come.
    bool is_lost = false;
    int resumes = 0;
    int discards = 0;
  };

  void send(call::Call& call, const memcache::Request& request) override {
    held.emplace_back();
    held.back().call = &call;
    held.back().text = std::string(request.line.data(), request.size_bytes);
    call.source = this;
    if (!instant_reply.empty()) {
      call::answer(call, instant_reply, memcache::ReplyCode::End);
      held.back().call = nullptr;
      return;
    }
    if (!request.has_complete_value) {
      call.body_sink = this;
      call.body_waits = body_waits;
    }
  }

  /// Passes a part of the reply of the `index`-th request on; true when the session wants a pause.
  bool part(std::size_t index, std::string_view bytes, bool is_first, bool is_last = false,
            bool is_broken = false) {
    call::Call& call = *held.at(index).call;
    if (is_last) {
      held.at(index).call = nullptr;
      call.body_sink = nullptr;
    }
    return call.sink->on_reply(call, {.bytes = bytes,
                                      .code = memcache::ReplyCode::Value,
                                      .is_first = is_first,
                                      .is_last = is_last,
                                      .is_broken = is_broken,
                                      .is_sure = is_sure && !is_last}) == call::Flow::Pause;
  }
  void reply(std::size_t index, std::string_view bytes,
             memcache::ReplyCode code = memcache::ReplyCode::End) {
    call::Call& call = *held.at(index).call;
    held.at(index).call = nullptr;
    call.body_sink = nullptr;
    call::answer(call, bytes, code);
  }
  std::size_t count() const { return held.size(); }
  bool is_outstanding(std::size_t index) const { return held.at(index).call != nullptr; }
  /// Answers all that is outstanding.
  void finish() {
    for (std::size_t i = 0; i < held.size(); ++i) {
      if (is_outstanding(i)) {
        reply(i, "END\r\n");
      }
    }
  }

  void resume(call::Call& call) override { ++find(call).resumes; }
  void discard(call::Call& call) override { ++find(call).discards; }
  call::Flow on_body(call::Call& call, std::string_view bytes, bool is_last) override {
    Held& one = find(call);
    EXPECT_FALSE(one.is_whole || call.body_waits);
    one.body += bytes;
    one.is_whole = is_last;
    if (is_last) {
      call.body_sink = nullptr;
    }
    return pauses_body && !is_last ? call::Flow::Pause : call::Flow::Continue;
  }
  void on_body_lost(call::Call& call) override {
    Held& one = find(call);
    one.is_lost = true;
    reply(static_cast<std::size_t>(&one - &held.front()), "SERVER_ERROR lost\r\n",
          memcache::ReplyCode::ServerError);
  }

  std::vector<Held> held;
  std::string instant_reply;  // When set: everything is answered with it from within send().
  bool is_sure = true;        // Parts are of replies that cannot be cut off.
  bool body_waits = false;
  bool pauses_body = false;

 private:
  Held& find(const call::Call& call) {
    for (Held& one : held) {
      if (one.call == &call) {
        return one;
      }
    }
    ADD_FAILURE() << "asked about a call that is not outstanding";
    return held.front();
  }
};

class FixedCommands final : public LocalCommands {
 public:
  std::string_view version() const override { return "1.2.3"; }
  bool stats(std::string_view words, std::string& out) override {
    if (words == "none") {
      return false;
    }
    out += "STAT words <" + std::string(words) + ">\r\nEND\r\n";
    return true;
  }
  void on_binary_client(int fd) override {
    EXPECT_GE(fd, 0);
    ++binary_clients;
  }
  void set_verbosity(unsigned level) override { verbosity = level; }

  bool administer(const memcache::Request& request, std::string& out) override {
    if (request.command != memcache::Command::Shutdown) {
      return false;
    }
    out += "SERVER_ERROR: shutdown not enabled\r\n";
    return true;
  }

  unsigned verbosity = 99;
  int binary_clients = 0;
};

class SessionRig : public testing::TestWithParam<test::Engine> {
 protected:
  SessionRig() : rig_(GetParam()), calls_(rig_.budget), sessions_(session_bytes(), rig_.budget) {
    make();
  }
  ~SessionRig() override {
    target_.finish();
    service_->close_all();
    target_.finish();
    rig_.run_turns(4);
    EXPECT_TRUE(service_->is_drained());
    EXPECT_EQ(calls_.live(), 0U);
    EXPECT_EQ(process_limit_.count(), 0U);
    EXPECT_EQ(service_->shared_stats()->connections.get(), 0U);
    EXPECT_EQ(service_->shared_stats()->inflight.get(), 0U);
  }

  void make() {
    limit_ = std::make_shared<ClientLimit>(0);
    service_ = std::make_unique<Service>(ServiceContext{.loop = *rig_.loop,
                                                        .calls = calls_,
                                                        .sessions = sessions_,
                                                        .budget = rig_.budget,
                                                        .commands = commands_,
                                                        .watch = hub_pointer_},
                                         options_, target_, process_limit_, limit_);
    listener_ = rig_.loop->listen(test::LoopRig::loopback(), {}, *service_).value();
  }
  void configure() { service_->configure(options_, target_); }

  test::Peer& connect() {
    clients_.push_back(std::make_unique<test::Peer>());
    test::Peer& client = *clients_.back();
    client.stream = rig_.loop->connect(listener_->address(), {}, client).value();
    EXPECT_TRUE(run_until([&] { return client.is_connected; }));
    return client;
  }
  template <typename Done>
  bool run_until(Done done) {
    return rig_.run_until(done);
  }
  bool wait_for_requests(std::size_t count) {
    return run_until([&] { return target_.count() >= count; });
  }
  /// Waits for just `bytes` at the client, and takes them.
  void expect_client(test::Peer& client, std::string_view bytes) {
    ASSERT_TRUE(run_until([&] { return client.data.size() >= bytes.size(); }));
    ASSERT_EQ(client.take(), bytes);
  }
  void expect_closed(test::Peer& client) {
    ASSERT_TRUE(run_until([&] { return client.is_gone(); }));
  }
  const ServiceStats& stats() const { return *service_->shared_stats(); }
  void settle() { rig_.run_for(base::Millis(15)); }

  test::LoopRig rig_;
  call::CallPool calls_;
  base::SlabPool sessions_;
  FixedCommands commands_;
  HeldTarget target_;
  watch::Hub* hub_pointer_ = nullptr;  // For services made from then on.
  ServiceOptions options_;
  ClientLimit process_limit_{0};
  std::shared_ptr<ClientLimit> limit_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<net::Listener> listener_;
  std::vector<std::unique_ptr<test::Peer>> clients_;
};

}  // namespace kvferry::front
