// FrontSums: what all listeners have done on all workers.
//
// Threads: any; it only reads counters, under the registry's lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "app/stats_registry.h"
#include "front/service_stats.h"
#include "protocol/memcache/command.h"
#include "protocol/memcache/reply.h"

namespace kvferry::app {

struct FrontSums {
  std::uint64_t connections = 0;
  std::uint64_t accepted = 0;
  std::uint64_t rejected = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t authentications = 0;
  std::uint64_t authentications_failed = 0;
  std::uint64_t parse_errors = 0;
  std::uint64_t memory_refusals = 0;
  std::uint64_t inflight = 0;
  std::array<std::uint64_t, memcache::kCommandCount> requests{};
  std::array<std::uint64_t, front::kReplyCodeCount> replies{};

  std::uint64_t of(std::initializer_list<memcache::Command> commands) const {
    std::uint64_t sum = 0;
    for (const memcache::Command command : commands) {
      sum += requests[static_cast<std::size_t>(command)];
    }
    return sum;
  }
  std::uint64_t of(memcache::ReplyCode code) const {
    return replies[static_cast<std::size_t>(code)];
  }
};

FrontSums sum_fronts(StatsRegistry& registry);

}  // namespace kvferry::app
