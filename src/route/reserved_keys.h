// Keys of the embedded store that no client can name: what kvferry itself keeps there.
//
//   +-------------------+-------+--------------+------------------------+
//   | reserved beginning| owner | space, 4     | the key as clients say |
//   +-------------------+-------+--------------+------------------------+
//
// Keys of the text protocol hold no line end, so only keys in base64 (and of the binary protocol,
// which become such) could begin like this; StoreTarget refuses those.
//
// Units: sizes in bytes. Threads: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "store/key.h"

namespace kvferry::route {

/// How every reserved key begins. Long enough that a key made of random bytes does not.
inline constexpr std::string_view kReservedBeginning = "\r\n\xffkv";

/// Whether clients may not name `key`, which is decoded.
inline bool is_reserved(std::string_view key) noexcept {
  return key.starts_with(kReservedBeginning);
}

/// Who numbers a space: two owners may use the same number.
enum class SpaceOwner : char { Yaml = 'y', Lua = 'l' };

/// Whose copies a near cache shares: those of equal spaces.
struct NearSpace {
  SpaceOwner owner = SpaceOwner::Yaml;
  std::uint32_t number = 0;
};

/// Composes reserved keys of one space. The last one made stays valid until the next.
// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): bytes are read as far as they are written
class ReservedKey {
 public:
  static constexpr std::size_t kHeadBytes = kReservedBeginning.size() + 1 + sizeof(std::uint32_t);
  static constexpr std::size_t kPlainBytesMax = store::kKeyBytesMax - kHeadBytes;

  explicit ReservedKey(NearSpace space) noexcept {
    std::memcpy(bytes_.data(), kReservedBeginning.data(), kReservedBeginning.size());
    bytes_[kReservedBeginning.size()] = static_cast<char>(space.owner);
    std::memcpy(bytes_.data() + kReservedBeginning.size() + 1, &space.number, sizeof(space.number));
  }

  /// Whether `plain` is short enough.
  static bool fits(std::string_view plain) noexcept { return plain.size() <= kPlainBytesMax; }
  /// `plain` fits.
  std::string_view of(std::string_view plain) noexcept {
    std::memcpy(bytes_.data() + kHeadBytes, plain.data(), plain.size());
    return {bytes_.data(), kHeadBytes + plain.size()};
  }

 private:
  std::array<char, store::kKeyBytesMax> bytes_;
};

}  // namespace kvferry::route
