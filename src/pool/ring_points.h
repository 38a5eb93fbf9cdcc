// The points that servers get on a hash ring, as twemproxy, libmemcached and memcached's built-in
// proxy make them.
//
// Source:    twemproxy 0.5.0; libmemcached 1.1.4 (checked against the real library); memcached's
//            proxy with dist_ring_hash.
// Threads:   pure functions; control thread, as they allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pool/hash_ring.h"
#include "pool/options.h"

namespace kvferry::pool {

inline constexpr std::uint32_t kKetamaPointsPerServer = 160;
inline constexpr std::uint32_t kUnweightedPointsPerServer = 100;

/// A live server on its way to the ring.
struct RingServer {
  std::string label;  // Text before "-<k>".
  std::uint32_t weight = 1;
  std::uint32_t index = 0;  // Owner of the points.
};

/// How many ketama points a server of `weight` gets among `live` servers that weigh `total`
/// together. Counted in single precision as twemproxy does, so that a share of exactly 160 may
/// become 156, and a very light server may get none.
std::uint32_t ketama_point_count(std::uint32_t weight, std::uint64_t total,
                                 std::size_t live) noexcept;

/// Weighted ketama: four points from the MD5 of each "<label>-<k>".
std::vector<HashRing::Point> ketama_points(std::span<const RingServer> servers);

/// Libmemcached's ketama without weights: 100 points a server, each the hash of "<label>-<k>" with
/// the hash that keys have.
std::vector<HashRing::Point> unweighted_ketama_points(std::span<const RingServer> servers,
                                                      HashKind hash);

/// Ring of memcached's proxy: one point of XXH3 a text under RingNaming::Default, four of MD5
/// otherwise. Makes `per_server` points, rounded down to a multiple of four for MD5.
std::vector<HashRing::Point> memcached_ring_points(std::span<const RingServer> servers,
                                                   RingNaming naming, std::uint32_t per_server);

}  // namespace kvferry::pool
