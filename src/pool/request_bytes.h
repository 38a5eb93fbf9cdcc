// The bytes of a request as a backend gets them.
#pragma once

#include <string>
#include <string_view>

#include "base/byte_chain.h"
#include "protocol/memcache/request.h"

namespace kvferry::pool {

/// Whether the client asked for silence, so that the bytes must be rewritten: backends are always
/// asked for an answer, which keeps replies and calls in step; the session hides it.
inline bool must_unmute(const memcache::Request& request) noexcept {
  return request.noreply || request.quiet;
}

/// The line of `request` without its noreply word or q flag, and, when it is there, the value.
/// `out` is cleared first.
std::string_view unmute(const memcache::Request& request, std::string& scratch);

}  // namespace kvferry::pool
