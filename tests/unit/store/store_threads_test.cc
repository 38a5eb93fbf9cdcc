// Four threads on one store that is too small for them: what each may rely on, key by key.
//
// Nobody knows which items are left, but every value says which key it belongs to, who wrote it and
// as his how manyeth, so a reader sees at once what cannot be. Meaningful under ThreadSanitizer.
#include <array>
#include <atomic>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "store/store.h"
#include "tests/unit/store/store_probe.h"

namespace kvferry::store {
namespace {

constexpr std::size_t kThreads = 4;
constexpr std::uint32_t kSharedKeys = 400;
constexpr std::uint32_t kOwnKeys = 300;
constexpr std::size_t kStepsPerThread = 3000;
constexpr std::uint32_t kExptimeMax = 6;
constexpr std::size_t kStampBytes = 40;

/// What stands at the beginning of a value: its key, its writer, and the writer's count of writes.
struct Stamp {
  std::uint32_t key = 0;
  std::uint32_t writer = 0;
  std::uint32_t serial = 0;
};

std::string compose_value(const Stamp& stamp, std::size_t size) {
  std::string value = std::to_string(stamp.key) + ' ' + std::to_string(stamp.writer) + ' ' +
                      std::to_string(stamp.serial) + ' ';
  // The rest depends on all three, so that a mixture of two values is seen.
  const auto filler = static_cast<char>('a' + (stamp.key + stamp.writer * 7 + stamp.serial) % 26);
  value.resize(std::max(size, kStampBytes), filler);
  return value;
}

/// Nothing when `value` is not whole.
std::optional<Stamp> parse_value(const std::string& value) {
  Stamp stamp;
  const char* at = value.data();
  const char* const end = value.data() + value.size();
  for (std::uint32_t* field : {&stamp.key, &stamp.writer, &stamp.serial}) {
    const auto [stop, error] = std::from_chars(at, end, *field);
    if (error != std::errc{} || stop == end || *stop != ' ') {
      return std::nullopt;
    }
    at = stop + 1;
  }
  return compose_value(stamp, value.size()) == value ? std::optional(stamp) : std::nullopt;
}

/// One thread: its random numbers, what it knows, and the first thing that was wrong.
class Actor {
 public:
  Actor(Store& store, std::atomic<std::uint32_t>& clock, std::uint32_t number)
      : store_(store), clock_(clock), number_(number), random_(number + 1) {}

  void run() {
    for (std::size_t i = 0; i < kStepsPerThread && fault_.empty(); ++i) {
      step();
    }
  }
  const std::string& fault() const { return fault_; }
  std::size_t hits() const { return hits_; }
  std::size_t swaps() const { return swaps_; }

 private:
  void step() {
    const std::uint32_t shared = draw() % kSharedKeys;
    const std::uint32_t own = kSharedKeys + number_ * kOwnKeys + draw() % kOwnKeys;
    switch (draw() % 16) {
      case 0:
      case 1:
      case 2:
      case 3:
        return read_shared(shared);
      case 4:
      case 5:
      case 6:
        return write_shared(shared);
      case 7:
      case 8:
        return swap_shared(shared);
      case 9:
        store_.remove(key_of(shared), DeleteOptions{}, now());
        return;
      case 10:
      case 11:
        return write_own(own);
      case 12:
      case 13:
        return read_own(own);
      case 14:
        return remove_own(own);
      default:
        return move_world();
    }
  }

  std::uint32_t draw() { return static_cast<std::uint32_t>(random_() >> 8); }
  Instant now() const { return Instant{clock_.load(std::memory_order_relaxed)}; }
  Key key_of(std::uint32_t number) {
    name_ = "key" + std::to_string(number);
    return Key(name_);
  }
  std::size_t random_size() {
    // Mostly small; some have pieces, which are read without the lock.
    return draw() % 8 == 0 ? kInlineBytesMax + draw() % 60'000 : kStampBytes + draw() % 600;
  }
  void fail(const char* what, std::uint32_t key) {
    if (fault_.empty()) {
      fault_ = std::string(what) + " of key" + std::to_string(key);
    }
  }

  /// Reads and checks what holds for every item; nothing on a miss.
  std::optional<Stamp> read_checked(std::uint32_t key, Seen& seen) {
    const Instant at = now();
    if (read(store_, key_of(key), seen, at).status != ReadStatus::Hit) {
      return std::nullopt;
    }
    ++hits_;
    const std::optional<Stamp> stamp = parse_value(seen.value);
    if (!stamp.has_value() || stamp->key != key) {
      fail("a broken value, or another key's,", key);
    } else if (has_passed(seen.exptime, at)) {
      fail("an expired value", key);
    }
    return fault_.empty() ? stamp : std::nullopt;
  }
  static ReadResult read(Store& store, const Key& key, Seen& seen, Instant at) {
    const ReadResult result =
        store.read(key, ReadOptions{}, at, ItemVisitor::to<&Seen::on_item>(&seen));
    seen.finish();
    return result;
  }

  void read_shared(std::uint32_t key) {
    Seen seen;
    const std::optional<Stamp> stamp = read_checked(key, seen);
    if (!stamp.has_value()) {
      return;
    }
    std::uint64_t& last_cas = last_cas_[key];
    if (seen.cas < last_cas) {
      fail("a lower CAS", key);
    }
    last_cas = seen.cas;
    // A writer's values follow each other: none comes back when a later one was seen.
    std::uint32_t& last = last_serial_[std::pair(key, stamp->writer)];
    if (stamp->serial < last) {
      fail("an earlier value", key);
    }
    last = stamp->serial;
  }

  StoreOptions random_options() {
    StoreOptions options;
    options.client_flags = draw() % 2 == 0 ? draw() : 0;
    options.exptime =
        draw() % 3 == 0 ? Instant{now().get() + 1 + draw() % kExptimeMax} : Instant{kNever};
    return options;
  }

  void write_shared(std::uint32_t key) {
    const std::string value = compose_value({key, number_, ++serial_}, random_size());
    StoreOptions options = random_options();
    options.mode = draw() % 4 == 0 ? StoreMode::Add : StoreMode::Set;
    const StoreResult result = store_.store(key_of(key), options, value, now());
    if (result.status == StoreStatus::Stored) {
      note_stored(key, result.cas);
    }
  }

  void swap_shared(std::uint32_t key) {
    Seen seen;
    if (!read_checked(key, seen).has_value()) {
      return;
    }
    StoreOptions options = random_options();
    options.mode = StoreMode::Cas;
    options.has_compare_cas = true;
    options.compare_cas = seen.cas;
    const std::string value = compose_value({key, number_, ++serial_}, random_size());
    const StoreResult result = store_.store(key_of(key), options, value, now());
    if (result.status == StoreStatus::Stored) {
      ++swaps_;
      if (result.cas <= seen.cas) {
        fail("a swap with no higher CAS", key);
      }
      // The same swap again must fail, whoever came in between.
      if (store_.store(key_of(key), options, value, now()).status == StoreStatus::Stored) {
        fail("a second swap", key);
      }
      note_stored(key, result.cas);
    }
  }

  void note_stored(std::uint32_t key, std::uint64_t cas) {
    std::uint64_t& last = last_cas_[key];
    if (cas <= last) {
      fail("a new value with no higher CAS", key);
    }
    last = cas;
  }

  void write_own(std::uint32_t key) {
    const std::string value = compose_value({key, number_, ++serial_}, random_size());
    const StoreResult result = store_.store(key_of(key), random_options(), value, now());
    // A refused set leaves nothing.
    own_[key] = result.status == StoreStatus::Stored ? serial_ : 0;
  }

  /// Nobody else writes it: it is what was written last, or gone for good.
  void read_own(std::uint32_t key) {
    Seen seen;
    const std::optional<Stamp> stamp = read_checked(key, seen);
    if (!stamp.has_value()) {
      own_[key] = 0;
    } else if (stamp->serial != own_[key]) {
      fail("a value that is not the last", key);
    }
  }

  void remove_own(std::uint32_t key) {
    store_.remove(key_of(key), DeleteOptions{}, now());
    own_[key] = 0;
  }

  /// What is not asked for by clients: time, upkeep, another limit, a flush.
  void move_world() {
    switch (draw() % 16) {
      case 0:
        clock_.fetch_add(1, std::memory_order_relaxed);
        return;
      case 1:
        store_.set_memory_limit(std::size_t{2 + draw() % 3} << 20);
        return;
      case 2:
        if (draw() % 16 == 0) {
          store_.flush(kNever, now());
        }
        return;
      case 3: {
        WalkPlace place{.shard = draw() % store_.shard_count(), .bucket = draw() % 64};
        store_.walk(place, now(), ItemVisitor::to<&Actor::on_walked>(this));
        return;
      }
      default:
        store_.maintain(now());
        return;
    }
  }

  void on_walked(const ItemView& item) {
    if (!item.key.starts_with("key")) {
      fail("a walk over something else", 0);
    }
  }

  Store& store_;
  std::atomic<std::uint32_t>& clock_;
  const std::uint32_t number_;
  std::minstd_rand random_;
  std::string name_;
  std::string fault_;
  std::uint32_t serial_ = 0;
  std::size_t hits_ = 0;
  std::size_t swaps_ = 0;
  std::map<std::uint32_t, std::uint64_t> last_cas_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> last_serial_;
  std::map<std::uint32_t, std::uint32_t> own_;
};

class StoreThreads : public testing::TestWithParam<std::size_t> {};

TEST_P(StoreThreads, SeeWholeValuesThatNeverGoBack) {
  Store store(StoreConfig{
      .limit_bytes = std::size_t{3} << 20, .item_bytes_max = 200'000, .shard_count = GetParam()});
  std::atomic<std::uint32_t> clock{kNow.get()};
  std::vector<Actor> actors;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    actors.emplace_back(store, clock, i);
  }
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (Actor& actor : actors) {
    threads.emplace_back([&actor] { actor.run(); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }

  for (const Actor& actor : actors) {
    EXPECT_EQ(actor.fault(), "");
    EXPECT_GT(actor.hits(), kStepsPerThread / 20);
    EXPECT_GT(actor.swaps(), 50U);
  }
  const StoreStats stats = store.snapshot();
  EXPECT_GT(stats.evictions, 10U);
  EXPECT_LE(stats.bytes, stats.allocated_bytes);
  // All that is left leaves: no frame is lost.
  store.flush(kNever, kNow);
  for (int i = 0; i < 500 && store.snapshot().curr_items > 0; ++i) {
    store.maintain(Instant{clock.load()});
  }
  EXPECT_EQ(store.snapshot().curr_items, 0U);
  EXPECT_EQ(store.snapshot().bytes, 0U);
}

// One shard: every thread wants the same lock. Several: locks that follow each other.
INSTANTIATE_TEST_SUITE_P(Shards, StoreThreads, testing::Values(std::size_t{1}, std::size_t{4}));

}  // namespace
}  // namespace kvferry::store
