// RespReader: cuts the replies of a Redis server out of the bytes of a link.
//
// A reply that has come whole is one chunk. What has come of a reply that has not stays with the
// caller until it is kReplyPartBytesMin long, and is passed on in chunks from then on. So small
// replies are never in pieces, and the first chunk of a big one has its first line whole.
// Lifetime:  keeps no bytes; the caller gives those again that no chunk has taken, with more
// behind. Threads:   one user at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/parsed.h"
#include "protocol/memcache/reply.h"
#include "protocol/resp/reply_scanner.h"
#include "protocol/resp/short_reply.h"

namespace kvferry::pool {

/// A reply is passed on in parts from this length on.
inline constexpr std::size_t kReplyPartBytesMin = 4096;

/// A run of bytes of one reply.
struct RespChunk {
  std::size_t size_bytes = 0;
  memcache::ReplyCode code = memcache::ReplyCode::None;  // Of the whole reply.
  bool is_first = false;
  bool is_last = false;
  bool is_push = false;  // It answers no request.
};

class RespReader {
 public:
  /// True is a failure: the bytes are no reply, and nobody knows where one begins.
  using Outcome = base::Parsed<RespChunk, bool>;

  /// Looks at `bytes`, which are not empty and begin where the last chunk ended.
  Outcome next(std::string_view bytes) noexcept {
    if (is_between()) [[likely]] {
      const std::size_t size = resp::short_reply_size(bytes);
      if (size != 0) [[likely]] {
        return Outcome::done(RespChunk{.size_bytes = size,
                                       .code = code_of(bytes[0], bytes[1]),
                                       .is_first = true,
                                       .is_last = true});
      }
    }
    return scan(bytes);
  }

  /// No byte of a reply was seen that has not ended.
  bool is_between() const noexcept { return seen_bytes_ == 0 && scanner_.is_between(); }
  /// Forgets what it has seen: the next byte is the first of a connection.
  void restart() noexcept { *this = RespReader(); }

 private:
  static memcache::ReplyCode code_of(char first, char second) noexcept;
  Outcome scan(std::string_view bytes) noexcept;
  bool may_pass_on(std::size_t bytes) const noexcept;

  resp::ReplyScanner scanner_;
  std::size_t seen_bytes_ = 0;  // Scanned, and in no chunk yet.
  memcache::ReplyCode code_ = memcache::ReplyCode::None;
  bool is_begun_ = false;  // A chunk of the reply was given.
  bool is_push_ = false;
};

}  // namespace kvferry::pool
