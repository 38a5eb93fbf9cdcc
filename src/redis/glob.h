// Patterns of keys: * any bytes, ? one byte, [abc] [a-z] [^x] one of a class, \ takes the next byte
// as it is.
//
// Source:    redis.io, KEYS; redis-server 7.0.
// Threads:   pure function. Time is at most the product of both lengths.
#pragma once

#include <string_view>

namespace kvferry::redis {

/// Whether all of `text` fits `pattern`.
bool matches_glob(std::string_view pattern, std::string_view text) noexcept;

}  // namespace kvferry::redis
