// The bytes of a snapshot of the store: what a writer makes and a reader expects.
//
//   file:   header, blocks, end block; nothing behind it
//   header: magic 8 | version 4 | header bytes 4 | written at 4 | reserved 4 | last CAS unique 8 |
//   checksum 8 block:  kind 4 | payload bytes 4 | checksum 8 | payload items:  the payloads of item
//   blocks, one behind the other; an item may begin in one block and end
//           in a later one
//   item:   marks 1 | key bytes 1 | reserved 2 | value bytes 4 | client flags 4 | exptime 4 | CAS
//   unique 8 |
//           key | value
//   end:    a block of the kind End, whose payload is: items 8 | bytes of all item payloads 8
//
// Checksums are XXH3 with 64 bits: of all header bytes before it; of a block's kind, payload bytes,
// number (from 0) and payload, so that blocks cannot change places.
// Units: numbers are little endian, sizes in bytes, instants as store::Instant. Threads: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "store/instant.h"
#include "store/key.h"

namespace kvferry::store {

inline constexpr std::string_view kSnapshotMagic = "KVFSNAP\n";
inline constexpr std::uint32_t kSnapshotVersion = 1;
inline constexpr std::size_t kSnapshotHeaderBytes = 40;
inline constexpr std::size_t kSnapshotBlockHeadBytes = 16;
inline constexpr std::size_t kSnapshotItemHeadBytes = 24;
inline constexpr std::size_t kSnapshotEndBytes = 16;
/// Payload of the largest block; writers fill blocks up to this.
inline constexpr std::size_t kSnapshotPayloadBytesMax = std::size_t{256} * 1024;
/// The largest value that a snapshot may have; that of the configuration may be smaller.
inline constexpr std::uint32_t kSnapshotValueBytesMax = std::uint32_t{1} << 30;

enum class SnapshotBlock : std::uint32_t { Items = 1, End = 2 };

enum SnapshotMark : std::uint8_t {
  kSnapshotFetched = 1,
  kSnapshotStale = 2,
  kSnapshotWon = 4,
  kSnapshotBase64Key = 8,
  kSnapshotMarks = 15,  // All that there are.
};

/// An item without its value.
struct SnapshotItem {
  std::string_view key;
  std::uint64_t cas = 0;
  std::uint32_t value_bytes = 0;
  std::uint32_t client_flags = 0;
  Instant exptime{};
  std::uint8_t marks = 0;  // Of SnapshotMark.

  bool has(SnapshotMark mark) const noexcept { return (marks & mark) != 0; }
};

struct SnapshotHead {
  Instant written_at{};
  std::uint64_t last_cas = 0;  // No CAS unique that a client may know is above it.
};

using SnapshotHeader = std::array<char, kSnapshotHeaderBytes>;
using SnapshotBlockHead = std::array<char, kSnapshotBlockHeadBytes>;

template <typename Number>
void put_number(char* to, Number number) noexcept {
  for (std::size_t i = 0; i < sizeof(number); ++i) {
    to[i] = static_cast<char>(static_cast<unsigned char>(number >> (8 * i)));
  }
}
template <typename Number>
Number get_number(const char* from) noexcept {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(number); ++i) {
    number |=
        static_cast<Number>(static_cast<Number>(static_cast<unsigned char>(from[i])) << (8 * i));
  }
  return number;
}

SnapshotHeader compose_snapshot_header(const SnapshotHead& head) noexcept;
SnapshotBlockHead compose_snapshot_block_head(SnapshotBlock kind, std::uint64_t number,
                                              std::string_view payload) noexcept;
/// Of the bytes of a header before its checksum.
std::uint64_t snapshot_header_checksum(std::string_view header) noexcept;
std::uint64_t snapshot_block_checksum(std::uint32_t kind, std::uint64_t number,
                                      std::string_view payload) noexcept;

}  // namespace kvferry::store
