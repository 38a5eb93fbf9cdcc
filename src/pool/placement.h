// Which server of a pool a key belongs to.
//
// A Placement is made from the pool's options, its servers and which of them are live, and never
// changes after that: a server that goes down or comes back makes a new one, on the control thread,
// and workers take it over as a snapshot. So a look-up has no lock, and reads a few cache lines.
//
// A key takes three steps, each in files of its own:
//
//   key --filter--> hashed part --hash--> number --distribution--> server
//       key_hash            key_hash, hash_*      hash_ring (ketama), spread_hash (jump,
//       rendezvous),
//                                                 here (modula, random)
//
// Everything that twemproxy has is bit-exact with twemproxy 0.5.0, and that decides odd details:
// - Servers are sorted by length and then bytes of their names before anything is counted, so the
//   order in the file does not matter. Jump has no twin there and keeps the order of the file, as
//   do modula under the hashes crc16_slot and atol, which are predixy's.
// - Servers that are not live leave the computation, their weights and their number included.
// - One live server is selected without hashing; of none, nothing is selected.
//
// Indexes that come out are positions in the list of servers that went in.
//
// Errors:    make() refuses options that cannot be served; everything else cannot fail.
// Threads:   select() and explain() from any thread; make() and shares() allocate.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "pool/hash_ring.h"
#include "pool/options.h"
#include "pool/spread_hash.h"

namespace kvferry::pool {

/// Instead of an index: no server is live, or (explain only) every request chooses anew.
inline constexpr std::uint32_t kNoServer = std::numeric_limits<std::uint32_t>::max();

/// All points of one ring; more are refused.
inline constexpr std::uint64_t kRingPointsMax = std::uint64_t{1} << 24;

class Placement {
 public:
  /// How a key was placed, for people.
  struct Explained {
    std::string_view hashed_part;  // View into the key.
    std::uint64_t hash = 0;        // Of the hashed part, even when the placement does not need it.
    std::optional<std::uint32_t> ring_point;
    std::uint32_t index = kNoServer;
    std::string reason;  // Half a sentence, without a full stop.
  };

  /// What one server gets. Fractions are of all keys.
  struct Share {
    std::uint64_t points = 0;  // Ring points, or slots of modula.
    double expected = 0;       // What its weight asks for.
    double actual = 0;         // What the distribution gives on average.
  };

  /// `is_live` has one entry for each server. An empty list of servers is allowed.
  static base::Result<std::shared_ptr<const Placement>> make(
      const PlacementOptions& options, const std::vector<ServerOptions>& servers,
      const std::vector<bool>& is_live);

  /// Index of the server of `key`, or kNoServer. `random_state` is any number that the worker keeps
  /// between calls; only random reads and changes it.
  std::uint32_t select(std::string_view key, std::uint64_t& random_state) const noexcept;

  /// Whether the key decides: false for random.
  bool is_stable() const noexcept { return rule_ != Rule::Random; }

  /// What of `key` decides; a view into it.
  std::string_view hashed_part(std::string_view key) const noexcept { return part_of(key); }

  Explained explain(std::string_view key) const;

  /// One entry for each server, in the order of the list; zeros for those that are not live.
  std::vector<Share> shares() const;

 private:
  /// What is left to do for a key once the live servers are known.
  enum class Rule : std::uint8_t { Nothing, OnlyOne, Ring, Modula, Random, Jump, Rendezvous };

  struct LiveServer {
    const ServerOptions* options = nullptr;
    std::string name;  // What sorts it.
    std::uint32_t index = 0;
  };

  Placement(PlacementOptions options, std::size_t server_count);

  void build(const std::vector<LiveServer>& live);
  void build_ring(const std::vector<LiveServer>& live);
  void build_slots(const std::vector<LiveServer>& live);
  void build_rendezvous(const std::vector<LiveServer>& live);

  std::string_view part_of(std::string_view key) const noexcept;
  std::uint64_t hash_of(std::string_view part) const noexcept;
  std::uint32_t index_of(std::uint64_t hash) const noexcept;
  std::uint32_t slot_owner(std::uint64_t slot) const noexcept;
  std::uint32_t draw(std::uint64_t& random_state) const noexcept;
  std::string reason_of(std::uint64_t hash) const;

  PlacementOptions options_;
  Rule rule_ = Rule::Nothing;
  HashRing ring_;
  Rendezvous rendezvous_;
  // Live servers: in the order of the file for jump and predixy's modula, else by name.
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> weights_;  // Beside order_.
  std::vector<std::uint64_t>
      slots_end_;                     // Beside order_: modula gives a server the slots up to it.
  std::vector<std::uint32_t> slots_;  // Owner of each slot when there are few; else empty.
  std::uint64_t slot_count_ = 0;
  std::size_t server_count_ = 0;
};

}  // namespace kvferry::pool
