// Asks for memory ahead of its use. Never faults, whatever the address.
//
// With thousands of requests in flight the state of each has left the cache when its turn comes
// again; who knows which one is next fetches it while this one is served.
#pragma once

#include <cstddef>

namespace kvferry::base {

inline constexpr std::size_t kCacheLineBytes = 64;

/// The first `bytes` from `at` on.
inline void prefetch(const void* at, std::size_t bytes = kCacheLineBytes) noexcept {
  const char* const first = static_cast<const char*>(at);
  for (std::size_t offset = 0; offset < bytes; offset += kCacheLineBytes) {
    __builtin_prefetch(first + offset);
  }
}

}  // namespace kvferry::base
