// McpBackend: one server as the scripts of one worker see it: its connections, and which of them
// gets the next calls.
//
// Calls of one turn make a batch, which goes to one connection: the first that is well and idle,
// else the least loaded that is well. The depth limit looks at a batch when it begins, so a batch
// may overshoot it. When all connections are bad, calls fail at once.
//
// Source:    docs/lua.md, "Backends".
// Lifetime:  shared by the pools that name it; see McpBackends.
// Threads:   one worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "call/answerer.h"
#include "call/call.h"
#include "net/address.h"
#include "net/loop.h"
#include "pool/mcp_context.h"
#include "pool/mcp_link.h"
#include "pool/mcp_server.h"

namespace kvferry::pool {

class McpBackend final : public McpServer, public McpLinkHost {
 public:
  /// Connects at the end of this turn. `answerer` lives as long as the worker.
  McpBackend(McpContext context, std::shared_ptr<const McpBackendOptions> options,
             const call::Answerer& answerer);
  McpBackend(const McpBackend&) = delete;
  McpBackend& operator=(const McpBackend&) = delete;
  /// No call may be outstanding.
  ~McpBackend() override;

  // McpServer. An address that is known stays when a look-up brings none.
  void forward(call::Call& call, std::string_view bytes) override;
  void retire(DrainedCallback on_drained) override;
  void shut() override;
  bool is_drained() const override;
  void on_resolved(const std::string& host, std::uint16_t port,
                   const net::Address& address) override;

  std::uint16_t port() const { return port_; }
  const std::vector<std::unique_ptr<McpLink>>& links() const { return links_; }

  // McpLinkHost, and McpServer
  const McpBackendOptions& options() const override { return *options_; }
  const net::Address& address() const override { return address_; }
  void ask_address() override;
  bool has_reply_room() override;
  void on_link_failed(McpFailure failure, std::size_t depth, std::string_view unread) override;
  void on_link_retried() override;
  void on_link_bad(bool is_flapping, base::Seconds pause) override;
  void on_link_well() override;
  void on_link_retired() override;

 private:
  void begin_batch();
  McpLink* choose_link() const;
  void on_batch_over() {}

  McpContext context_;
  std::shared_ptr<const McpBackendOptions> options_;
  const call::Answerer& answerer_;
  std::shared_ptr<McpLabelStats> label_stats_;  // Null: never connected to.
  std::vector<std::unique_ptr<McpLink>> links_;
  net::Address address_;
  std::uint16_t port_ = 0;
  bool is_name_ = false;   // The host is no address.
  bool is_asked_ = false;  // The name is being looked up.
  // The batch is open while the task is queued.
  net::Task batch_task_;
  McpLink* batch_link_ = nullptr;
  bool is_batch_refused_ = false;
  DrainedCallback on_drained_;
};

}  // namespace kvferry::pool
