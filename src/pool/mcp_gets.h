// McpGets: gets of several keys over the backends of scripts. Keys may be those of different pools;
// a backend gets all of its keys at once, in one of two forms (GetForm).
//
//   begin() -> add() for each key -> send(), or abandon()
//
// A key whose backend fails has an error line in its place, as if it had been asked for alone.
//
// Source:    docs/lua.md, "Gets of several keys".
// Lifetime:  outlives the calls that it has answered for.
// Threads:   one worker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pool/mcp_pool.h"
#include "pool/multigets.h"
#include "protocol/memcache/request.h"

namespace kvferry::pool {

/// Hears what the gets keep and when they are over.
class McpGetEvents {
 public:
  /// A get of so many keys is about to be answered to its end.
  virtual void on_get_over(std::uint32_t key_count) = 0;
  /// So many bytes more of replies are kept; and so many are not any more.
  virtual void on_kept(std::size_t bytes) = 0;
  virtual void on_dropped(std::size_t bytes) = 0;

 protected:
  ~McpGetEvents() = default;
};

class McpGets final : public MultiGets {
 public:
  McpGets(net::Loop& loop, call::CallPool& calls, base::MemoryBudget& budget, McpGetEvents& events)
      : MultiGets(loop, calls, budget), events_(events) {}

  void begin(const memcache::Request& request);
  /// `key` lies in the request's line and is none that is too long. False when it cannot be asked
  /// for in this way: abandon() then.
  bool add(std::string_view key, McpPool& pool);
  void abandon();
  /// Sends the keys that were added, which are those of `request`, and answers `parent`.
  void send(call::Call& parent, const memcache::Request& request, GetForm form);

 private:
  void on_over(std::uint32_t key_count) override { events_.on_get_over(key_count); }
  void on_kept(std::size_t bytes) override { events_.on_kept(bytes); }
  void on_dropped(std::size_t bytes) override { events_.on_dropped(bytes); }
  void forget_servers();
  void send_part(const MultiGet& multiget, std::uint16_t index, std::string_view head,
                 GetForm form);

  McpGetEvents& events_;
  // Scratch from begin() to send(), kept to spare allocations.
  std::vector<McpServer*> servers_;  // Of the parts.
  std::string bytes_;                // Of one part.
};

}  // namespace kvferry::pool
