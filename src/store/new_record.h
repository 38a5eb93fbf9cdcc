// What a shard is about to write: an item before it has its place.
#pragma once

#include <cstdint>
#include <string_view>

#include "store/record.h"
#include "store/shard.h"

namespace kvferry::store {

struct Shard::NewRecord {
  std::uint32_t client_flags = 0;
  Instant exptime = kNever;
  std::uint64_t cas = 0;
  std::uint8_t marks = 0;  // Of kItemMarks.
  std::uint64_t value_bytes = 0;
  std::string_view inline_value{};  // All of the value, or what the pieces leave.
  Piece* pieces = nullptr;

  RecordShape shape(const Key& key) const noexcept {
    return {key.bytes.size(), static_cast<std::size_t>(value_bytes), client_flags != 0,
            exptime != kNever, cas >= kWideCasMin};
  }
};

}  // namespace kvferry::store
