#include "protocol/memcache/base64.h"

#include <array>
#include <cstdint>

namespace kvferry::memcache {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoSextet = 0xff;

constexpr std::array<std::uint8_t, 256> make_sextets() {
  std::array<std::uint8_t, 256> sextets{};
  for (std::uint8_t& sextet : sextets) {
    sextet = kNoSextet;
  }
  for (std::size_t index = 0; index < kAlphabet.size(); ++index) {
    sextets[static_cast<unsigned char>(kAlphabet[index])] = static_cast<std::uint8_t>(index);
  }
  return sextets;
}
constexpr std::array<std::uint8_t, 256> kSextets = make_sextets();

/// Joins the sextets of `group` (2 to 4 characters) to 24 bits; false when one is no sextet.
bool join_sextets(std::string_view group, std::uint32_t& bits) {
  bits = 0;
  for (const char letter : group) {
    const std::uint8_t sextet = kSextets[static_cast<unsigned char>(letter)];
    if (sextet == kNoSextet) {
      return false;
    }
    bits = bits << 6 | sextet;
  }
  for (std::size_t missing = group.size(); missing < 4; ++missing) {
    bits <<= 6;
  }
  return true;
}

std::uint32_t join_octets(std::string_view group) {
  std::uint32_t bits = 0;
  for (const char octet : group) {
    bits = bits << 8 | static_cast<unsigned char>(octet);
  }
  for (std::size_t missing = group.size(); missing < 3; ++missing) {
    bits <<= 8;
  }
  return bits;
}

}  // namespace

std::optional<std::string_view> decode_base64_key(std::string_view encoded,
                                                  std::span<char> out) noexcept {
  if (encoded.empty() || encoded.size() % 4 != 0) {
    return std::nullopt;
  }
  std::string_view rest = encoded;
  const std::size_t padding = rest.ends_with("==") ? 2 : (rest.ends_with('=') ? 1 : 0);
  rest.remove_suffix(padding);
  if (encoded.size() / 4 * 3 - padding > out.size()) {
    return std::nullopt;
  }
  std::size_t written = 0;
  while (!rest.empty()) {
    const std::string_view group = rest.substr(0, 4);
    rest.remove_prefix(group.size());
    std::uint32_t bits = 0;
    if (!join_sextets(group, bits)) {
      return std::nullopt;
    }
    for (std::size_t index = 0; index + 1 < group.size(); ++index) {
      out[written++] = static_cast<char>(bits >> 16 & 0xff);
      bits <<= 8;
    }
  }
  return std::string_view(out.data(), written);
}

std::string_view encode_base64_key(std::string_view plain, std::span<char> out) noexcept {
  if (encoded_base64_bytes(plain.size()) > out.size()) {
    return {};
  }
  std::size_t written = 0;
  while (!plain.empty()) {
    const std::string_view group = plain.substr(0, 3);
    plain.remove_prefix(group.size());
    std::uint32_t bits = join_octets(group);
    for (std::size_t index = 0; index < 4; ++index) {
      out[written++] = index <= group.size() ? kAlphabet[bits >> 18 & 0x3f] : '=';
      bits <<= 6;
    }
  }
  return {out.data(), written};
}

}  // namespace kvferry::memcache
