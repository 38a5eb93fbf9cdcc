// McpBackends: the live backends of one worker's scripts, so that pools which name the same one
// share its connections, and a reload that changes nothing keeps them.
//
// A backend is known by the prefix of its pool and its label. Asked for with other options, a new
// one takes its place, and pools that hold the old one keep it.
//
// A script's garbage collector may drop a pool at any time, also while a reply is being delivered:
// backends that nobody holds are set aside, and destroyed between turns once their calls are
// answered.
//
// Lifetime:  outlives everything that acquire() gave out.
// Threads:   one worker.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "call/answerer.h"
#include "net/address.h"
#include "net/loop.h"
#include "pool/mcp_backend.h"
#include "pool/mcp_context.h"

namespace kvferry::pool {

class McpBackends {
 public:
  explicit McpBackends(McpContext context);
  McpBackends(const McpBackends&) = delete;
  McpBackends& operator=(const McpBackends&) = delete;
  /// No call may be outstanding.
  ~McpBackends();

  /// The live backend of `prefix` and the label of `options`; a new one when there is none with
  /// equal options.
  std::shared_ptr<McpBackend> acquire(const std::string& prefix,
                                      const std::shared_ptr<const McpBackendOptions>& options);

  /// The answer to McpNames::resolve(); an unset address: the name has none.
  void on_resolved(const std::string& host, std::uint16_t port, const net::Address& address);

  /// For the end of the process: fails what is outstanding at backends that no pool holds any more.
  void shut();
  /// Whether no backend is left.
  bool is_drained() const { return live_.empty() && aside_.empty(); }

 private:
  using Key = std::pair<std::string, std::string>;  // Prefix, label.

  const call::Answerer& answerer_of(const McpBackendOptions& options);
  void release(McpBackend* backend);
  void on_drained() { context_.loop.defer(reap_task_); }
  void reap();

  McpContext context_;
  std::map<Key, std::weak_ptr<McpBackend>> known_;
  std::vector<McpBackend*> live_;                   // Held by some pool.
  std::vector<std::unique_ptr<McpBackend>> aside_;  // Held by none.
  std::vector<std::unique_ptr<call::Answerer>>
      answerers_;  // Calls that are answered point to them.
  net::Task reap_task_;
};

}  // namespace kvferry::pool
