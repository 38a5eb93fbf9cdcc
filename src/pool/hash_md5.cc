#include "pool/hash_md5.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "pool/little_endian.h"

namespace kvferry::pool {
namespace {

constexpr std::size_t kBlockBytes = 64;
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kSteps = 64;

/// Step i adds the integer part of 2^32 * |sin(i + 1)|.
constexpr std::array<std::uint32_t, kSteps> kSines = {
    0xd76aa478U, 0xe8c7b756U, 0x242070dbU, 0xc1bdceeeU, 0xf57c0fafU, 0x4787c62aU, 0xa8304613U,
    0xfd469501U, 0x698098d8U, 0x8b44f7afU, 0xffff5bb1U, 0x895cd7beU, 0x6b901122U, 0xfd987193U,
    0xa679438eU, 0x49b40821U, 0xf61e2562U, 0xc040b340U, 0x265e5a51U, 0xe9b6c7aaU, 0xd62f105dU,
    0x02441453U, 0xd8a1e681U, 0xe7d3fbc8U, 0x21e1cde6U, 0xc33707d6U, 0xf4d50d87U, 0x455a14edU,
    0xa9e3e905U, 0xfcefa3f8U, 0x676f02d9U, 0x8d2a4c8aU, 0xfffa3942U, 0x8771f681U, 0x6d9d6122U,
    0xfde5380cU, 0xa4beea44U, 0x4bdecfa9U, 0xf6bb4b60U, 0xbebfbc70U, 0x289b7ec6U, 0xeaa127faU,
    0xd4ef3085U, 0x04881d05U, 0xd9d4d039U, 0xe6db99e5U, 0x1fa27cf8U, 0xc4ac5665U, 0xf4292244U,
    0x432aff97U, 0xab9423a7U, 0xfc93a039U, 0x655b59c3U, 0x8f0ccc92U, 0xffeff47dU, 0x85845dd1U,
    0x6fa87e4fU, 0xfe2ce6e0U, 0xa3014314U, 0x4e0811a1U, 0xf7537e82U, 0xbd3af235U, 0x2ad7d2bbU,
    0xeb86d391U,
};

/// Left turns of the steps: a row for each round of 16 steps, used in turn.
constexpr std::array<std::array<int, 4>, 4> kTurns = {
    {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};

constexpr std::size_t word_of_step(std::size_t step) {
  switch (step / 16) {
    case 0:
      return step;
    case 1:
      return (5 * step + 1) % 16;
    case 2:
      return (3 * step + 5) % 16;
    default:
      return (7 * step) % 16;
  }
}

template <std::size_t Step>
void take_step(Md5Words& state, const char* block) noexcept {
  const auto [a, b, c, d] = state;
  std::uint32_t mixed = 0;
  if constexpr (Step < 16) {
    mixed = d ^ (b & (c ^ d));
  } else if constexpr (Step < 32) {
    mixed = c ^ (d & (b ^ c));
  } else if constexpr (Step < 48) {
    mixed = b ^ c ^ d;
  } else {
    mixed = c ^ (b | ~d);
  }
  const std::uint32_t word = load_little32(block + word_of_step(Step) * 4);
  const std::uint32_t sum = a + mixed + kSines[Step] + word;
  state = {d, b + std::rotl(sum, kTurns[Step / 16][Step % 4]), b, c};
}

/// The steps are unrolled at compile time, so that the words of the state stay in registers.
template <std::size_t... Steps>
void take_steps(Md5Words& state, const char* block, std::index_sequence<Steps...>) noexcept {
  (take_step<Steps>(state, block), ...);
}

void take_block(Md5Words& state, const char* block) noexcept {
  Md5Words mixed = state;
  take_steps(mixed, block, std::make_index_sequence<kSteps>());
  for (std::size_t at = 0; at < state.size(); ++at) {
    state[at] += mixed[at];
  }
}

}  // namespace

Md5Words md5_words(std::string_view text) noexcept {
  Md5Words state = {0x67452301U, 0xefcdab89U, 0x98badcfeU, 0x10325476U};
  const char* bytes = text.data();
  std::size_t left = text.size();
  for (; left >= kBlockBytes; left -= kBlockBytes, bytes += kBlockBytes) {
    take_block(state, bytes);
  }

  // The end: the remaining bytes, one bit, zeros, and the length in bits in the last eight bytes.
  std::array<char, 2 * kBlockBytes> tail{};
  std::copy_n(bytes, left, tail.begin());
  tail[left] = static_cast<char>(0x80);
  const std::size_t tail_bytes =
      left + 1 + kLengthBytes <= kBlockBytes ? kBlockBytes : 2 * kBlockBytes;
  std::uint64_t bits = std::uint64_t{text.size()} * 8;
  for (std::size_t at = tail_bytes - kLengthBytes; at < tail_bytes; ++at, bits >>= 8) {
    tail[at] = static_cast<char>(bits & 0xffU);
  }
  for (std::size_t at = 0; at < tail_bytes; at += kBlockBytes) {
    take_block(state, tail.data() + at);
  }
  return state;
}

}  // namespace kvferry::pool
