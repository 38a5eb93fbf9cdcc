// Packets of memcached's binary protocol by hand, from the picture of their header alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvferry::test {

/// `bytes` bytes of `number`, high byte first.
inline std::string big_endian(std::uint64_t number, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = bytes; i > 0; --i) {
    text[i - 1] = static_cast<char>(number & 0xffU);
    number >>= 8U;
  }
  return text;
}

/// What varies in a packet. `status` has no meaning in requests.
struct PacketText {
  int opcode = 0;
  std::string_view extras{};
  std::string_view key{};
  std::string_view value{};
  std::uint32_t opaque = 0;
  std::uint64_t cas = 0;
  std::uint16_t status = 0;
};

inline std::string packet_of(char magic, const PacketText& text) {
  std::string bytes(1, magic);
  bytes += static_cast<char>(text.opcode);
  bytes += big_endian(text.key.size(), 2);
  bytes += static_cast<char>(text.extras.size());
  bytes += '\0';
  bytes += big_endian(text.status, 2);
  bytes += big_endian(text.extras.size() + text.key.size() + text.value.size(), 4);
  bytes += big_endian(text.opaque, 4);
  bytes += big_endian(text.cas, 8);
  bytes.append(text.extras).append(text.key).append(text.value);
  return bytes;
}
inline std::string request_packet(const PacketText& text) {
  return packet_of('\x80', text);
}
inline std::string response_packet(const PacketText& text) {
  return packet_of('\x81', text);
}

}  // namespace kvferry::test
