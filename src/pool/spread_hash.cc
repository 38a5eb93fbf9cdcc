#include "pool/spread_hash.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvferry::pool {
namespace {

constexpr int kMantissaBits = 53;

std::uint64_t mix(std::uint64_t bits) noexcept {
  bits ^= bits >> 30;
  bits *= 0xbf58476d1ce4e5b9U;
  bits ^= bits >> 27;
  bits *= 0x94d049bb133111ebU;
  bits ^= bits >> 31;
  return bits;
}

/// The top 53 bits of the mixed hashes, which a double holds exactly.
std::uint64_t draw_of(std::uint64_t key_hash, std::uint64_t name_hash) noexcept {
  return mix(key_hash ^ name_hash) >> (64 - kMantissaBits);
}

}  // namespace

Rendezvous::Rendezvous(std::vector<Server> servers)
    : servers_(std::move(servers)),
      has_equal_weights_(std::ranges::all_of(
          servers_, [this](const Server& one) { return one.weight == servers_.front().weight; })) {}

// With equal weights the score grows with the draw, so the logarithms can be left out.
std::uint32_t Rendezvous::best_of_equals(std::uint64_t key_hash) const noexcept {
  std::uint64_t best_draw = 0;
  std::uint32_t best = servers_.front().index;
  for (const Server& server : servers_) {
    const std::uint64_t draw = draw_of(key_hash, server.name_hash);
    if (draw > best_draw) {
      best_draw = draw;
      best = server.index;
    }
  }
  return best;
}

std::uint32_t Rendezvous::best_by_weight(std::uint64_t key_hash) const noexcept {
  double best_score = -std::numeric_limits<double>::infinity();
  std::uint32_t best = servers_.front().index;
  for (const Server& server : servers_) {
    const auto draw = static_cast<double>(draw_of(key_hash, server.name_hash));
    const double uniform = (draw + 0.5) * std::ldexp(1.0, -kMantissaBits);
    const double score = -server.weight / std::log(uniform);
    if (score > best_score) {
      best_score = score;
      best = server.index;
    }
  }
  return best;
}

}  // namespace kvferry::pool
