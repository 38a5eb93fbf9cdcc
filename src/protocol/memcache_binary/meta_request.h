// What a binary request is in the text protocol, which is what the rest of kvferry executes; see
// README.md for the table.
//
// Lifetime:  the made request has views into `text`, which the caller keeps as long as it needs
//            them.
// Errors:    a key that no text line can carry.
// Threads:   pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "protocol/memcache/request.h"
#include "protocol/memcache_binary/request.h"

namespace kvferry::memcache_binary {

/// How long the key on a line may be.
enum class KeyLimit : std::uint8_t {
  Wire,     // As memcached limits it: in base64 too, 250 bytes stand on the line.
  Decoded,  // 250 bytes whatever the line needs for them. The embedded store takes those.
};

/// Makes the line of `packet`, and behind it its value where it is complete, into `text`, and
/// shows them as `made`. Takes opcodes with a key (but stat, and SASL), and flush. False when the
/// key is too long for a line; nothing can be done then.
[[nodiscard]] bool compose_text_request(const Request& packet, KeyLimit limit, std::string& text,
                                        memcache::Request& made);

}  // namespace kvferry::memcache_binary
