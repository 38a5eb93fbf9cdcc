// The cyclic redundancy checks that place keys: CRC-32 as in zlib, CRC-16 as in XMODEM.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvferry::pool {

/// CRC-32 with the polynomial of zlib and Ethernet.
std::uint32_t hash_crc32a(std::string_view key) noexcept;

/// CRC-16/XMODEM in a register that twemproxy leaves 32 bits wide and never masks. The low 16 bits
/// are the true CRC-16.
std::uint32_t hash_crc16(std::string_view key) noexcept;

}  // namespace kvferry::pool
