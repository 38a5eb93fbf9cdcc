// RespOptions: what a listener offers to clients of Redis.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "front/credentials.h"
#include "protocol/resp/request_parser.h"

namespace kvferry::front {

/// Bytes of a request that is kept whole because nobody takes it in pieces.
inline constexpr std::uint64_t kGatherBytesMaxDefault = std::uint64_t{512} << 20;

/// How long a transaction is kept whose client says nothing.
inline constexpr base::Millis kTransactionIdleMaxDefault{60'000};

struct RespOptions {
  /// A client whose first byte is '*' speaks the Redis protocol.
  bool is_served = false;
  /// Every client does, unless its first byte is that of memcached's binary protocol: inline
  /// requests are understood.
  bool is_only = false;
  resp::ParserLimits parser;
  std::uint64_t gather_bytes_max = kGatherBytesMaxDefault;
  std::uint32_t databases = 16;
  /// Commands that the table does not have go to the target, which takes their first argument for a
  /// key.
  bool passes_unknown = true;
  /// A value of a command with one key is passed on while it comes.
  bool streams_values = true;
  /// What a transaction has queued is dropped when its client is silent for so long; none: never.
  std::optional<base::Millis> transaction_idle_max = kTransactionIdleMaxDefault;
  /// Clients say who they are first ("user password"); null: they need not.
  std::shared_ptr<const Credentials> credentials;
  // What clients read of the server that they think they talk to.
  std::string server_name = "redis";
  std::string server_version = "7.0.15";
};

}  // namespace kvferry::front
