// RequestWriter: composes requests, as arrays of bulk strings.
//
// Source:    redis.io, "Redis serialization protocol specification".
// Threads:   pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kvferry::resp {

/// Appends the begin of a request of `count` arguments.
void append_request_count(std::uint64_t count, std::string& bytes);
/// Appends one argument.
void append_argument(std::string_view argument, std::string& bytes);
/// Appends the request that has these arguments.
void append_request(std::span<const std::string_view> args, std::string& bytes);

}  // namespace kvferry::resp
