// What a request does to the item of its key, for routes that keep answers or share them.
//
// Source:  memcached protocol.txt. Threads: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "protocol/memcache/base64.h"
#include "protocol/memcache/meta_flags.h"
#include "protocol/memcache/request.h"

namespace kvferry::route {

enum class KeyEffect : std::uint8_t {
  Reads,    // Asks for nothing but value, client flags, size and CAS unique.
  Looks,    // Changes nothing, but asks for what only the backend knows: times, hits, me.
  Changes,  // May change the item, its exptime or its marks; also what we do not understand.
};

/// `flags` are those of the request, when it is an mg.
KeyEffect effect_of(const memcache::Request& request, const memcache::MetaFlags& flags) noexcept;
/// Reads the flags where it needs them.
KeyEffect effect_of(const memcache::Request& request) noexcept;

using KeyBuffer = std::array<char, memcache::kDecodedKeyBytesMax>;

/// The key as backends store it: decoded into `buffer` when it came in base64, so that a write
/// finds what was read under the other form. One that cannot be decoded is given as it is.
std::string_view plain_key(const memcache::Request& request, KeyBuffer& buffer) noexcept;

}  // namespace kvferry::route
