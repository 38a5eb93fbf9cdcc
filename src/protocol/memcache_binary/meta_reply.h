// What the reply to a request of meta_request.h says, in the terms of a binary response.
//
// Lifetime:  the text is a view of the line that was given, or lives for ever.
// Errors:    a line that cannot be read is an internal error: of us, or of a backend that does not
//            know meta commands.
// Threads:   pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "protocol/memcache/reply.h"
#include "protocol/memcache_binary/packet.h"

namespace kvferry::memcache_binary {

struct MetaReply {
  Status status = Status::Ok;
  std::uint32_t client_flags = 0;
  std::uint64_t cas = 0;
  std::uint64_t value_bytes = 0;  // Of the value that follows the line.
  std::string_view text{};        // Of an error.
};

/// Reads the first line of the reply to a request of opcode `plain`; `line` has no line end.
MetaReply read_meta_reply(Opcode plain, memcache::ReplyCode code, std::string_view line) noexcept;

}  // namespace kvferry::memcache_binary
