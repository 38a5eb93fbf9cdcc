// NearStores: the memory of near caches: a store for each, with a limit of its own, that no client
// can reach.
//
// Near caches of equal spaces share one store. It goes with the last of them, at the next
// maintain(): freeing its memory is not a worker's work.
// Threads:  any; maintain() from one, about every 100 ms. Takes a lock: not for the request path.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "store/store.h"

namespace kvferry::route {

/// Who numbers a space: two owners may use the same number.
enum class SpaceOwner : char { Yaml = 'y', Lua = 'l' };

/// Whose copies a near cache shares: those of equal spaces.
struct NearSpace {
  SpaceOwner owner = SpaceOwner::Yaml;
  std::uint32_t number = 0;

  friend auto operator<=>(const NearSpace&, const NearSpace&) = default;
};

using NearStore = std::shared_ptr<store::Store>;

class NearStores {
 public:
  /// No item is larger than `item_bytes_max`.
  explicit NearStores(std::size_t item_bytes_max) : item_bytes_max_(item_bytes_max) {}

  /// The store of `space`; made, with `limit_bytes`, when nobody has it.
  NearStore of(NearSpace space, std::size_t limit_bytes);
  /// As store::Store::flush(), for all.
  void flush(store::Instant when, store::Instant now);
  /// Frees what has expired, and the stores that nobody has any more.
  void maintain(store::Instant now);

  /// Sums over all of them.
  struct Figures {
    std::size_t stores = 0;
    std::uint64_t bytes = 0;  // Held, for copies and what finds them; limit_bytes is for this.
    std::uint64_t limit_bytes = 0;
    std::uint64_t items = 0;
    std::uint64_t evictions =
        0;  // Copies that had to go before their time; of the stores that are.
  };
  Figures figures();

 private:
  std::map<NearSpace, NearStore> all();

  const std::size_t item_bytes_max_;
  std::mutex mutex_;
  std::map<NearSpace, NearStore> stores_;  // Under mutex_.
};

}  // namespace kvferry::route
