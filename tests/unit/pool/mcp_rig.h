// Backends of scripts over a fake server that answers the question for the version by itself.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pool/mcp_backend.h"
#include "pool/mcp_backends.h"
#include "pool/mcp_pool.h"
#include "tests/unit/pool/pool_rig.h"

namespace kvferry::pool {

inline constexpr std::string_view kFailureText = "SERVER_ERROR backend failure\r\n";

class McpRecorder final : public McpEvents, public McpNames, public McpMemory {
 public:
  struct Error {
    McpFailure failure;
    std::size_t depth;
    std::string unread;
    friend bool operator==(const Error&, const Error&) = default;
  };
  struct Bad {
    bool is_flapping;
    base::Seconds pause;
    friend bool operator==(const Bad&, const Bad&) = default;
  };

  void on_backend_error(const McpBackendOptions& /*backend*/, McpFailure failure, std::size_t depth,
                        std::string_view unread) override {
    errors.push_back({failure, depth, std::string(unread)});
  }
  void on_marked_bad(const McpBackendOptions& /*backend*/, bool is_flapping,
                     base::Seconds pause) override {
    bads.push_back({is_flapping, pause});
  }
  void resolve(const std::string& host, std::uint16_t port) override {
    asked.emplace_back(host, port);
  }
  bool has_reply_room() override { return has_room; }

  std::vector<Error> errors;
  std::vector<Bad> bads;
  std::vector<std::pair<std::string, std::uint16_t>> asked;
  bool has_room = true;
};

inline void PrintTo(const McpRecorder::Error& error, std::ostream* out) {
  *out << mcp_failure_word(error.failure) << " depth " << error.depth << " unread " << error.unread;
}

class McpRig : public PoolRig {
 protected:
  McpRig()
      : server_(loop()),
        stats_(std::make_shared<McpStats>()),
        backends_(McpContext{.loop = loop(),
                             .events = recorder_,
                             .stats = stats_,
                             .names = &recorder_,
                             .memory = &recorder_,
                             .process_door = nullptr}) {
    options_.label = "b1";
    options_.host = "127.0.0.1";
    options_.port = std::to_string(server_.address().port());
    options_.read_timeout = base::Seconds(10);
    answer_version(server_);
  }
  ~McpRig() override {
    backend_.reset();
    backends_.shut();
    EXPECT_TRUE(run_until([&] { return backends_.is_drained(); }));
  }

  /// New connections of `server` answer "version", and keep what comes behind it.
  static void answer_version(test::FakeBackend& server) {
    server.on_input = [](test::Peer& peer) {
      if (peer.data.starts_with("version\r\n")) {
        peer.data.erase(0, std::string_view("version\r\n").size());
        peer.send("VERSION 1.6.45\r\n");
      }
    };
  }

  McpBackend& make() {
    backend_ = std::dynamic_pointer_cast<McpBackend>(
        backends_.acquire("", std::make_shared<McpBackendOptions>(options_)));
    return *backend_;
  }
  McpLink& link(std::size_t index = 0) { return *backend_->links().at(index); }
  bool wait_ready(std::size_t index = 0) {
    return run_until([&] { return link(index).phase() == McpLink::Phase::Ready; });
  }
  void make_ready() {
    make();
    for (std::size_t i = 0; i < backend_->links().size(); ++i) {
      ASSERT_TRUE(wait_ready(i));
    }
  }
  /// Sends "mg <key> v".
  test::Outcome& ask(std::string_view key) {
    test::Outcome& outcome = sink_.make(memcache::Command::Mg);
    backend_->forward(*outcome.call, "mg " + std::string(key) + " v\r\n");
    return outcome;
  }
  bool wait_received(std::string_view bytes, std::size_t index = 0) {
    return run_until([&] {
             return server_.peers.size() > index && server_.peer(index).data.size() >= bytes.size();
           }) &&
           server_.peer(index).take() == bytes;
  }
  /// Ends the turn, and with it the batch.
  void end_turn() { rig_.run_turns(1); }

  McpBackendOptions options_;
  McpRecorder recorder_;
  test::FakeBackend server_;
  std::shared_ptr<McpStats> stats_;
  McpBackends backends_;
  std::shared_ptr<McpBackend> backend_;
};

}  // namespace kvferry::pool
