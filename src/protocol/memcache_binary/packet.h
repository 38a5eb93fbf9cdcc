// Packets of memcached's binary protocol: their numbers, and the bytes of responses.
//
//    0        1        2            4        5        6            8           12          16    24
//   +--------+--------+------------+--------+--------+------------+-----------+-----------+-----+
//   | magic  | opcode | key length | extras | 0      | status     | body      | opaque    | CAS |
//   |        |        |            | length |        |            | length    |           |     |
//   +--------+--------+------------+--------+--------+------------+-----------+-----------+-----+
//   then extras, key and value, which together are the body. Numbers have their high byte first.
//
// Source:    memcached protocol-binary.txt; what memcached 1.6.18 answers to every opcode.
// Units:     lengths are in bytes.
// Threads:   pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kvferry::memcache_binary {

inline constexpr char kRequestMagic = '\x80';
inline constexpr char kResponseMagic = '\x81';
inline constexpr std::size_t kHeaderBytes = 24;
/// Extras of a response to a read: the client flags.
inline constexpr std::size_t kFlagsBytes = 4;
/// Exptime of increment and decrement that says: create nothing.
inline constexpr std::uint32_t kNoCreation = 0xffffffff;

enum class Opcode : std::uint8_t {
  Get = 0x00,
  Set = 0x01,
  Add = 0x02,
  Replace = 0x03,
  Delete = 0x04,
  Increment = 0x05,
  Decrement = 0x06,
  Quit = 0x07,
  Flush = 0x08,
  GetQ = 0x09,
  Noop = 0x0a,
  Version = 0x0b,
  GetK = 0x0c,
  GetKQ = 0x0d,
  Append = 0x0e,
  Prepend = 0x0f,
  Stat = 0x10,
  SetQ = 0x11,
  AddQ = 0x12,
  ReplaceQ = 0x13,
  DeleteQ = 0x14,
  IncrementQ = 0x15,
  DecrementQ = 0x16,
  QuitQ = 0x17,
  FlushQ = 0x18,
  AppendQ = 0x19,
  PrependQ = 0x1a,
  Verbosity = 0x1b,
  Touch = 0x1c,
  Gat = 0x1d,
  GatQ = 0x1e,
  SaslListMechs = 0x20,
  SaslAuth = 0x21,
  SaslStep = 0x22,
  GatK = 0x23,
  GatKQ = 0x24,
};

enum class Status : std::uint16_t {
  Ok = 0x00,
  NotFound = 0x01,
  Exists = 0x02,
  TooLarge = 0x03,
  InvalidArguments = 0x04,
  NotStored = 0x05,
  NonNumeric = 0x06,
  AuthError = 0x20,
  UnknownCommand = 0x81,
  OutOfMemory = 0x82,
  InternalError = 0x84,
};
/// What memcached says for it in the body of a response; empty for Ok.
std::string_view status_text(Status status) noexcept;

/// What the body of a request is made of.
enum class Shape : std::uint8_t {
  Unknown,   // No such opcode.
  Bare,      // Nothing.
  Key,       // A key.
  KeyMaybe,  // A key or nothing.
  Touch,     // Exptime (4 bytes), key.
  Arith,     // Delta (8), initial value (8), exptime (4), key.
  Storage,   // Client flags (4), exptime (4), key, value.
  Join,      // Key, value.
  Flush,     // Exptime (4) or nothing.
  Level,     // A number (4).
  Auth,      // Key (the mechanism), value (what it sends).
};

/// What an opcode asks for.
struct Order {
  Opcode plain = Opcode::Get;  // The opcode that does the same and answers always, without a key.
  Shape shape = Shape::Unknown;
  bool is_quiet = false;     // Misses of reads, and the success of everything else, stay unsaid.
  bool returns_key = false;  // The response repeats the key.
};
Order order_of(Opcode opcode) noexcept;

/// The parts of a response header that vary.
struct ResponseHead {
  Opcode opcode{};  // As it was asked with.
  Status status = Status::Ok;
  std::uint32_t opaque = 0;
  std::uint64_t cas = 0;
  std::size_t extras_bytes = 0;
  std::size_t key_bytes = 0;
  std::size_t value_bytes = 0;
};
using HeaderBytes = std::array<char, kHeaderBytes>;
HeaderBytes compose_header(const ResponseHead& head) noexcept;

/// `Number` from its bytes, high byte first.
template <typename Number>
Number read_big_endian(std::string_view bytes) noexcept {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    number = static_cast<Number>((number << 8U) | static_cast<unsigned char>(bytes[i]));
  }
  return number;
}

/// The bytes of `number`, high byte first.
template <typename Number>
std::array<char, sizeof(Number)> big_endian(Number number) noexcept {
  std::array<char, sizeof(Number)> bytes{};
  for (std::size_t i = sizeof(Number); i > 0; --i) {
    bytes[i - 1] = static_cast<char>(static_cast<unsigned char>(number & 0xffU));
    number = static_cast<Number>(static_cast<std::uint64_t>(number) >> 8U);
  }
  return bytes;
}

inline std::string_view view_of(std::span<const char> bytes) noexcept {
  return {bytes.data(), bytes.size()};
}

}  // namespace kvferry::memcache_binary
