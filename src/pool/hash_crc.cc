#include "pool/hash_crc.h"

#include <array>
#include <cstddef>

#include "pool/little_endian.h"

namespace kvferry::pool {
namespace {

constexpr std::uint32_t kCrc32Polynomial = 0xedb88320U;  // Reflected.
constexpr std::uint32_t kCrc16Polynomial = 0x1021U;
constexpr std::size_t kSlices = 8;  // Bytes taken at once.
// Bytes after which nothing is left of the upper half of the 32-bit register of crc16.
constexpr std::size_t kCrc16ForgetBytes = 2;

using Crc32Tables = std::array<std::array<std::uint32_t, 256>, kSlices>;
using Crc16Tables = std::array<std::array<std::uint16_t, 256>, kSlices>;

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
  for (std::size_t slice = 1; slice < kSlices; ++slice) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = (before >> 8) ^ tables[0][before & 0xffU];
    }
  }
  return tables;
}

constexpr Crc16Tables make_crc16_tables() {
  Crc16Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 0x8000U) != 0 ? (crc << 1) ^ kCrc16Polynomial : crc << 1;
    }
    tables[0][byte] = static_cast<std::uint16_t>(crc);
  }
  for (std::size_t slice = 1; slice < kSlices; ++slice) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = static_cast<std::uint16_t>((before << 8) ^ tables[0][before >> 8]);
    }
  }
  return tables;
}

constexpr Crc32Tables kCrc32Tables = make_crc32_tables();
constexpr Crc16Tables kCrc16Tables = make_crc16_tables();

std::uint32_t take_eight_bytes_of_crc32(std::uint32_t crc, const char* bytes) noexcept {
  const std::uint32_t low = crc ^ load_little32(bytes);
  const std::uint32_t high = load_little32(bytes + 4);
  return kCrc32Tables[7][low & 0xffU] ^ kCrc32Tables[6][(low >> 8) & 0xffU] ^
         kCrc32Tables[5][(low >> 16) & 0xffU] ^ kCrc32Tables[4][low >> 24] ^
         kCrc32Tables[3][high & 0xffU] ^ kCrc32Tables[2][(high >> 8) & 0xffU] ^
         kCrc32Tables[1][(high >> 16) & 0xffU] ^ kCrc32Tables[0][high >> 24];
}

std::uint32_t take_eight_bytes_of_crc16(std::uint32_t crc, const char* bytes) noexcept {
  // This CRC takes the highest bit first, so its register meets the first two bytes crosswise.
  const std::uint32_t low = load_little32(bytes) ^ (crc >> 8) ^ ((crc & 0xffU) << 8);
  const std::uint32_t high = load_little32(bytes + 4);
  const std::uint32_t first = kCrc16Tables[7][low & 0xffU] ^ kCrc16Tables[6][(low >> 8) & 0xffU];
  const std::uint32_t second = kCrc16Tables[5][(low >> 16) & 0xffU] ^ kCrc16Tables[4][low >> 24];
  const std::uint32_t third = kCrc16Tables[3][high & 0xffU] ^ kCrc16Tables[2][(high >> 8) & 0xffU];
  const std::uint32_t last = kCrc16Tables[1][(high >> 16) & 0xffU] ^ kCrc16Tables[0][high >> 24];
  return first ^ second ^ third ^ last;
}

}  // namespace

std::uint32_t hash_crc32a(std::string_view key) noexcept {
  std::uint32_t crc = 0xffffffffU;
  const char* bytes = key.data();
  std::size_t left = key.size();
  for (; left >= kSlices; left -= kSlices, bytes += kSlices) {
    crc = take_eight_bytes_of_crc32(crc, bytes);
  }
  for (; left > 0; --left, ++bytes) {
    crc = (crc >> 8) ^ kCrc32Tables[0][(crc ^ static_cast<unsigned char>(*bytes)) & 0xffU];
  }
  return ~crc;
}

std::uint32_t hash_crc16(std::string_view key) noexcept {
  std::uint32_t crc = 0;
  const char* bytes = key.data();
  std::size_t left = key.size();
  // The blocks keep the true CRC only. The bytes after them fill the upper half as byte-wise work
  // from the start would have.
  for (; left >= kSlices + kCrc16ForgetBytes; left -= kSlices, bytes += kSlices) {
    crc = take_eight_bytes_of_crc16(crc, bytes);
  }
  for (; left > 0; --left, ++bytes) {
    crc = (crc << 8) ^ kCrc16Tables[0][((crc >> 8) ^ static_cast<unsigned char>(*bytes)) & 0xffU];
  }
  return crc;
}

}  // namespace kvferry::pool
