// SegmentTable: numbers for the segments of a shard, so that the place of a record takes 32 bits.
//
//   31                   14  13                       0
//   +----------------------+---------------------------+
//   | number of the segment | offset in it / 4          |
//   +----------------------+---------------------------+
//
// Limits:    kSegmentsMax segments: 16 GiB of records in a shard.
// Threads:   guarded by the lock of the shard.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "store/record.h"
#include "store/segment.h"

namespace kvferry::store {

/// Where a record lies in its shard.
using Place = std::uint32_t;
/// No record lies there: segments begin with their header.
inline constexpr Place kNowhere = 0;

inline constexpr unsigned kOffsetBits = std::countr_zero(kFrameBytes / kRecordAlignBytes);
inline constexpr std::size_t kSegmentsMax = std::size_t{1} << (32 - kOffsetBits);

class SegmentTable {
 public:
  /// Up to `segments` at a time can be added without an allocation.
  void reserve(std::size_t segments) {
    segments_.reserve(segments);
    free_.reserve(segments);
  }
  /// Gives `segment` its number.
  void add(Segment& segment) {
    if (free_.empty()) {
      KVF_CHECK(segments_.size() < kSegmentsMax);
      free_.push_back(static_cast<std::uint32_t>(segments_.size()));
      segments_.push_back(nullptr);
    }
    segment.number = free_.back();
    free_.pop_back();
    segments_[segment.number] = &segment;
  }
  void remove(Segment& segment) { free_.push_back(segment.number); }

  static Place place_of(const Record& record) noexcept {
    const Segment& segment = Segment::of(record);
    const auto offset = reinterpret_cast<std::uintptr_t>(&record) % kFrameBytes;
    return segment.number << kOffsetBits | static_cast<Place>(offset / kRecordAlignBytes);
  }
  Record& record_at(Place place) const noexcept {
    constexpr Place kOffsetMask = (Place{1} << kOffsetBits) - 1;
    return *segments_[place >> kOffsetBits]->record_at((place & kOffsetMask) * kRecordAlignBytes);
  }
  std::size_t size_bytes() const noexcept {
    return segments_.capacity() * sizeof(segments_[0]) + free_.capacity() * sizeof(free_[0]);
  }

 private:
  std::vector<Segment*> segments_;   // By number; those of free numbers mean nothing.
  std::vector<std::uint32_t> free_;  // Numbers that are not used.
};

}  // namespace kvferry::store
