// McpServer: a server as the pools of one worker see it, wherever its connections are.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/delegate.h"
#include "call/call.h"
#include "net/address.h"
#include "pool/mcp_options.h"

namespace kvferry::pool {

class McpServer {
 public:
  using DrainedCallback = base::Delegate<void()>;

  virtual ~McpServer() = default;

  /// Sends a whole request, or answers `call` with the failure line.
  virtual void forward(call::Call& call, std::string_view bytes) = 0;

  /// No pool names it any more: connects no more, and calls `on_drained` when its last call is
  /// answered.
  virtual void retire(DrainedCallback on_drained) = 0;
  /// Fails what is outstanding; after retire().
  virtual void shut() = 0;
  virtual bool is_drained() const = 0;

  /// What a look-up of the name of `host` and `port` brought; unset: nothing.
  virtual void on_resolved(const std::string& host, std::uint16_t port,
                           const net::Address& address) = 0;

  virtual const McpBackendOptions& options() const = 0;

 private:
  friend class McpGets;
  std::uint32_t get_part_ = 0;  // The part of the get that is being placed, plus one; 0: none.
};

/// Answers `call` as a failed backend does.
void answer_mcp_failure(call::Call& call);

}  // namespace kvferry::pool
