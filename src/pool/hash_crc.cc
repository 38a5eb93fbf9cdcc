#include "pool/hash_crc.h"

#include <array>
#include <cstddef>

#include "pool/little_endian.h"

namespace kvferry::pool {
namespace {

constexpr std::uint32_t kCrc32Polynomial = 0xedb88320U;  // Reflected.
constexpr std::uint32_t kCrc16Polynomial = 0x1021U;
constexpr std::size_t kCrc32Slices = 8;

using Crc32Tables = std::array<std::array<std::uint32_t, 256>, kCrc32Slices>;

/// Table n tells what a byte does to the register once n further bytes have followed it, so that
/// eight bytes can be taken at once.
constexpr Crc32Tables make_crc32_tables() {
  Crc32Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1U) != 0 ? (crc >> 1) ^ kCrc32Polynomial : crc >> 1;
    }
    tables[0][byte] = crc;
  }
  for (std::size_t slice = 1; slice < kCrc32Slices; ++slice) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = (before >> 8) ^ tables[0][before & 0xffU];
    }
  }
  return tables;
}

constexpr std::array<std::uint32_t, 256> make_crc16_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 0x8000U) != 0 ? (crc << 1) ^ kCrc16Polynomial : crc << 1;
    }
    table[byte] = crc & 0xffffU;
  }
  return table;
}

constexpr Crc32Tables kCrc32Tables = make_crc32_tables();
constexpr std::array<std::uint32_t, 256> kCrc16Table = make_crc16_table();

std::uint32_t take_eight_bytes(std::uint32_t crc, const char* bytes) noexcept {
  const std::uint32_t low = crc ^ load_little32(bytes);
  const std::uint32_t high = load_little32(bytes + 4);
  return kCrc32Tables[7][low & 0xffU] ^ kCrc32Tables[6][(low >> 8) & 0xffU] ^
         kCrc32Tables[5][(low >> 16) & 0xffU] ^ kCrc32Tables[4][low >> 24] ^
         kCrc32Tables[3][high & 0xffU] ^ kCrc32Tables[2][(high >> 8) & 0xffU] ^
         kCrc32Tables[1][(high >> 16) & 0xffU] ^ kCrc32Tables[0][high >> 24];
}

}  // namespace

std::uint32_t hash_crc32a(std::string_view key) noexcept {
  std::uint32_t crc = 0xffffffffU;
  const char* bytes = key.data();
  std::size_t left = key.size();
  for (; left >= 8; left -= 8, bytes += 8) {
    crc = take_eight_bytes(crc, bytes);
  }
  for (; left > 0; --left, ++bytes) {
    crc = (crc >> 8) ^ kCrc32Tables[0][(crc ^ static_cast<unsigned char>(*bytes)) & 0xffU];
  }
  return ~crc;
}

std::uint32_t hash_crc16(std::string_view key) noexcept {
  std::uint32_t crc = 0;
  for (const char byte : key) {
    crc = (crc << 8) ^ kCrc16Table[((crc >> 8) ^ static_cast<unsigned char>(byte)) & 0xffU];
  }
  return crc;
}

}  // namespace kvferry::pool
