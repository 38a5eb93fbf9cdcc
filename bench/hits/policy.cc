#include "hits/policy.h"

#include <algorithm>
#include <list>
#include <unordered_map>
#include <unordered_set>

namespace kvferry::hits {
namespace {

struct Item {
  std::uint64_t key = 0;
  std::size_t bytes = 0;
  std::uint32_t gone_at = 0;  // Second; 0: never.
  unsigned uses = 0;
  unsigned queue = 0;
};
using Queue = std::list<Item>;

/// Queues of items, newest first, with the bytes in each, and where each key is.
class Queues {
 public:
  explicit Queues(std::size_t count) : queues_(count), bytes_(count) {}

  /// Null when `access` finds nothing, or what has expired, which leaves.
  Item* find(const Access& access) {
    const auto found = places_.find(access.key);
    if (found == places_.end()) {
      return nullptr;
    }
    Item& item = *found->second;
    if (item.gone_at != 0 && item.gone_at <= access.second) {
      erase(item);
      return nullptr;
    }
    return &item;
  }
  Item& add(unsigned queue, const Access& access) {
    const std::size_t bytes = footprint_of(access);
    const std::uint32_t gone_at = access.ttl_seconds == 0 ? 0 : access.second + access.ttl_seconds;
    queues_[queue].push_front(Item{access.key, bytes, gone_at, 0, queue});
    places_[access.key] = queues_[queue].begin();
    bytes_[queue] += bytes;
    return queues_[queue].front();
  }
  void move_to_front(Item& item, unsigned queue) {
    const auto place = places_[item.key];
    bytes_[item.queue] -= item.bytes;
    bytes_[queue] += item.bytes;
    queues_[queue].splice(queues_[queue].begin(), queues_[item.queue], place);
    item.queue = queue;
  }
  void erase(const Item& item) {
    const auto place = places_[item.key];
    const unsigned queue = item.queue;
    bytes_[queue] -= item.bytes;
    places_.erase(item.key);
    queues_[queue].erase(place);
  }
  Item* oldest(unsigned queue) { return queues_[queue].empty() ? nullptr : &queues_[queue].back(); }
  std::size_t bytes(unsigned queue) const { return bytes_[queue]; }
  std::size_t count(unsigned queue) const { return queues_[queue].size(); }
  std::size_t total_bytes() const {
    std::size_t sum = 0;
    for (const std::size_t each : bytes_) {
      sum += each;
    }
    return sum;
  }

 private:
  std::vector<Queue> queues_;
  std::vector<std::size_t> bytes_;
  std::unordered_map<std::uint64_t, Queue::iterator> places_;
};

class Lru final : public Policy {
 public:
  explicit Lru(std::size_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}
  std::string_view name() const noexcept override { return "LRU"; }
  bool access(const Access& access) override {
    if (Item* item = queues_.find(access); item != nullptr) {
      queues_.move_to_front(*item, 0);
      return true;
    }
    queues_.add(0, access);
    while (queues_.total_bytes() > capacity_bytes_) {
      queues_.erase(*queues_.oldest(0));
    }
    return false;
  }

 private:
  std::size_t capacity_bytes_;
  Queues queues_{1};
};

class SegmentedLru final : public Policy {
 public:
  explicit SegmentedLru(std::size_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}
  std::string_view name() const noexcept override { return "segmented LRU"; }
  bool access(const Access& access) override {
    Item* item = queues_.find(access);
    if (item != nullptr) {
      // Fetched, then active; an active one in COLD moves at once.
      item->uses = std::min(item->uses + 1, kActive);
      if (item->queue == kCold && item->uses == kActive) {
        item->uses = kFetched;
        queues_.move_to_front(*item, kWarm);
      }
    } else {
      queues_.add(kHot, access);
    }
    balance();
    return item != nullptr;
  }

 private:
  static constexpr unsigned kHot = 0;
  static constexpr unsigned kWarm = 1;
  static constexpr unsigned kCold = 2;
  static constexpr unsigned kFetched = 1;
  static constexpr unsigned kActive = 2;
  static constexpr std::size_t kHotPercent = 20;
  static constexpr std::size_t kWarmPercent = 40;

  void balance() {
    for (const auto& [queue, percent] :
         {std::pair(kHot, kHotPercent), std::pair(kWarm, kWarmPercent)}) {
      while (queues_.bytes(queue) > capacity_bytes_ / 100 * percent) {
        Item& item = *queues_.oldest(queue);
        const bool is_active = item.uses == kActive;
        item.uses = std::min(item.uses, kFetched);
        queues_.move_to_front(item, is_active ? kWarm : kCold);
        if (is_active && queue == kWarm && ++rounds_ % kRoundsMax == 0) {
          break;
        }
      }
    }
    while (queues_.total_bytes() > capacity_bytes_) {
      Item* item = queues_.oldest(kCold);
      item = item != nullptr ? item : queues_.oldest(kWarm);
      queues_.erase(*(item != nullptr ? item : queues_.oldest(kHot)));
    }
  }

  static constexpr std::size_t kRoundsMax = 64;
  std::size_t capacity_bytes_;
  Queues queues_{3};
  std::size_t rounds_ = 0;
};

class S3Fifo final : public Policy {
 public:
  explicit S3Fifo(std::size_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}
  std::string_view name() const noexcept override { return "S3-FIFO"; }
  bool access(const Access& access) override {
    if (Item* item = queues_.find(access); item != nullptr) {
      item->uses = std::min(item->uses + 1, kUsesMax);
      return true;
    }
    queues_.add(ghost_.erase(access.key) > 0 ? kMain : kSmall, access);
    while (queues_.total_bytes() > capacity_bytes_) {
      evict();
    }
    return false;
  }

 private:
  static constexpr unsigned kSmall = 0;
  static constexpr unsigned kMain = 1;
  static constexpr unsigned kUsesMax = 3;
  static constexpr unsigned kUsesToPromote = 2;

  void evict() {
    const bool is_small = queues_.count(kMain) == 0 || queues_.bytes(kSmall) > capacity_bytes_ / 10;
    Item& item = *queues_.oldest(is_small && queues_.count(kSmall) > 0 ? kSmall : kMain);
    if (item.queue == kMain) {
      if (item.uses == 0) {
        queues_.erase(item);
      } else {
        --item.uses;
        queues_.move_to_front(item, kMain);
      }
      return;
    }
    if (item.uses >= kUsesToPromote) {
      item.uses = 0;
      queues_.move_to_front(item, kMain);
      return;
    }
    remember(item.key);
    queues_.erase(item);
  }

  void remember(std::uint64_t key) {
    ghost_.insert(key);
    ghost_order_.push_back(key);
    while (ghost_order_.size() > std::max<std::size_t>(queues_.count(kMain), 1)) {
      ghost_.erase(ghost_order_.front());
      ghost_order_.pop_front();
    }
  }

  std::size_t capacity_bytes_;
  Queues queues_{2};
  std::unordered_set<std::uint64_t> ghost_;
  std::list<std::uint64_t> ghost_order_;
};

/// How often keys were asked for lately: a count-min sketch of four rows, halved now and then.
class Sketch {
 public:
  explicit Sketch(std::size_t items)
      : width_(items * 2), rows_(kRows, std::vector<std::uint8_t>(items * 2)) {}
  void add(std::uint64_t key) {
    for (std::size_t row = 0; row < kRows; ++row) {
      std::uint8_t& cell = rows_[row][mix(key + row * 77) % width_];
      cell = static_cast<std::uint8_t>(std::min(cell + 1, 15));
    }
    if (++added_ == width_ * 5) {
      added_ = 0;
      for (auto& row : rows_) {
        for (std::uint8_t& cell : row) {
          cell /= 2;
        }
      }
    }
  }
  unsigned count(std::uint64_t key) const {
    unsigned least = 15;
    for (std::size_t row = 0; row < kRows; ++row) {
      least = std::min<unsigned>(least, rows_[row][mix(key + row * 77) % width_]);
    }
    return least;
  }

 private:
  static constexpr std::size_t kRows = 4;
  std::size_t width_;
  std::vector<std::vector<std::uint8_t>> rows_;
  std::size_t added_ = 0;
};

class WTinyLfu final : public Policy {
 public:
  explicit WTinyLfu(std::size_t capacity_bytes)
      : capacity_bytes_(capacity_bytes), sketch_(capacity_bytes / 150 + 16) {}
  std::string_view name() const noexcept override { return "W-TinyLFU"; }
  bool access(const Access& access) override {
    sketch_.add(access.key);
    Item* item = queues_.find(access);
    if (item == nullptr) {
      queues_.add(kWindow, access);
      admit();
      return false;
    }
    queues_.move_to_front(*item, item->queue == kWindow ? kWindow : kProtected);
    while (queues_.bytes(kProtected) > capacity_bytes_ / 100 * 79) {
      queues_.move_to_front(*queues_.oldest(kProtected), kProbation);
    }
    return true;
  }

 private:
  static constexpr unsigned kWindow = 0;
  static constexpr unsigned kProbation = 1;
  static constexpr unsigned kProtected = 2;

  void admit() {
    while (queues_.bytes(kWindow) > capacity_bytes_ / 100) {
      Item& item = *queues_.oldest(kWindow);
      queues_.move_to_front(item, kProbation);
      while (queues_.total_bytes() > capacity_bytes_) {
        Item* victim = queues_.oldest(kProbation);
        victim = victim == &item ? queues_.oldest(kProtected) : victim;
        if (victim == nullptr || sketch_.count(item.key) <= sketch_.count(victim->key)) {
          queues_.erase(item);
          break;
        }
        queues_.erase(*victim);
      }
    }
  }

  std::size_t capacity_bytes_;
  Queues queues_{3};
  Sketch sketch_;
};

}  // namespace

std::unique_ptr<Policy> make_lru(std::size_t capacity_bytes) {
  return std::make_unique<Lru>(capacity_bytes);
}

std::unique_ptr<Policy> make_segmented_lru(std::size_t capacity_bytes) {
  return std::make_unique<SegmentedLru>(capacity_bytes);
}

std::unique_ptr<Policy> make_s3_fifo(std::size_t capacity_bytes) {
  return std::make_unique<S3Fifo>(capacity_bytes);
}

std::unique_ptr<Policy> make_w_tiny_lfu(std::size_t capacity_bytes) {
  return std::make_unique<WTinyLfu>(capacity_bytes);
}

}  // namespace kvferry::hits
