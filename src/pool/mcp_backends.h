// McpBackends: the live backends of one worker's scripts, so that pools which name the same one
// share its connections, and a reload that changes nothing keeps them.
//
// A backend is known by the prefix of its pool and its label. Asked for with other options, a new
// one takes its place, and pools that hold the old one keep it. Backends of pools for the whole
// process are a set of their own; one worker has their connections, and the others ask it
// (mcp_remote.h).
//
// A script's garbage collector may drop a pool at any time, also while a reply is being delivered:
// backends that nobody holds are set aside, and destroyed between turns once their calls are
// answered.
//
// Lifetime:  outlives everything that acquire() gave out.
// Threads:   one worker; others come through its door.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "call/answerer.h"
#include "net/address.h"
#include "net/loop.h"
#include "pool/mcp_context.h"
#include "pool/mcp_door.h"
#include "pool/mcp_remote.h"
#include "pool/mcp_server.h"

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
  std::shared_ptr<McpServer> acquire(const std::string& prefix,
                                     const std::shared_ptr<const McpBackendOptions>& options,
                                     bool is_process_wide = false);

  /// The answer to McpNames::resolve(); an unset address: the name has none.
  void on_resolved(const std::string& host, std::uint16_t port, const net::Address& address);

  /// For the end of the process: fails what is outstanding at backends that no pool of this worker
  /// holds any more, and what others have asked for.
  void shut();
  /// Whether no backend is left.
  bool is_drained() const { return live_.empty() && aside_.empty() && far_ends_.empty(); }

  // For McpRemote, through the door.
  void attach_far_end(std::uint64_t id, const std::string& prefix,
                      const std::shared_ptr<const McpBackendOptions>& options,
                      std::shared_ptr<McpDoor> home, std::shared_ptr<McpWaiting> waiting);
  void detach_far_end(std::uint64_t id);
  /// Null when there is none.
  McpFarEnd* far_end(std::uint64_t id);

 private:
  using Key = std::tuple<bool, std::string, std::string>;  // Process-wide, prefix, label.

  std::unique_ptr<McpServer> make(const std::string& prefix,
                                  const std::shared_ptr<const McpBackendOptions>& options,
                                  bool is_process_wide);
  const call::Answerer& answerer_of(const McpBackendOptions& options);
  void release(McpServer* server);
  void on_drained() { context_.loop.defer(reap_task_); }
  void reap();

  McpContext context_;
  std::shared_ptr<McpDoor> door_;  // To this worker.
  std::map<Key, std::weak_ptr<McpServer>> known_;
  std::vector<McpServer*> live_;                   // Held by some pool.
  std::vector<std::unique_ptr<McpServer>> aside_;  // Held by none.
  std::map<std::uint64_t, std::unique_ptr<McpFarEnd>> far_ends_;
  std::vector<std::unique_ptr<call::Answerer>>
      answerers_;  // Calls that are answered point to them.
  net::Task reap_task_;
};

}  // namespace kvferry::pool
