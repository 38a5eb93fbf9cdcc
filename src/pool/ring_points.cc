#include "pool/ring_points.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "pool/hash_md5.h"
#include "pool/key_hash.h"

namespace kvferry::pool {
namespace {

constexpr std::uint32_t kPointsPerDigest = 4;

/// Replaces what follows the label in `text` by "-<k>".
std::string_view text_of_point(std::string& text, std::size_t label_size, std::uint32_t k) {
  std::array<char, 10> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), k).ptr;
  text.resize(label_size);
  text += '-';
  text.append(digits.data(), end);
  return text;
}

void append_digest_points(const RingServer& server, std::uint32_t digests,
                          std::vector<HashRing::Point>& points) {
  std::string text = server.label;
  for (std::uint32_t k = 0; k < digests; ++k) {
    for (const std::uint32_t word : md5_words(text_of_point(text, server.label.size(), k))) {
      points.push_back({.value = word, .owner = server.index});
    }
  }
}

void append_hash_points(const RingServer& server, std::uint32_t count, HashKind hash,
                        std::vector<HashRing::Point>& points) {
  std::string text = server.label;
  for (std::uint32_t k = 0; k < count; ++k) {
    const std::uint64_t value = hash_key(hash, text_of_point(text, server.label.size(), k));
    points.push_back({.value = static_cast<std::uint32_t>(value), .owner = server.index});
  }
}

}  // namespace

std::uint32_t ketama_point_count(std::uint32_t weight, std::uint64_t total,
                                 std::size_t live) noexcept {
  // Every step is stored in a float on purpose; the last sum is made in double and then rounded.
  const float part = static_cast<float>(weight) / static_cast<float>(total);
  const float points = part * static_cast<float>(kKetamaPointsPerServer);
  const float digests = points / static_cast<float>(kPointsPerDigest);
  const float of_all = digests * static_cast<float>(live);
  const auto nudged = static_cast<float>(static_cast<double>(of_all) + 1e-10);
  return static_cast<std::uint32_t>(std::floor(nudged)) * kPointsPerDigest;
}

std::vector<HashRing::Point> ketama_points(std::span<const RingServer> servers) {
  std::uint64_t total = 0;
  for (const RingServer& server : servers) {
    total += server.weight;
  }
  std::vector<HashRing::Point> points;
  points.reserve(servers.size() * kKetamaPointsPerServer);
  for (const RingServer& server : servers) {
    const std::uint32_t count = ketama_point_count(server.weight, total, servers.size());
    append_digest_points(server, count / kPointsPerDigest, points);
  }
  return points;
}

std::vector<HashRing::Point> unweighted_ketama_points(std::span<const RingServer> servers,
                                                      HashKind hash) {
  std::vector<HashRing::Point> points;
  points.reserve(servers.size() * kUnweightedPointsPerServer);
  for (const RingServer& server : servers) {
    append_hash_points(server, kUnweightedPointsPerServer, hash, points);
  }
  return points;
}

std::vector<HashRing::Point> memcached_ring_points(std::span<const RingServer> servers,
                                                   RingNaming naming, std::uint32_t per_server) {
  std::vector<HashRing::Point> points;
  points.reserve(servers.size() * per_server);
  for (const RingServer& server : servers) {
    if (naming == RingNaming::Default) {
      append_hash_points(server, per_server, HashKind::Xxh3, points);
    } else {
      append_digest_points(server, per_server / kPointsPerDigest, points);
    }
  }
  return points;
}

}  // namespace kvferry::pool
