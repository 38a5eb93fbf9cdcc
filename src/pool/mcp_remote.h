// McpRemote and McpFarEnd: the two ends of the way from a pool on one worker to a backend that
// another worker drives for the whole process.
//
//   this worker                                    the worker that has the connections
//   McpPool -> McpRemote --requests of a turn--> McpFarEnd -> McpBackend -> server
//                  ^                                 |
//                  +----- replies of a turn ---------+
//
// Requests and replies are copied whole. What is on its way is known by number on both sides, so
// either side may give up without the other.
//
// Threads:   each class on its own worker. McpWaiting on that of the McpRemote.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "call/answerer.h"
#include "call/call.h"
#include "net/loop.h"
#include "pool/mcp_door.h"
#include "pool/mcp_server.h"

namespace kvferry::pool {

class McpRemote;

/// One request on its way to the far end.
struct McpRemoteRequest {
  std::uint64_t id = 0;
  std::string bytes;
  std::uint32_t reply_count = 1;  // As in the call ...
  bool is_wide = false;           // ... too.
};
/// ... and its reply on the way back.
struct McpRemoteReply {
  std::uint64_t id = 0;
  std::string bytes;
  memcache::ReplyCode code{};
  call::ReplyOrigin origin{};
  bool is_cut = false;  // `bytes` is not all of it.
};

/// The calls of a McpRemote whose replies have not come. It may outlive it, for replies that nobody
/// waits for any more.
struct McpWaiting {
  std::unordered_map<std::uint64_t, call::Call*> calls;
  McpRemote* remote = nullptr;  // Null: it is gone.
};

class McpRemote final : public McpServer {
 public:
  struct Setup {
    net::Loop& loop;
    std::shared_ptr<McpDoor> home;  // To this worker.
    std::shared_ptr<McpDoor> far;   // To the worker that has the connections.
    std::string prefix;
    std::shared_ptr<const McpBackendOptions> options;
    const call::Answerer& answerer;
  };
  explicit McpRemote(Setup setup);
  McpRemote(const McpRemote&) = delete;
  McpRemote& operator=(const McpRemote&) = delete;
  /// No call may be outstanding.
  ~McpRemote() override;

  // McpServer
  void forward(call::Call& call, std::string_view bytes) override;
  void retire(DrainedCallback on_drained) override { on_drained_ = on_drained; }
  void shut() override;
  bool is_drained() const override { return waiting_->calls.empty(); }
  void on_resolved(const std::string& /*host*/, std::uint16_t /*port*/,
                   const net::Address& /*address*/) override {}
  const McpBackendOptions& options() const override { return *setup_.options; }

  void on_replied();

 private:
  void flush();

  Setup setup_;
  std::uint64_t far_id_;
  std::shared_ptr<McpWaiting> waiting_;
  std::vector<McpRemoteRequest> outbox_;
  net::Task flush_task_;
  std::uint64_t last_id_ = 0;
  DrainedCallback on_drained_;
};

class McpFarEnd final : public call::ReplySink {
 public:
  struct Setup {
    net::Loop& loop;
    call::CallPool& calls;
    std::shared_ptr<McpServer> backend;
    std::shared_ptr<McpDoor> home;  // To the worker that asks.
    std::shared_ptr<McpWaiting> waiting;
  };
  explicit McpFarEnd(Setup setup);
  McpFarEnd(const McpFarEnd&) = delete;
  McpFarEnd& operator=(const McpFarEnd&) = delete;
  /// No call may be outstanding.
  ~McpFarEnd();

  void send(const std::vector<McpRemoteRequest>& requests);
  /// The other end is gone, or this worker ends: lets the backend go.
  void detach() { setup_.backend.reset(); }
  bool is_detached() const { return setup_.backend == nullptr; }
  bool is_drained() const { return slots_.size() == free_.size(); }
  /// Sends the replies that have come, before the end of the turn.
  void flush();

  // call::ReplySink
  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override;

 private:
  std::uint32_t take_slot();

  Setup setup_;
  std::vector<McpRemoteReply> slots_;  // Of outstanding calls, by Call::owner_index.
  std::vector<std::uint32_t> free_;
  std::vector<McpRemoteReply> outbox_;
  net::Task flush_task_;
};

}  // namespace kvferry::pool
