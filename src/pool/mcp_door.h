// McpDoor: the way to the backends of one worker from the threads of others.
//
// Pools for the whole process have one set of connections, which one worker drives. The others send
// it their requests, and it sends back the replies; both go through doors, a batch a turn.
//
// Messages that come before the door is open wait; those that come after it was closed are dropped,
// as the worker is gone and has answered what it held.
//
// Threads:   post() and next_id() from any; open() and close() on the worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "net/loop.h"

namespace kvferry::pool {

class McpBackends;

class McpDoor {
 public:
  using Message = std::function<void(McpBackends&)>;

  /// Runs `message` on the worker.
  void post(Message message);
  /// A number that no other caller gets.
  std::uint64_t next_id() { return last_id_.fetch_add(1, std::memory_order_relaxed) + 1; }

  void open(net::Loop& loop, McpBackends& backends);
  void close();

 private:
  std::mutex mutex_;
  net::Loop* loop_ = nullptr;
  McpBackends* backends_ = nullptr;
  bool is_closed_ = false;
  std::vector<Message> early_;
  std::atomic<std::uint64_t> last_id_{0};
};

}  // namespace kvferry::pool
