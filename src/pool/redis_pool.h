// RedisPool: Redis servers behind one hash.
//
//   one key              -> placement -> backend -> lane -> link
//   several keys, split  -> one part per backend, merged again (redis_split.h)
//   several keys, others -> the one backend that has them all, or CROSSSLOT
//   no key               -> one backend after the other
//   broadcast            -> all backends, merged (redis_broadcast.h); SCAN: redis_scan.h
//   transaction          -> the one backend of all its keys, as one block (redis_block.h)
//   big argument         -> an exclusive link of the key's backend, streamed
//
// Which of these it is, the command table says. Commands that a session answers by itself, or that
// are refused, do not come here; when they do, they get an error.
//
// Order: a session keeps to one link of a lane. Commands that it sends on two lanes (another
// version or database) may overtake each other, so it must not change its version while any are
// outstanding.
//
// Threads: one worker. apply() comes through the worker's mailbox, between turns.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "call/call.h"
#include "call/redis_target.h"
#include "pool/kept_backends.h"
#include "pool/pool_context.h"
#include "pool/redis_backend.h"
#include "pool/redis_splits.h"
#include "pool/snapshot.h"
#include "protocol/redis_commands/key_places.h"
#include "protocol/redis_commands/request.h"

namespace kvferry::pool {

class RedisPool final : public call::RedisTarget {
 public:
  using Backends = KeptBackends<RedisBackend>::List;

  RedisPool(const PoolContext& context, std::shared_ptr<const PoolSnapshot> snapshot);
  ~RedisPool() override;

  void send(call::Call& call, const redis::Request& request) override;
  void execute(call::Call& call, const redis::Block& block) override;
  std::string_view join(const redis::Request& request, call::BlockPlace& place) override;

  /// As those of Pool.
  void apply(std::shared_ptr<const PoolSnapshot> snapshot) { kept_.apply(std::move(snapshot)); }
  void retire() { kept_.retire(); }
  void shut() { kept_.shut(); }
  bool is_drained() const { return kept_.is_drained(); }

  const PoolOptions& options() const { return kept_.options(); }
  const Backends& backends() const { return kept_.list(); }

 private:
  std::uint32_t place(std::string_view key) {
    return kept_.snapshot().placement->select(key, kept_.random_state());
  }
  void send_single(call::Call& call, const redis::Request& request);
  void send_split(call::Call& call, const redis::Request& request);
  void send_together(call::Call& call, const redis::Request& request);
  void send_keyless(call::Call& call, const redis::Request& request);
  void send_to_all(call::Call& call, const redis::Request& request);
  /// Where scripts without keys run, so that they all meet at one backend.
  std::uint32_t first_up() const;
  void send_to(std::uint32_t index, call::Call& call, const redis::Request& request);
  void refuse_all_down(call::Call& call) const;
  void refuse_command(call::Call& call, const redis::Request& request) const;
  void refuse_large(call::Call& call) const;
  bool has_one_shard() const { return backends().size() == 1; }
  bool has_database(call::Call& call, std::uint32_t database) const;
  /// Fills keys_. An error when they are not all that the request touches, or wrong.
  std::string_view find_all_keys(const redis::Request& request, redis::KeyOutcome& outcome);
  /// The backend of all keys of `block`, or the error when there is no such.
  std::string_view place_block(const redis::Block& block, std::uint32_t& index);
  /// The backend of all keys in keys_, kSeveral or kNoServer.
  std::uint32_t place_together(const redis::Request& request);

  PoolContext context_;
  KeptBackends<RedisBackend> kept_;
  RedisSplits splits_;
  redis::KeyPlaces keys_;           // Of the request that is being sent.
  std::uint32_t next_keyless_ = 0;  // Backend of the next command without a key.
};

}  // namespace kvferry::pool
