// What fuzz targets share: a check that is always on, and cuts that the input itself chooses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace kvferry::fuzz {

/// Ends the program when a property does not hold; the fuzzer keeps the input.
inline void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

inline bool is_inside(std::string_view view, std::string_view bytes) {
  return view.empty() ||
         (view.data() >= bytes.data() && view.data() + view.size() <= bytes.data() + bytes.size());
}

/// Sizes of the pieces that a stream is cut into. Seed 0 gives the whole at once, seed 1 single
/// bytes, others a repeatable mixture of short and longer pieces.
class PieceSizes {
 public:
  explicit PieceSizes(std::uint8_t seed) : seed_(seed), state_(seed * 2654435761U + 1) {}

  std::size_t next(std::size_t left) {
    if (seed_ == 0) {
      return left;
    }
    if (seed_ == 1) {
      return std::min<std::size_t>(left, 1);
    }
    state_ = state_ * 1664525U + 1013904223U;
    const std::size_t size = (state_ >> 28) == 0 ? 700 : 1 + (state_ >> 16) % 23;
    return std::min(left, size);
  }

 private:
  std::uint8_t seed_;
  std::uint32_t state_;
};

}  // namespace kvferry::fuzz
