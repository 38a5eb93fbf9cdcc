// Points on a circle of 2^32 numbers; each belongs to an owner, and so does the arc that ends in
// it.
//
// A look-up is on the path of every request, so it does not search: a table on the top bits of the
// hash names the first point that can be the answer, and with two to four table entries a point the
// answer is nearly always that point or the next one.
//
//   first_   | 0 | 0 | 1 | 3 | ...        one entry for each equal slice of the circle
//              |       |   |
//   points_  | p0 |  p1 | p2 | p3 | ... | 2^32 - 1, owner of p0 |
//
// The last entry of points_ is no point: it ends every walk, and wraps the circle around.
//
// Threads:   immutable after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvferry::pool {

class HashRing {
 public:
  struct Point {
    std::uint32_t value = 0;
    std::uint32_t owner = 0;

    friend bool operator==(const Point&, const Point&) = default;
  };

  /// A ring without points; owner_of must not be called.
  HashRing() = default;

  /// Sorts `points`; of equal ones the first given is found.
  explicit HashRing(std::vector<Point> points);

  bool empty() const noexcept { return points_.empty(); }
  std::span<const Point> points() const noexcept;

  /// Owner of the first point that is not before `hash`; past the last point, of the first one.
  std::uint32_t owner_of(std::uint32_t hash) const noexcept {
    const Point* point = points_.data() + first_[hash >> shift_];
    point += static_cast<std::ptrdiff_t>(point->value < hash);
    while (point->value < hash) [[unlikely]] {
      ++point;
    }
    return point->owner;
  }

  /// The same point itself, for people. Needs a ring with points.
  Point point_at(std::uint32_t hash) const noexcept;

  /// How much of the circle each owner in [0, owner_count) has; the parts add up to 1.
  std::vector<double> arcs(std::size_t owner_count) const;

 private:
  std::vector<Point> points_;         // Sorted, and the end mark.
  std::vector<std::uint32_t> first_;  // Index of the first point of a slice or after it.
  int shift_ = 31;
};

}  // namespace kvferry::pool
