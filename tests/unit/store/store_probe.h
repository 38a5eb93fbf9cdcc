// What the tests of the store say to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "store/store.h"

namespace kvferry::store {

inline constexpr Instant kNow{1'700'000'000};

inline Instant later(std::uint32_t seconds) {
  return Instant{kNow.get() + seconds};
}

/// Copies what a visitor may keep.
struct Seen {
  std::string value;
  std::uint64_t cas = 0;
  Instant exptime{};
  bool is_stale = false;
  bool was_won = false;
  bool has_won = false;
  bool was_fetched = false;
  std::uint32_t idle_seconds = 0;
  ItemRef pieces;
  std::string rest;

  void on_item(const ItemView& item) {
    if (item.is_large) {
      pieces = item.pin();
    }
    rest = item.value;
    cas = item.cas;
    exptime = item.exptime;
    is_stale = item.is_stale;
    was_won = item.was_won;
    has_won = item.has_won;
    was_fetched = item.was_fetched;
    idle_seconds = item.idle_seconds;
  }
  void finish() {
    while (pieces.has_more()) {
      value += pieces.take();
    }
    value += rest;
    pieces.release();
  }
};

inline ReadResult read(Store& store, std::string_view key, Seen& seen, Instant now = kNow,
                       const ReadOptions& options = {}) {
  const ReadResult result =
      store.read(Key(key), options, now, ItemVisitor::to<&Seen::on_item>(&seen));
  seen.finish();
  return result;
}

inline bool has(Store& store, std::string_view key, Instant now = kNow) {
  return store.read(Key(key), ReadOptions{}, now, {}).status == ReadStatus::Hit;
}

inline void set(Store& store, std::string_view key, std::string_view value, Instant now = kNow,
                Instant exptime = kNever) {
  ASSERT_EQ(store.store(Key(key), StoreOptions{.exptime = exptime}, value, now).status,
            StoreStatus::Stored);
}

inline std::string numbered(const char* prefix, std::size_t number) {
  return prefix + std::to_string(number);
}

}  // namespace kvferry::store
