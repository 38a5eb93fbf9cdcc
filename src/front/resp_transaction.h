// RespTransaction: what a client has said since MULTI.
//
// Threads: one worker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/redis_commands/request.h"

namespace kvferry::front {

/// Commands of one transaction, and their bytes.
inline constexpr std::size_t kTransactionCommandsMax = 10'000;
inline constexpr std::size_t kTransactionBytesMax = std::size_t{64} << 20;

class RespTransaction {
 public:
  /// False: the limits are reached, and it was not taken.
  bool add(const redis::Command& command, std::uint32_t arg_count, std::string_view bytes) {
    if (commands_.size() >= kTransactionCommandsMax ||
        bytes_.size() + bytes.size() > kTransactionBytesMax) {
      return false;
    }
    commands_.push_back({.command = &command,
                         .arg_count = arg_count,
                         .begin = bytes_.size(),
                         .size_bytes = bytes.size()});
    bytes_.append(bytes);
    return true;
  }
  /// A command was refused: EXEC will be, too.
  void fail() noexcept { has_failed_ = true; }
  bool has_failed() const noexcept { return has_failed_; }
  std::size_t size() const noexcept { return commands_.size(); }
  redis::Block block(resp::Version version, std::uint32_t database) const noexcept {
    return {.commands = commands_, .bytes = bytes_, .version = version, .database = database};
  }

 private:
  std::vector<redis::QueuedCommand> commands_;
  std::string bytes_;
  bool has_failed_ = false;
};

}  // namespace kvferry::front
