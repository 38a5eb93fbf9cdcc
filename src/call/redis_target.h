// RedisTarget: anything that takes a request of a Redis client: a pool, a route, the embedded
// store.
//
// The call is the same as for memcached's requests: parts of one reply, or one failure, come back
// to its sink. Errors
// ("-" and "!") have ReplyCode::ServerError, nulls NotFound, integers Number, simple strings Ok,
// everything else Value.
#pragma once

#include <cstdint>
#include <string_view>

#include "call/call.h"

namespace kvferry::redis {
struct Block;
struct Request;
}  // namespace kvferry::redis

namespace kvferry::call {

/// Where the keys of a transaction are, as its target sees it.
struct BlockPlace {
  bool is_known = false;  // There was one.
  std::uint32_t shard = 0;
  std::uint64_t slot = 0;  // What all of them must have in common.
};

class RedisTarget {
 public:
  virtual ~RedisTarget() = default;
  /// Takes `call` over until its last reply part, which may be delivered before this returns.
  /// `request` and all its views are valid during the call only. When it is not complete, the
  /// target sets call.body_sink, or answers at once.
  virtual void send(Call& call, const redis::Request& request) = 0;
  /// As send(), for a transaction; the reply is that of EXEC. Refused by targets that do not say
  /// otherwise.
  virtual void execute(Call& call, const redis::Block& block);
  /// Whether `request`, which is complete, may be part of a transaction whose commands so far are
  /// at `place`, which learns where this one is. A value is the text of the error that refuses it.
  /// Targets that have all keys in one place take everything.
  virtual std::string_view join(const redis::Request& request, BlockPlace& place);
};

/// The code of a reply that begins with `first` and goes on with `second`.
constexpr memcache::ReplyCode redis_reply_code(char first, char second) noexcept {
  switch (first) {
    case '-':
    case '!':
      return memcache::ReplyCode::ServerError;
    case '+':
      return memcache::ReplyCode::Ok;
    case ':':
      return memcache::ReplyCode::Number;
    case '_':
      return memcache::ReplyCode::NotFound;
    default:
      return second == '-' ? memcache::ReplyCode::NotFound : memcache::ReplyCode::Value;
  }
}

}  // namespace kvferry::call
