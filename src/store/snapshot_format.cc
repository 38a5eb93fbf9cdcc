#include "store/snapshot_format.h"

#include <algorithm>

namespace kvferry::store {

namespace {

// Places in a header.
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kHeaderBytesAt = 12;
constexpr std::size_t kWrittenAt = 16;
constexpr std::size_t kLastCasAt = 24;
constexpr std::size_t kChecksumAt = 32;
static_assert(kChecksumAt + sizeof(std::uint64_t) == kSnapshotHeaderBytes);

/// Mixes what is not in the payload into its checksum; the multiplier is odd, so nothing is lost.
constexpr std::uint64_t kPlaceFactor = 0x9e3779b97f4a7c15U;

}  // namespace

SnapshotHeader compose_snapshot_header(const SnapshotHead& head) noexcept {
  SnapshotHeader header{};
  std::copy(kSnapshotMagic.begin(), kSnapshotMagic.end(), header.begin());
  put_number(header.data() + kVersionAt, kSnapshotVersion);
  put_number(header.data() + kHeaderBytesAt, static_cast<std::uint32_t>(kSnapshotHeaderBytes));
  put_number(header.data() + kWrittenAt, head.written_at.get());
  put_number(header.data() + kLastCasAt, head.last_cas);
  put_number(header.data() + kChecksumAt, snapshot_header_checksum({header.data(), kChecksumAt}));
  return header;
}

SnapshotBlockHead compose_snapshot_block_head(SnapshotBlock kind, std::uint64_t number,
                                              std::string_view payload) noexcept {
  SnapshotBlockHead head{};
  put_number(head.data(), static_cast<std::uint32_t>(kind));
  put_number(head.data() + 4, static_cast<std::uint32_t>(payload.size()));
  put_number(head.data() + 8,
             snapshot_block_checksum(static_cast<std::uint32_t>(kind), number, payload));
  return head;
}

std::uint64_t snapshot_header_checksum(std::string_view header) noexcept {
  return hash_of(header);
}

std::uint64_t snapshot_block_checksum(std::uint32_t kind, std::uint64_t number,
                                      std::string_view payload) noexcept {
  std::array<char, 16> place{};
  put_number(place.data(), kind);
  put_number(place.data() + 4, static_cast<std::uint32_t>(payload.size()));
  put_number(place.data() + 8, number);
  return hash_of(payload) ^ (hash_of({place.data(), place.size()}) * kPlaceFactor);
}

}  // namespace kvferry::store
