// RespTransaction: what a client has said since MULTI.
//
//   Open --command refused--> Failed     EXEC is refused; commands are queued for nothing
//     \--------idle too long--> Dropped   the same, and nothing is kept
//
// Threads: one worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "call/redis_target.h"
#include "net/loop.h"
#include "net/timer.h"
#include "protocol/redis_commands/request.h"

namespace kvferry::front {

/// Commands of one transaction, and their bytes.
inline constexpr std::size_t kTransactionCommandsMax = 10'000;
inline constexpr std::size_t kTransactionBytesMax = std::size_t{64} << 20;

class RespTransaction {
 public:
  enum class Phase : std::uint8_t { Open, Failed, Dropped };

  /// `on_idle` is called when nothing was added for `idle_max`; none: never.
  RespTransaction(net::Loop& loop, std::optional<base::Millis> idle_max,
                  net::Timer::Callback on_idle)
      : loop_(loop), idle_max_(idle_max), timer_(on_idle) {
    restart_timer();
  }

  /// False: the limits are reached, and it was not taken.
  bool add(const redis::Command& command, std::uint32_t arg_count, std::string_view bytes) {
    if (phase_ == Phase::Dropped) {
      return true;
    }
    if (commands_.size() >= kTransactionCommandsMax ||
        bytes_.size() + bytes.size() > kTransactionBytesMax) {
      return false;
    }
    restart_timer();
    commands_.push_back({.command = &command,
                         .arg_count = arg_count,
                         .begin = bytes_.size(),
                         .size_bytes = bytes.size()});
    bytes_.append(bytes);
    return true;
  }
  /// A command was refused: EXEC will be, too.
  void fail() noexcept { phase_ = phase_ == Phase::Open ? Phase::Failed : phase_; }
  /// Its time is over: nothing is kept.
  void drop() noexcept {
    phase_ = Phase::Dropped;
    std::vector<redis::QueuedCommand>().swap(commands_);
    std::string().swap(bytes_);
  }
  Phase phase() const noexcept { return phase_; }
  std::size_t size() const noexcept { return commands_.size(); }
  /// Where its keys are, for the target.
  call::BlockPlace& place() noexcept { return place_; }
  /// SELECT is among its commands: the database that they leave behind.
  void select(std::uint32_t database) noexcept { selected_ = database; }
  std::optional<std::uint32_t> selected() const noexcept { return selected_; }
  redis::Block block(resp::Version version, std::uint32_t database) const noexcept {
    return {.commands = commands_, .bytes = bytes_, .version = version, .database = database};
  }

 private:
  void restart_timer() {
    if (idle_max_) {
      loop_.timers().arm(timer_, loop_.now() + *idle_max_);
    }
  }

  net::Loop& loop_;
  std::optional<base::Millis> idle_max_;
  net::Timer timer_;
  std::vector<redis::QueuedCommand> commands_;
  std::string bytes_;
  call::BlockPlace place_;
  std::optional<std::uint32_t> selected_;
  Phase phase_ = Phase::Open;
};

}  // namespace kvferry::front
