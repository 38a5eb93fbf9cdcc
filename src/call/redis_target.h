// RedisTarget: anything that takes a request of a Redis client: a pool, a route, the embedded
// store.
//
// The call is the same as for memcached's requests: parts of one reply, or one failure, come back
// to its sink. Errors
// ("-" and "!") have ReplyCode::ServerError, nulls NotFound, integers Number, simple strings Ok,
// everything else Value.
#pragma once

#include "call/call.h"

namespace kvferry::redis {
struct Block;
struct Request;
}  // namespace kvferry::redis

namespace kvferry::call {

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
