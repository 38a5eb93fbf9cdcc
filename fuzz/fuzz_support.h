// What fuzz targets share: a check that is always on, and streams cut where the input itself says.
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

/// Longer inputs are not also fed in single bytes, which copies the square of their size.
inline constexpr std::size_t kBytewiseMax = 512;

/// Byte 0 of an input chooses the limits of a parser, byte 1 the cuts; the rest is what a client
/// sends. A player of `Player(limits).play(stream, sizes)` must tell the same however it is cut.
template <typename Player, typename Limits>
void require_same_in_pieces(Limits (*limits_of)(std::uint8_t), const std::uint8_t* data,
                            std::size_t size) {
  if (size < 2) {
    return;
  }
  const Limits limits = limits_of(data[0]);
  const std::string_view stream(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto whole = Player(limits).play(stream, PieceSizes(0));
  require(Player(limits).play(stream, PieceSizes(data[1])) == whole);
  if (size < kBytewiseMax) {
    require(Player(limits).play(stream, PieceSizes(1)) == whole);
  }
}

}  // namespace kvferry::fuzz
