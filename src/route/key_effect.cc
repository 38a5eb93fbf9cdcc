#include "route/key_effect.h"

namespace kvferry::route {

using memcache::Command;
using memcache::MetaFlags;

namespace {

constexpr std::uint64_t bits_of(std::string_view letters) {
  std::uint64_t bits = 0;
  for (const char letter : letters) {
    bits |= MetaFlags::bit_of(letter);
  }
  return bits;
}

/// Flags of mg that a copy can answer.
constexpr std::uint64_t kReadingFlags = bits_of("vfsckOq");
/// Those that it cannot, and that change nothing.
constexpr std::uint64_t kLookingFlags = bits_of("bthl");

KeyEffect effect_of_meta_get(const MetaFlags& flags) noexcept {
  if (flags.error != memcache::MetaError::None ||
      (flags.present & ~(kReadingFlags | kLookingFlags)) != 0) {
    return KeyEffect::Changes;
  }
  return (flags.present & kLookingFlags) == 0 ? KeyEffect::Reads : KeyEffect::Looks;
}

}  // namespace

KeyEffect effect_of(const memcache::Request& request, const MetaFlags& flags) noexcept {
  switch (request.command) {
    case Command::Get:
    case Command::Gets:
      return KeyEffect::Reads;
    case Command::Mg:
      return effect_of_meta_get(flags);
    case Command::Me:
      return KeyEffect::Looks;
    default:
      return memcache::has_key(request.command) ? KeyEffect::Changes : KeyEffect::Looks;
  }
}

KeyEffect effect_of(const memcache::Request& request) noexcept {
  return effect_of(
      request, request.command == Command::Mg ? memcache::parse_meta_flags(request) : MetaFlags{});
}

std::string_view plain_key(const memcache::Request& request, KeyBuffer& buffer) noexcept {
  if (!request.base64_key) [[likely]] {
    return request.key;
  }
  return memcache::decode_base64_key(request.key, buffer).value_or(request.key);
}

}  // namespace kvferry::route
