#include "pool/placement.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "pool/key_hash.h"
#include "pool/ring_points.h"
#include "pool/server_label.h"

namespace kvferry::pool {
namespace {

// Up to so many slots modula looks its owner up in a table; beyond, it searches.
constexpr std::uint64_t kSlotTableMax = 4096;
constexpr std::size_t kHashTagBytes = 2;
constexpr std::size_t kFilterBytesMax = 5;

base::Error invalid(std::string text) {
  return {base::ErrorCode::InvalidInput, std::move(text)};
}

/// The hashes that only predixy has count modula in the order of the file.
bool keeps_file_order(const PlacementOptions& options) {
  if (options.distribution == DistributionKind::Modula) {
    return options.hash == HashKind::Crc16Slot || options.hash == HashKind::Atol;
  }
  // Libmemcached and memcached's proxy do not sort; equal points fall to the first in the file.
  return options.distribution == DistributionKind::Jump ||
         options.distribution == DistributionKind::RingMemcached ||
         (options.distribution == DistributionKind::Ketama &&
          options.naming == KetamaNaming::Libmemcached);
}

base::Result<void> check_filter(const PlacementOptions& options) {
  const std::size_t size = options.hash_tag.size();
  if (size == 0) {
    return {};
  }
  if (options.filter == KeyFilter::HashTag && size != kHashTagBytes) {
    return invalid("hash_tag must be exactly two bytes, found " + std::to_string(size));
  }
  if (size < kHashTagBytes || size > kFilterBytesMax) {
    return invalid("hash filter conf must be between 2 and 5 characters");
  }
  return {};
}

base::Result<void> check_options(const PlacementOptions& options,
                                 const std::vector<ServerOptions>& servers) {
  if (auto filter = check_filter(options); !filter) {
    return filter;
  }
  for (const ServerOptions& server : servers) {
    if (server.weight == 0) {
      return invalid("server '" + label_of(server) + "' has weight 0; weights begin at 1");
    }
    if (options.distribution == DistributionKind::Jump && server.weight != 1) {
      return invalid("distribution jump knows no weights, but server '" + label_of(server) +
                     "' has weight " + std::to_string(server.weight) +
                     "; use distribution rendezvous for weights");
    }
  }
  if (options.distribution == DistributionKind::RingMemcached) {
    if (options.ring_points == 0) {
      return invalid("ring_hash: option argument must be a positive integer");
    }
    if (std::uint64_t{options.ring_points} * servers.size() > kRingPointsMax) {
      return invalid("a ring has at most " + std::to_string(kRingPointsMax) + " points; " +
                     std::to_string(options.ring_points) + " for each of " +
                     std::to_string(servers.size()) + " servers are more");
    }
  }
  return {};
}

std::string ring_label(const PlacementOptions& options, const ServerOptions& server,
                       const std::string& point_label) {
  if (options.distribution == DistributionKind::RingMemcached) {
    return memcached_ring_label_of(server, options.ring_naming);
  }
  return options.naming == KetamaNaming::Libmemcached ? libmemcached_label_of(server) : point_label;
}

std::string rank_text(std::uint64_t rank, std::uint64_t count) {
  return std::to_string(rank) + " of " + std::to_string(count);
}

}  // namespace

Placement::Placement(PlacementOptions options, std::size_t server_count)
    : options_(std::move(options)), server_count_(server_count) {}

base::Result<std::shared_ptr<const Placement>> Placement::make(
    const PlacementOptions& options, const std::vector<ServerOptions>& servers,
    const std::vector<bool>& is_live) {
  KVF_CHECK(is_live.size() == servers.size());
  if (auto checked = check_options(options, servers); !checked) {
    return std::move(checked).error();
  }

  std::vector<LiveServer> live;
  for (std::size_t at = 0; at < servers.size(); ++at) {
    if (is_live[at]) {
      const ServerOptions& server = servers[at];
      live.push_back(
          {.options = &server,
           .name = server.point_label.empty() ? point_label_of(server) : server.point_label,
           .index = static_cast<std::uint32_t>(at)});
    }
  }
  if (!keeps_file_order(options)) {
    std::ranges::sort(live, {}, [](const LiveServer& server) {
      return std::tuple(server.name.size(), std::string_view(server.name), server.index);
    });
  }

  std::shared_ptr<Placement> placement(new Placement(options, servers.size()));
  placement->build(live);
  return std::shared_ptr<const Placement>(std::move(placement));
}

void Placement::build(const std::vector<LiveServer>& live) {
  for (const LiveServer& server : live) {
    order_.push_back(server.index);
    weights_.push_back(server.options->weight);
  }
  if (live.empty()) {
    rule_ = Rule::Nothing;
    return;
  }
  switch (options_.distribution) {
    case DistributionKind::Ketama:
    case DistributionKind::RingMemcached:
      build_ring(live);
      rule_ = ring_.empty() ? Rule::Nothing : Rule::Ring;
      break;
    case DistributionKind::Modula:
      build_slots(live);
      rule_ = Rule::Modula;
      break;
    case DistributionKind::Random:
      rule_ = Rule::Random;
      break;
    case DistributionKind::Jump:
      rule_ = Rule::Jump;
      break;
    case DistributionKind::Rendezvous:
      build_rendezvous(live);
      rule_ = Rule::Rendezvous;
      break;
  }
  if (live.size() == 1) {
    rule_ = Rule::OnlyOne;
  }
}

void Placement::build_ring(const std::vector<LiveServer>& live) {
  std::vector<RingServer> servers;
  servers.reserve(live.size());
  for (const LiveServer& server : live) {
    servers.push_back({.label = ring_label(options_, *server.options, server.name),
                       .weight = server.options->weight,
                       .index = server.index});
  }
  if (options_.distribution == DistributionKind::RingMemcached) {
    ring_ = HashRing(memcached_ring_points(servers, options_.ring_naming, options_.ring_points));
  } else if (options_.naming == KetamaNaming::Libmemcached && !options_.weights_given) {
    ring_ = HashRing(unweighted_ketama_points(servers, options_.hash));
  } else {
    ring_ = HashRing(ketama_points(servers));
  }
}

void Placement::build_slots(const std::vector<LiveServer>& live) {
  for (const LiveServer& server : live) {
    slot_count_ += server.options->weight;
    slots_end_.push_back(slot_count_);
  }
  if (slot_count_ <= kSlotTableMax) {
    for (const LiveServer& server : live) {
      slots_.insert(slots_.end(), server.options->weight, server.index);
    }
  }
}

void Placement::build_rendezvous(const std::vector<LiveServer>& live) {
  std::vector<Rendezvous::Server> servers;
  servers.reserve(live.size());
  for (const LiveServer& server : live) {
    servers.push_back({.name_hash = hash_key(HashKind::Xxh3, label_of(*server.options)),
                       .weight = static_cast<double>(server.options->weight),
                       .index = server.index});
  }
  rendezvous_ = Rendezvous(std::move(servers));
}

std::string_view Placement::part_of(std::string_view key) const noexcept {
  if (options_.hash_tag.empty()) [[likely]] {
    return key;
  }
  return pool::hashed_part(key, options_.filter, options_.hash_tag);
}

std::uint64_t Placement::hash_of(std::string_view part) const noexcept {
  if (part.empty() && options_.filter == KeyFilter::HashTag) {
    return 0;  // Twemproxy never hashes an empty key.
  }
  return options_.hash_seed == 0 || options_.hash != HashKind::Xxh3
             ? hash_key(options_.hash, part)
             : hash_xxh3(part, options_.hash_seed);
}

std::uint32_t Placement::slot_owner(std::uint64_t slot) const noexcept {
  if (!slots_.empty()) [[likely]] {
    return slots_[slot];
  }
  const auto end = std::ranges::upper_bound(slots_end_, slot);
  return order_[static_cast<std::size_t>(end - slots_end_.begin())];
}

std::uint32_t Placement::index_of(std::uint64_t hash) const noexcept {
  switch (rule_) {
    case Rule::Ring:
      return ring_.owner_of(static_cast<std::uint32_t>(hash));
    case Rule::Modula:
      return slot_owner(hash % slot_count_);
    case Rule::Jump:
      return order_[jump_bucket(hash, static_cast<std::uint32_t>(order_.size()))];
    case Rule::Rendezvous:
      return rendezvous_.index_of(hash);
    case Rule::OnlyOne:
      return order_.front();
    case Rule::Random:
    case Rule::Nothing:
      break;
  }
  return kNoServer;
}

std::uint32_t Placement::draw(std::uint64_t& random_state) const noexcept {
  // A step of xorshift; its one fixed point is 0, which the sum steps over.
  std::uint64_t state = random_state == 0 ? 0x9e3779b97f4a7c15U : random_state;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  random_state = state;
  return order_[static_cast<std::size_t>(((state >> 32) * order_.size()) >> 32)];
}

std::uint32_t Placement::select(std::string_view key, std::uint64_t& random_state) const noexcept {
  if (rule_ == Rule::Ring) [[likely]] {
    return ring_.owner_of(static_cast<std::uint32_t>(hash_of(part_of(key))));
  }
  if (rule_ == Rule::OnlyOne || rule_ == Rule::Nothing) {
    return index_of(0);
  }
  return rule_ == Rule::Random ? draw(random_state) : index_of(hash_of(part_of(key)));
}

Placement::Explained Placement::explain(std::string_view key) const {
  Explained explained;
  explained.hashed_part = part_of(key);
  explained.hash = hash_of(explained.hashed_part);
  explained.index = index_of(explained.hash);
  if (rule_ == Rule::Ring) {
    explained.ring_point = ring_.point_at(static_cast<std::uint32_t>(explained.hash)).value;
  }
  explained.reason = reason_of(explained.hash);
  return explained;
}

std::string Placement::reason_of(std::uint64_t hash) const {
  switch (rule_) {
    case Rule::Nothing:
      return "no server is live";
    case Rule::OnlyOne:
      return server_count_ == 1 ? "the pool has one server, so keys are not hashed"
                                : "one server is live, so keys are not hashed";
    case Rule::Random:
      return "random: every request chooses anew among " + std::to_string(order_.size()) +
             " servers";
    case Rule::Modula:
      return "modula: slot " + rank_text(hash % slot_count_, slot_count_);
    case Rule::Jump:
      return "jump: bucket " +
             rank_text(jump_bucket(hash, static_cast<std::uint32_t>(order_.size())), order_.size());
    case Rule::Rendezvous:
      return "rendezvous: highest score of " + std::to_string(order_.size()) + " servers";
    case Rule::Ring:
      break;
  }
  const auto points = ring_.points();
  const bool is_wrapped = static_cast<std::uint32_t>(hash) > points.back().value;
  return (is_wrapped ? "ring: past the last of " : "ring: next of ") +
         std::to_string(points.size()) + (is_wrapped ? " points, so the first" : " points");
}

std::vector<Placement::Share> Placement::shares() const {
  std::vector<Share> shares(server_count_);
  const bool ignores_weights =
      rule_ == Rule::Random || options_.distribution == DistributionKind::RingMemcached ||
      (options_.distribution == DistributionKind::Ketama && !options_.weights_given);
  const auto weight_at = [&](std::size_t at) { return ignores_weights ? 1.0 : weights_[at]; };
  double total = 0;
  for (std::size_t at = 0; at < order_.size(); ++at) {
    total += weight_at(at);
  }
  for (std::size_t at = 0; at < order_.size(); ++at) {
    Share& share = shares[order_[at]];
    share.expected = weight_at(at) / total;
    share.actual = share.expected;
    share.points = slot_count_ == 0 ? 0 : weights_[at];
  }

  for (const HashRing::Point& point : ring_.points()) {
    ++shares[point.owner].points;
  }
  if (rule_ == Rule::Ring) {
    const std::vector<double> arcs = ring_.arcs(server_count_);
    for (std::size_t at = 0; at < shares.size(); ++at) {
      shares[at].actual = arcs[at];
    }
  }
  return shares;
}

}  // namespace kvferry::pool
