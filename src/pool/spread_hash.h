// Distributions that compute a server from the hash without a table of points: jump and rendezvous.
//
// Threads:   immutable after construction; nothing here allocates after that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvferry::pool {

/// Jump consistent hash: bucket in [0, buckets) of a 64-bit `hash`. `buckets` is at least 1.
/// The quotient is computed in doubles, as memcached's proxy and the paper's authors do.
inline std::uint32_t jump_bucket(std::uint64_t hash, std::uint32_t buckets) noexcept {
  constexpr std::uint64_t kMultiplier = 2862933555777941757U;
  constexpr double kTwoTo31 = 2147483648.0;
  std::int64_t bucket = -1;
  std::int64_t next = 0;
  while (next < static_cast<std::int64_t>(buckets)) {
    bucket = next;
    hash = hash * kMultiplier + 1;
    next = static_cast<std::int64_t>(static_cast<double>(bucket + 1) *
                                     (kTwoTo31 / static_cast<double>((hash >> 33) + 1)));
  }
  return static_cast<std::uint32_t>(bucket);
}

/// Weighted rendezvous hashing: every server scores every key, and the highest score wins.
class Rendezvous {
 public:
  struct Server {
    std::uint64_t name_hash = 0;  // XXH3 of the name, seed 0.
    double weight = 1;
    std::uint32_t index = 0;
  };

  /// `servers` in the order in which equal scores are decided: the first wins. At least one when
  /// index_of is called.
  explicit Rendezvous(std::vector<Server> servers);
  Rendezvous() = default;

  std::uint32_t index_of(std::uint64_t key_hash) const noexcept {
    return has_equal_weights_ ? best_of_equals(key_hash) : best_by_weight(key_hash);
  }

 private:
  std::uint32_t best_of_equals(std::uint64_t key_hash) const noexcept;
  std::uint32_t best_by_weight(std::uint64_t key_hash) const noexcept;

  std::vector<Server> servers_;
  bool has_equal_weights_ = true;
};

}  // namespace kvferry::pool
