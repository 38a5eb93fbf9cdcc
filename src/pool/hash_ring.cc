#include "pool/hash_ring.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace kvferry::pool {
namespace {

constexpr std::uint32_t kPointMax = std::numeric_limits<std::uint32_t>::max();
constexpr double kCircle = 4294967296.0;
// Beyond this many slices the table outgrows the caches, and a walk of some points is cheaper.
constexpr int kSliceBitsMax = 18;

/// Sorts by value and keeps equal points in their order. The position is a part of the sorted
/// number, since the library's stable sort of g++ 12 uses what clang calls deprecated.
void sort_stably(std::vector<HashRing::Point>& points) {
  std::vector<std::uint64_t> order;
  order.reserve(points.size());
  for (std::size_t at = 0; at < points.size(); ++at) {
    order.push_back((std::uint64_t{points[at].value} << 32) | at);
  }
  std::ranges::sort(order);
  std::vector<HashRing::Point> sorted;
  sorted.reserve(points.size() + 1);  // The ring adds its end mark.
  for (const std::uint64_t place : order) {
    sorted.push_back(points[place & kPointMax]);
  }
  points = std::move(sorted);
}

}  // namespace

HashRing::HashRing(std::vector<Point> points) : points_(std::move(points)) {
  if (points_.empty()) {
    return;
  }
  sort_stably(points_);

  const int slice_bits =
      std::min(static_cast<int>(std::bit_width(points_.size() * 2)), kSliceBitsMax);
  shift_ = 32 - slice_bits;
  first_.resize(std::size_t{1} << slice_bits);
  std::uint32_t next = 0;
  for (std::size_t slice = 0; slice < first_.size(); ++slice) {
    const auto slice_begin = static_cast<std::uint32_t>(slice << shift_);
    while (next < points_.size() && points_[next].value < slice_begin) {
      ++next;
    }
    first_[slice] = next;
  }
  points_.push_back({.value = kPointMax, .owner = points_.front().owner});
}

std::span<const HashRing::Point> HashRing::points() const noexcept {
  return std::span(points_).first(points_.empty() ? 0 : points_.size() - 1);
}

HashRing::Point HashRing::point_at(std::uint32_t hash) const noexcept {
  const std::span<const Point> sorted = points();
  const auto found = std::ranges::lower_bound(sorted, hash, {}, &Point::value);
  return found == sorted.end() ? sorted.front() : *found;
}

std::vector<double> HashRing::arcs(std::size_t owner_count) const {
  std::vector<double> parts(owner_count, 0.0);
  const std::span<const Point> sorted = points();
  if (sorted.empty()) {
    return parts;
  }
  // The first arc begins behind the last point and wraps; with one value it is the whole circle.
  const double last = sorted.back().value;
  parts[sorted.front().owner] += (kCircle - last + sorted.front().value) / kCircle;
  for (std::size_t at = 1; at < sorted.size(); ++at) {
    parts[sorted[at].owner] +=
        (static_cast<double>(sorted[at].value) - sorted[at - 1].value) / kCircle;
  }
  return parts;
}

}  // namespace kvferry::pool
