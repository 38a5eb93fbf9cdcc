// What clients of Redis have asked one listener for, on one worker; summed over workers when
// somebody looks.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/counter.h"
#include "protocol/redis_commands/command_table.h"

namespace kvferry::front {

struct RespCommandStats {
  base::Counter calls;
  base::Counter microseconds;  // From parsed to answered, of all calls.
  base::Counter rejected;      // Refused before they were passed on.
  base::Counter failed;        // Answered with an error.
};

/// One row a command, by its place in the table; the place behind the last one is for commands that
/// the table does not have. Made when the first command comes: most listeners have no clients of
/// Redis.
class RespStats {
 public:
  RespStats() = default;
  RespStats(const RespStats&) = delete;
  RespStats& operator=(const RespStats&) = delete;
  ~RespStats() {
    delete[] rows_.load(std::memory_order_relaxed);  // NOLINT(cppcoreguidelines-owning-memory):
                                                     // published once by an atomic pointer
  }

  /// Owning thread.
  RespCommandStats& of(redis::CommandId command) {
    RespCommandStats* rows = rows_.load(std::memory_order_relaxed);
    if (rows == nullptr) [[unlikely]] {
      // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): see the destructor
      rows = new RespCommandStats[redis::command_count() + 1];
      rows_.store(rows, std::memory_order_release);
    }
    return rows[command];
  }
  /// Any thread; null while there was no command.
  const RespCommandStats* find(redis::CommandId command) const noexcept {
    const RespCommandStats* rows = rows_.load(std::memory_order_acquire);
    return rows == nullptr ? nullptr : rows + command;
  }

 private:
  std::atomic<RespCommandStats*> rows_{nullptr};
};

}  // namespace kvferry::front
