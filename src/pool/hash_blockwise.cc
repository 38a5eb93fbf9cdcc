#include "pool/hash_blockwise.h"

#include <array>
#include <bit>

#include "pool/hash_bytewise.h"

namespace kvferry::pool {
namespace {

constexpr std::uint32_t kMurmur3Seed = 0xc0a1e5ceU;
constexpr std::uint32_t kJenkinsStart = 13;
constexpr std::size_t kMurmur3BlockBytes = 16;
constexpr std::size_t kJenkinsBlockBytes = 12;

/// One of the four lanes of MurmurHash3 x86_128: how a word is scrambled and folded in.
struct MurmurLane {
  std::uint32_t first_factor;
  int word_turn;
  std::uint32_t second_factor;
  int state_turn;
  std::uint32_t addend;
};

constexpr std::array<MurmurLane, 4> kMurmurLanes = {{
    MurmurLane{.first_factor = 0x239b961bU,
               .word_turn = 15,
               .second_factor = 0xab0e9789U,
               .state_turn = 19,
               .addend = 0x561ccd1bU},
    MurmurLane{.first_factor = 0xab0e9789U,
               .word_turn = 16,
               .second_factor = 0x38b34ae5U,
               .state_turn = 17,
               .addend = 0x0bcaa747U},
    MurmurLane{.first_factor = 0x38b34ae5U,
               .word_turn = 17,
               .second_factor = 0xa1e38b93U,
               .state_turn = 15,
               .addend = 0x96cd1c35U},
    MurmurLane{.first_factor = 0xa1e38b93U,
               .word_turn = 18,
               .second_factor = 0x239b961bU,
               .state_turn = 13,
               .addend = 0x32ac3b17U},
}};

std::uint32_t scramble(std::uint32_t word, const MurmurLane& lane) noexcept {
  return std::rotl(word * lane.first_factor, lane.word_turn) * lane.second_factor;
}

std::uint32_t finish_murmur3_word(std::uint32_t word) noexcept {
  word ^= word >> 16;
  word *= 0x85ebca6bU;
  word ^= word >> 13;
  word *= 0xc2b2ae35U;
  word ^= word >> 16;
  return word;
}

struct JenkinsState {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t c = 0;

  void mix() noexcept {
    a = (a - c) ^ std::rotl(c, 4);
    c += b;
    b = (b - a) ^ std::rotl(a, 6);
    a += c;
    c = (c - b) ^ std::rotl(b, 8);
    b += a;
    a = (a - c) ^ std::rotl(c, 16);
    c += b;
    b = (b - a) ^ std::rotl(a, 19);
    a += c;
    c = (c - b) ^ std::rotl(b, 4);
    b += a;
  }

  void finish() noexcept {
    c = (c ^ b) - std::rotl(b, 14);
    a = (a ^ c) - std::rotl(c, 11);
    b = (b ^ a) - std::rotl(a, 25);
    c = (c ^ b) - std::rotl(b, 16);
    a = (a ^ c) - std::rotl(c, 4);
    b = (b ^ a) - std::rotl(a, 14);
    c = (c ^ b) - std::rotl(b, 24);
  }
};

/// The `index`-th little-endian word of the last `size` bytes of a key; bytes past the end are 0.
std::uint32_t tail_word(const char* bytes, std::size_t size, std::size_t index) noexcept {
  const std::size_t begin = index * 4;
  if (begin >= size) {
    return 0;
  }
  return size - begin >= 4 ? load_little32(bytes + begin)
                           : load_little_tail(bytes + begin, size - begin);
}

}  // namespace

std::uint32_t hash_murmur3(std::string_view key) noexcept {
  std::array<std::uint32_t, 4> state{};
  state.fill(kMurmur3Seed);

  const char* bytes = key.data();
  std::size_t left = key.size();
  for (; left >= kMurmur3BlockBytes; left -= kMurmur3BlockBytes, bytes += kMurmur3BlockBytes) {
    for (std::size_t at = 0; at < state.size(); ++at) {
      const MurmurLane& lane = kMurmurLanes[at];
      const std::uint32_t folded = state[at] ^ scramble(load_little32(bytes + at * 4), lane);
      state[at] = (std::rotl(folded, lane.state_turn) + state[(at + 1) % 4]) * 5 + lane.addend;
    }
  }
  for (std::size_t at = 0; at < state.size(); ++at) {
    // A word without bytes is 0 and scrambles to 0, so it leaves its lane alone.
    state[at] ^= scramble(tail_word(bytes, left, at), kMurmurLanes[at]);
    state[at] ^= static_cast<std::uint32_t>(key.size());
  }

  state[0] += state[1] + state[2] + state[3];
  std::uint32_t hash = finish_murmur3_word(state[0]);
  for (std::size_t at = 1; at < state.size(); ++at) {
    hash += finish_murmur3_word(state[at] + state[0]);
  }
  return hash;
}

std::uint32_t hash_hsieh(std::string_view key) noexcept {
  std::uint32_t hash = 0;
  const char* bytes = key.data();
  std::size_t left = key.size();
  for (; left >= 4; left -= 4, bytes += 4) {
    hash += load_little16(bytes);
    const std::uint32_t mixed = (std::uint32_t{load_little16(bytes + 2)} << 11) ^ hash;
    hash = (hash << 16) ^ mixed;
    hash += hash >> 11;
  }

  switch (left) {
    case 3:
      hash += load_little16(bytes);
      hash ^= hash << 16;
      hash ^= signed_byte32(bytes[2]) << 18;
      hash += hash >> 11;
      break;
    case 2:
      hash += load_little16(bytes);
      hash ^= hash << 11;
      hash += hash >> 17;
      break;
    case 1:
      hash += static_cast<unsigned char>(bytes[0]);
      hash ^= hash << 10;
      hash += hash >> 1;
      break;
    default:
      break;
  }

  hash ^= hash << 3;
  hash += hash >> 5;
  hash ^= hash << 4;
  hash += hash >> 17;
  hash ^= hash << 25;
  hash += hash >> 6;
  return hash;
}

std::uint32_t hash_jenkins(std::string_view key) noexcept {
  const std::uint32_t start = 0xdeadbeefU + static_cast<std::uint32_t>(key.size()) + kJenkinsStart;
  JenkinsState state{.a = start, .b = start, .c = start};

  const char* bytes = key.data();
  std::size_t left = key.size();
  // The last block, even a full one, goes through finish() and not through mix().
  for (; left > kJenkinsBlockBytes; left -= kJenkinsBlockBytes, bytes += kJenkinsBlockBytes) {
    state.a += load_little32(bytes);
    state.b += load_little32(bytes + 4);
    state.c += load_little32(bytes + 8);
    state.mix();
  }
  if (left > 0) {
    state.a += tail_word(bytes, left, 0);
    state.b += tail_word(bytes, left, 1);
    state.c += tail_word(bytes, left, 2);
    state.finish();
  }
  return state.c;
}

}  // namespace kvferry::pool
