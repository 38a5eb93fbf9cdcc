#include "pool/scan_cursor.h"

#include <charconv>
#include <system_error>

namespace kvferry::pool {

std::optional<ScanCursor> ScanCursor::parse(std::string_view text) noexcept {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the end goes with it.
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) {
    return std::nullopt;
  }
  return ScanCursor{
      .backend_cursor = number & kBackendCursorMax,
      .shard = static_cast<std::uint32_t>((number >> 48U) & (kShardsMax - 1)),
      .fingerprint = static_cast<std::uint32_t>((number >> 58U) & (kFingerprints - 1))};
}

}  // namespace kvferry::pool
