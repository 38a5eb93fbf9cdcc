// ScanCursor: what a client of a pool of several shards gets as the cursor of SCAN.
//
//   bit  63..................58 57.............48 47........................0
//        0  fingerprint (5)     shard ordinal     the backend's own cursor
//
// Shards are visited one after another, in the order of their labels, so that all proxies agree.
// The fingerprint is that of the list of labels: a cursor that was made for another list is told
// apart. 0 begins, and ends.
// Source:    our own layout.
// Threads:   values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kvferry::pool {

struct ScanCursor {
  static constexpr std::uint64_t kBackendCursorMax = (std::uint64_t{1} << 48) - 1;
  static constexpr std::uint32_t kShardsMax = 1 << 10;
  static constexpr std::uint32_t kFingerprints = 1 << 5;

  std::uint64_t backend_cursor = 0;
  std::uint32_t shard = 0;
  std::uint32_t fingerprint = 0;

  /// None when `text` is no cursor that a server would take. Bit 63 is not looked at: nobody has
  /// given out such cursors.
  static std::optional<ScanCursor> parse(std::string_view text) noexcept;
  std::uint64_t number() const noexcept {
    return backend_cursor | (std::uint64_t{shard} << 48U) | (std::uint64_t{fingerprint} << 58U);
  }
  friend bool operator==(const ScanCursor&, const ScanCursor&) = default;
};

}  // namespace kvferry::pool
