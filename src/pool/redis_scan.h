// RedisScan: one step of SCAN over the shards of a pool: the shard of the cursor is asked with its
// own cursor, and its answer gets ours (scan_cursor.h). When a shard is done the next one begins;
// when the last one is, the cursor is 0. COUNT, MATCH and TYPE are passed on.
//
// A cursor that was made for other shards goes on as well as it can: keys may be missed or seen
// twice, as with a server that is resized.
//
// Lifetime:  from start() to the last part of the parent's reply.
// Threads:   one worker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "call/call.h"
#include "pool/kept_backends.h"
#include "pool/redis_backend.h"
#include "pool/scan_cursor.h"
#include "protocol/redis_commands/request.h"

namespace kvferry::pool {

class RedisScan final : public call::ReplySink, public call::ReplySource {
 public:
  using Kept = KeptBackends<RedisBackend>;

  /// Asks the shard of the cursor in `request`, which is complete, and answers `parent`.
  static void start(const PoolContext& context, const Kept& kept, call::Call& parent,
                    const redis::Request& request);

  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override;
  void on_blocked(call::Call& call) override;
  void resume(call::Call& call) override;
  void discard(call::Call& call) override;

 private:
  RedisScan(const PoolContext& context, const Kept& kept, call::Call& parent, ScanCursor cursor)
      : context_(context), kept_(kept), parent_(parent), cursor_(cursor) {}

  void send(std::uint32_t backend, const redis::Request& request);
  /// The first part of a reply with our cursor in place of the backend's.
  std::string translate(std::string_view bytes) const;

  PoolContext context_;
  const Kept& kept_;
  call::Call& parent_;
  ScanCursor cursor_;  // Of the shard that is asked.
  call::Call* call_ = nullptr;
  bool is_bad_ =
      false;  // The reply is none of SCAN: its parts are dropped, an error takes its place.
};

}  // namespace kvferry::pool
