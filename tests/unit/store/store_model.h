// A model of the store: a map with exptimes and CAS uniques, and random steps on both.
//
// The map never evicts; where the store misses and the map does not, the item is forgotten in the
// map, which is right exactly when the store may evict. Used by a unit test and by a fuzz target.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "store/record.h"
#include "store/store.h"

namespace kvferry::store {

class StoreModel {
 public:
  /// May evict when its limit is the lowest; then there are more keys than fit.
  explicit StoreModel(const StoreConfig& config)
      : store_(config),
        may_evict_(config.limit_bytes <= kLimitBytesMin),
        keys_(may_evict_ ? kKeysEvicting : kKeys) {}

  /// One random operation; `draw` gives 32 random bits. Returns what differed, empty if nothing.
  template <typename Draw>
  std::string_view step(Draw draw) {
    const std::string key = "key" + std::to_string(draw() % (draw() % 2 == 0 ? keys_ / 8 : keys_));
    switch (draw() % 12) {
      case 0:
      case 1:
      case 2:
        return read(key, draw);
      case 3:
      case 4:
      case 5:
      case 6:
        return write(key, draw);
      case 7:
        return arith(key, draw);
      case 8:
        return remove(key, draw);
      case 9:
        return touch(key, draw);
      case 10:
        now_ += draw() % 4 == 0 ? 1 : 0;
        store_.maintain(now());
        return check_memory();
      default:
        return draw() % 2000 == 0 ? flush() : read(key, draw);
    }
  }

  StoreStats stats() { return store_.snapshot(); }

 private:
  struct Item {
    std::string value;
    std::uint32_t client_flags = 0;
    Instant exptime = kNever;
    std::uint64_t cas = 0;
  };
  static constexpr std::uint32_t kKeys = 300;
  static constexpr std::uint32_t kKeysEvicting = 2000;

  Instant now() const { return Instant{now_}; }

  /// What the map holds for `key` now.
  Item* find(const std::string& key) {
    const auto found = items_.find(key);
    if (found == items_.end()) {
      return nullptr;
    }
    if (has_passed(found->second.exptime, now())) {
      items_.erase(found);
      return nullptr;
    }
    return &found->second;
  }
  /// The same, after a miss of the store: an eviction, if it may evict.
  Item* find_after_miss(const std::string& key) {
    Item* item = find(key);
    if (item != nullptr && may_evict_) {
      items_.erase(key);
      return nullptr;
    }
    return item;
  }

  template <typename Draw>
  std::string random_value(Draw draw) {
    constexpr std::uint32_t kSizes[] = {0,
                                        1,
                                        5,
                                        30,
                                        100,
                                        300,
                                        3000,
                                        kInlineBytesMax - 1,
                                        kInlineBytesMax,
                                        kInlineBytesMax + 1,
                                        2 * kPieceBytes,
                                        2 * kPieceBytes + 1,
                                        50'000};
    const std::uint32_t size = draw() % 2 == 0 ? draw() % 200 : kSizes[draw() % std::size(kSizes)];
    if (draw() % 8 == 0) {
      return std::to_string(draw() % 1200);
    }
    std::string value(size, static_cast<char>('a' + draw() % 26));
    if (size > 10) {
      value.replace(size / 2, 4, std::to_string(draw() % 9000 + 1000));
      value.replace(size - 4, 4, std::to_string(draw() % 9000 + 1000));
    }
    return value;
  }
  template <typename Draw>
  Instant random_exptime(Draw draw) {
    switch (draw() % 4) {
      case 0:
        return instant_of_exptime(draw() % 10 + 1, now());
      case 1:
        return instant_of_exptime(1000, now());
      case 2:
        return draw() % 8 == 0 ? kLongAgo : kNever;
      default:
        return kNever;
    }
  }

  /// Mostly the next one; else one that the client chooses, some of which need more room.
  template <typename Draw>
  std::uint64_t random_cas(Draw draw) {
    const std::uint32_t kind = draw() % 16;
    return kind == 0 ? kWideCasMin - 2 + draw() % 4 : kind == 1 ? draw() : 0;
  }

  struct Seen {
    std::string value;
    std::uint32_t client_flags = 0;
    Instant exptime{};
    std::uint64_t cas = 0;
    ItemRef pieces;
    std::string rest;

    void on_item(const ItemView& item) {
      client_flags = item.client_flags;
      exptime = item.exptime;
      cas = item.cas;
      if (item.is_large) {
        pieces = item.pin();
      }
      rest = item.value;
    }
  };

  template <typename Draw>
  std::string_view read(const std::string& key, Draw draw) {
    Seen seen;
    const ReadResult result =
        store_.read(Key(key), ReadOptions{}, now(), ItemVisitor::to<&Seen::on_item>(&seen));
    if (result.status == ReadStatus::Miss) {
      return find_after_miss(key) == nullptr ? "" : "read misses";
    }
    if (seen.pieces && draw() % 4 == 0) {
      // Whatever happens to the item, what was pinned stays.
      store_.remove(Key(key), DeleteOptions{}, now());
      store_.store(Key("other"), StoreOptions{}, std::string(40'000, 'o'), now());
      store_.remove(Key("other"), DeleteOptions{}, now());
      seen.exptime = kLongAgo;
    }
    while (seen.pieces.has_more()) {
      seen.value += seen.pieces.take();
    }
    seen.value += seen.rest;
    const Item* item = find(key);
    if (item == nullptr) {
      return "read hits";
    }
    if (seen.value != item->value) {
      return "value";
    }
    if (seen.exptime == kLongAgo) {
      items_.erase(key);
      return "";
    }
    if (seen.client_flags != item->client_flags) {
      return "client flags";
    }
    if (seen.exptime != item->exptime) {
      return "exptime";
    }
    return seen.cas == item->cas ? "" : "CAS";
  }

  template <typename Draw>
  std::string_view write(const std::string& key, Draw draw) {
    StoreOptions options;
    options.mode = static_cast<StoreMode>(draw() % 6);
    options.client_flags = draw() % 3 == 0 ? draw() : 0;
    options.exptime = random_exptime(draw);
    options.has_compare_cas = options.mode == StoreMode::Cas;
    const std::string value = random_value(draw);
    const Item* before = find(key);
    options.compare_cas = before != nullptr && draw() % 4 != 0 ? before->cas : draw();
    options.new_cas = random_cas(draw);
    const StoreResult result = store_.store(Key(key), options, value, now());
    if (may_evict_ && before != nullptr && is_miss(options.mode, result.status)) {
      items_.erase(key);
    }
    if (result.status == StoreStatus::NoMemory) {
      if (!may_evict_) {
        return "no memory";
      }
      items_.erase(key);
      store_.remove(Key(key), DeleteOptions{}, now());
      return "";
    }
    if (may_evict_ && before != nullptr && options.mode == StoreMode::Add &&
        result.status == StoreStatus::Stored) {
      items_.erase(key);
    }
    return result.status == model_write(key, options, value, result) ? "" : "store status";
  }

  static bool is_miss(StoreMode mode, StoreStatus status) {
    return status == StoreStatus::NotFound ||
           (mode != StoreMode::Add && status == StoreStatus::NotStored);
  }

  StoreStatus model_write(const std::string& key, const StoreOptions& options,
                          const std::string& value, const StoreResult& result) {
    Item* item = find(key);
    switch (options.mode) {
      case StoreMode::Add:
        if (item != nullptr) {
          return StoreStatus::NotStored;
        }
        break;
      case StoreMode::Replace:
      case StoreMode::Append:
      case StoreMode::Prepend:
        if (item == nullptr) {
          return StoreStatus::NotStored;
        }
        break;
      case StoreMode::Cas:
        if (item == nullptr) {
          return StoreStatus::NotFound;
        }
        if (item->cas != options.compare_cas) {
          return StoreStatus::Exists;
        }
        break;
      case StoreMode::Set:
        break;
    }
    if (options.mode == StoreMode::Append || options.mode == StoreMode::Prepend) {
      const std::string joined =
          options.mode == StoreMode::Append ? item->value + value : value + item->value;
      if (store_.is_too_large(key.size(), joined.size())) {
        return StoreStatus::TooLarge;
      }
      item->value = joined;
      item->cas = result.cas;
      return StoreStatus::Stored;
    }
    items_[key] = Item{value, options.client_flags, options.exptime, result.cas};
    return StoreStatus::Stored;
  }

  template <typename Draw>
  std::string_view arith(const std::string& key, Draw draw) {
    const ArithOptions options{
        .is_decrement = draw() % 2 == 0, .delta = draw() % 2000, .new_cas = random_cas(draw)};
    const ArithResult result = store_.add_delta(Key(key), options, now());
    if (result.status == ArithStatus::NoMemory && may_evict_) {
      items_.erase(key);
      store_.remove(Key(key), DeleteOptions{}, now());
      return "";
    }
    if (result.status == ArithStatus::NotFound) {
      return find_after_miss(key) == nullptr ? "" : "arith misses";
    }
    Item* item = find(key);
    if (item == nullptr) {
      return "arith hits";
    }
    std::uint64_t number = 0;
    const std::string& text = item->value;
    const auto digits = text.substr(0, text.find_last_not_of(' ') + 1);
    const auto [stop, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc{} || stop != digits.data() + digits.size()) {
      return result.status == ArithStatus::NonNumeric ? "" : "arith of no number";
    }
    if (options.is_decrement) {
      number = number > options.delta ? number - options.delta : 0;
    } else {
      number += options.delta;
    }
    if (result.status != ArithStatus::Done || result.number != number) {
      return "number";
    }
    std::string written = std::to_string(number);
    written.resize(std::max(written.size(), text.size()), ' ');
    item->value = written;
    item->cas = result.cas;
    return "";
  }

  template <typename Draw>
  std::string_view remove(const std::string& key, Draw draw) {
    const std::uint32_t kind = draw() % 8;
    const bool clears = kind < 2;
    const bool invalidates = kind == 2;
    const std::uint64_t cas = invalidates ? std::max<std::uint64_t>(random_cas(draw), 1) : 0;
    const DeleteResult result = store_.remove(
        Key(key),
        DeleteOptions{.is_invalidation = invalidates, .is_clearing = clears, .new_cas = cas},
        now());
    if (result.status == DeleteStatus::NotFound) {
      return find_after_miss(key) == nullptr ? "" : "remove misses";
    }
    Item* item = find(key);
    if (item == nullptr) {
      return "remove hits";
    }
    if (invalidates && result.status == DeleteStatus::Done) {
      item->cas = cas;
    } else if (result.status == DeleteStatus::NoMemory || !clears) {
      store_.remove(Key(key), DeleteOptions{}, now());
      items_.erase(key);
    } else {
      *item = Item{.value = "", .cas = item->cas};
    }
    return "";
  }

  template <typename Draw>
  std::string_view touch(const std::string& key, Draw draw) {
    const Instant exptime = random_exptime(draw);
    const TouchStatus status = store_.touch(Key(key), exptime, now());
    if (status == TouchStatus::NotFound) {
      return find_after_miss(key) == nullptr ? "" : "touch misses";
    }
    Item* item = find(key);
    if (item == nullptr) {
      return "touch hits";
    }
    if (status == TouchStatus::NoMemory) {
      store_.remove(Key(key), DeleteOptions{}, now());
      items_.erase(key);
    } else {
      item->exptime = exptime;
    }
    return "";
  }

  std::string_view flush() {
    store_.flush(kNever, now());
    items_.clear();
    return "";
  }

  std::string_view check_memory() {
    const StoreStats stats = store_.snapshot();
    if (stats.allocated_bytes > stats.limit_maxbytes) {
      return "over the limit";
    }
    return stats.bytes <= stats.allocated_bytes ? "" : "bytes";
  }

  Store store_;
  bool may_evict_;
  std::uint32_t keys_;
  std::uint32_t now_ = 1'000'000'000;
  std::map<std::string, Item> items_;
};

}  // namespace kvferry::store
