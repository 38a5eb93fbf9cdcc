// NearCopies: copies of backends' items in a store of their own (NearStores), for one near cache.
//
//   Absent --look_up()--> Reserved --fill()--> Copy --its time is over--> Reserved (in its place)
//      ^                      |                  |
//      +------ forget() ------+------------------+
//
// A look-up that finds nothing fresh gives a token; only the fill with that token keeps a value.
// forget() makes all tokens of the key worthless. So a reply that was on its way when the key was
// written is not kept, whichever worker the write went through: the store decides, under its lock.
//
// Units:    a copy is fresh until `ttl` after the instant at which its read was sent.
// Lifetime: Found::value dies with the next look_up().
// Threads:  one worker; the copies are those of all workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "route/near_stores.h"
#include "route/store_target.h"
#include "store/item_ref.h"

namespace kvferry::route {

/// A reply that takes longer than this is not kept.
inline constexpr std::uint32_t kReservationSeconds = 10;
/// Buffers that have grown beyond this are given back after use.
inline constexpr std::size_t kNearBufferBytesKept = std::size_t{64} * 1024;

struct NearOptions {
  base::Millis ttl{0};              // How old what is served may be.
  std::size_t value_bytes_max = 0;  // Larger values are not kept.
};

/// What is known of an item. Some reads leave out client flags or CAS unique.
struct NearItem {
  std::string_view value;
  std::optional<std::uint32_t> client_flags{};
  std::optional<std::uint64_t> cas{};  // The backend's.
};

class NearCopies {
 public:
  using Token = std::uint64_t;
  /// Fills nothing.
  static constexpr Token kNoToken = 0;

  struct Found {
    std::optional<NearItem> item{};  // None: nothing fresh.
    Token token = kNoToken;
  };

  /// `clock` says what time it is for stores, and outlives this.
  NearCopies(NearStore store, const StoreTarget& clock, const NearOptions& options)
      : store_(std::move(store)), clock_(clock), options_(options) {}

  /// Whether items of `key` can be kept. Scripts make requests with any key.
  static bool can_keep(std::string_view key) noexcept {
    return !key.empty() && key.size() <= store::kKeyBytesMax;
  }
  std::size_t value_bytes_max() const noexcept { return options_.value_bytes_max; }

  /// A copy that is fresh at `now`; reserves the place when there is none at all.
  Found look_up(std::string_view key, base::SteadyTime now);
  /// Keeps `item`, which was read at `read_at`, unless the key was forgotten or filled meanwhile.
  void fill(std::string_view key, Token token, const NearItem& item, base::SteadyTime read_at);
  /// There was nothing to keep: frees the place.
  void give_up(std::string_view key, Token token);
  /// The item changes: there is no copy now, and none comes of what was read before.
  void forget(std::string_view key);

 private:
  struct Visit;

  NearStore store_;
  const StoreTarget& clock_;
  NearOptions options_;
  std::string found_;    // What look_up() found.
  std::string rest_;     // Used within look_up() only.
  std::string written_;  // Used within fill() only.
};

}  // namespace kvferry::route
