// Exptimes of meta commands. Their flags are carried out in the order in which they stand: of N and
// T the last one holds, and t shows what holds where it stands.
//
// Lifetime:  values; flags outlive them.
// Threads:   any.
#pragma once

#include <algorithm>

#include "protocol/memcache/meta_flags.h"
#include "store/instant.h"

namespace kvferry::route {

/// Whether flag `letter` stands before `other` in the request.
inline bool is_before(const memcache::MetaFlags& flags, char letter, char other) {
  const auto letters = flags.letters();
  return std::find(letters.begin(), letters.end(), letter) <
         std::find(letters.begin(), letters.end(), other);
}

/// The exptime of an item that flag N makes: flags count in their order, so T may follow.
inline store::Instant exptime_of_new(const memcache::MetaFlags& flags, store::Instant now) {
  const bool is_touched = flags.has('T') && is_before(flags, 'N', 'T');
  return store::instant_of_exptime(is_touched ? flags.exptime : flags.vivify_exptime, now);
}

/// The exptime that flag t shows in its place of the request.
class ShownExptime {
 public:
  /// `before`: of an item that was there; a new one begins without.
  ShownExptime(const memcache::MetaFlags& flags, store::Instant now, store::Instant before,
               bool is_new)
      : flags_(flags), now_(now), exptime_(is_new ? store::kNever : before), is_new_(is_new) {}

  void pass(char letter) {
    if (letter == 'T') {
      exptime_ = store::instant_of_exptime(flags_.exptime, now_);
    } else if (letter == 'N' && is_new_) {
      exptime_ = store::instant_of_exptime(flags_.vivify_exptime, now_);
    }
  }
  store::Instant get() const { return exptime_; }

 private:
  const memcache::MetaFlags& flags_;
  store::Instant now_;
  store::Instant exptime_;
  bool is_new_;
};

}  // namespace kvferry::route
