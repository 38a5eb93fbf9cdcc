// From a store into a snapshot and into another store.
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "store/record.h"
#include "store/snapshot_loader.h"
#include "store/snapshot_saver.h"

namespace kvferry::store {
namespace {

constexpr Instant kStart{1'000'000};
constexpr Instant kLater{1'000'100};

class TextSink final : public SnapshotSink {
 public:
  bool write(std::string_view bytes) override {
    text += bytes;
    return true;
  }
  std::string text;
};

std::string save(Store& store) {
  TextSink sink;
  SnapshotSaver saver(store, sink, kStart);
  while (saver.step()) {
  }
  EXPECT_FALSE(saver.has_failed());
  return sink.text;
}

SnapshotCounts load(Store& store, const std::string& bytes, Instant now = kLater) {
  SnapshotLoader loader(store, now);
  SnapshotReader reader(loader);
  EXPECT_TRUE(reader.take(bytes) && reader.finish());
  EXPECT_EQ(loader.written_at(), kStart);
  return loader.counts();
}

/// All that a read shows.
struct Seen {
  std::string value;
  ItemView view;

  void on_item(const ItemView& item) {
    view = item;
    value.clear();
    if (item.is_large) {
      ItemRef pieces = item.pin();
      while (pieces.has_more()) {
        value.append(pieces.take());
      }
      // It lets go when the lock is free again.
      held = std::move(pieces);
    }
    value.append(item.value);
  }
  ItemRef held{};
};

bool look(Store& store, std::string_view key, Seen& seen,
          const ReadOptions& options = {.is_use = false}, Instant now = kLater) {
  return store.read(Key(key), options, now, ItemVisitor::to<&Seen::on_item>(&seen)).status ==
         ReadStatus::Hit;
}

TEST(SnapshotOfAStore, KeepsAllThatAnItemHas) {
  Store before(StoreConfig{});
  before.store(Key("plain"), {}, "v", kStart);
  before.store(
      Key("full"),
      {.is_base64_key = true, .client_flags = 7, .exptime = Instant{1'000'200}, .new_cas = 99}, "",
      kStart);
  before.store(Key("stale"), {.exptime = Instant{1'000'200}}, "old", kStart);
  before.remove(Key("stale"), {.is_invalidation = true, .new_cas = 5}, kStart);
  before.store(Key("won"), {.exptime = Instant{1'000'200}}, "w", kStart);
  before.remove(Key("won"), {.is_invalidation = true}, kStart);
  Seen seen;
  look(before, "won", seen, {.is_leasing = true}, kStart);
  ASSERT_TRUE(seen.view.has_won);

  Store after(StoreConfig{.limit_bytes = std::size_t{128} << 20});
  EXPECT_EQ(load(after, save(before)), (SnapshotCounts{.stored = 4}));
  ASSERT_TRUE(look(after, "plain", seen));
  EXPECT_EQ(seen.value, "v");
  EXPECT_EQ(seen.view.exptime, kNever);
  EXPECT_FALSE(seen.view.was_fetched || seen.view.is_base64_key || seen.view.is_stale);
  ASSERT_TRUE(look(after, "full", seen));
  EXPECT_EQ(seen.value, "");
  EXPECT_TRUE(seen.view.is_base64_key);
  EXPECT_EQ(seen.view.client_flags, 7U);
  EXPECT_EQ(seen.view.exptime, Instant{1'000'200});
  EXPECT_EQ(seen.view.cas, 99U);
  ASSERT_TRUE(look(after, "stale", seen, {.is_use = false, .is_leasing = true}));
  EXPECT_TRUE(seen.view.is_stale && seen.view.has_won);
  EXPECT_EQ(seen.view.cas, 5U);
  ASSERT_TRUE(look(after, "won", seen, {.is_use = false, .is_leasing = true}));
  EXPECT_TRUE(seen.view.is_stale && seen.view.was_won && seen.view.was_fetched);
  EXPECT_FALSE(seen.view.has_won);
}

TEST(SnapshotOfAStore, KeepsValuesOfEveryLength) {
  Store before(StoreConfig{});
  const std::size_t sizes[] = {0,
                               1,
                               kInlineBytesMax - 1,
                               kInlineBytesMax,
                               kInlineBytesMax + 1,
                               2 * kPieceBytes,
                               2 * kPieceBytes + 1,
                               300'000,
                               1'000'000};
  const auto value_of = [](std::size_t size) {
    std::string value(size, 'x');
    for (std::size_t i = 0; i < size; ++i) {
      value[i] = static_cast<char>('a' + i % 23);
    }
    return value;
  };
  for (const std::size_t size : sizes) {
    before.store(Key("k" + std::to_string(size)), {}, value_of(size), kStart);
  }
  Store after(StoreConfig{});
  EXPECT_EQ(load(after, save(before)).stored, std::size(sizes));
  for (const std::size_t size : sizes) {
    Seen seen;
    ASSERT_TRUE(look(after, "k" + std::to_string(size), seen)) << size;
    EXPECT_EQ(seen.value, value_of(size)) << size;
  }
}

TEST(SnapshotOfAStore, LeavesOutWhatIsGone) {
  Store before(StoreConfig{});
  before.store(Key("past"), {.exptime = Instant{999'999}}, "v", kStart);
  before.store(Key("passing"), {.exptime = Instant{1'000'050}}, "v", kStart);
  before.store(Key("staying"), {.exptime = Instant{1'000'101}}, "v", kStart);
  const std::string bytes = save(before);
  Store after(StoreConfig{});
  EXPECT_EQ(load(after, bytes), (SnapshotCounts{.stored = 1, .expired = 1}));
  Seen seen;
  EXPECT_TRUE(look(after, "staying", seen));
  EXPECT_FALSE(look(after, "passing", seen));
  before.flush(kNever, kStart);
  Store empty(StoreConfig{});
  EXPECT_EQ(load(empty, save(before)), SnapshotCounts{});
}

TEST(SnapshotOfAStore, CasUniquesGoOnAboveThoseOfBefore) {
  Store before(StoreConfig{.shard_count = 8});
  std::uint64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    last = std::max(last, before.store(Key("k" + std::to_string(i % 7)), {}, "v", kStart).cas);
  }
  Store after(StoreConfig{.shard_count = 2});
  load(after, save(before));
  for (int i = 0; i < 20; ++i) {
    EXPECT_GT(after.store(Key("n" + std::to_string(i)), {}, "v", kLater).cas, last);
  }
  Store without(StoreConfig{.has_cas = false});
  load(without, save(before));
  EXPECT_EQ(without.store(Key("n"), {}, "v", kLater).cas, 0U);
}

TEST(SnapshotOfAStore, MayBeLargerThanTheStoreThatReadsIt) {
  Store before(StoreConfig{.limit_bytes = std::size_t{16} << 20});
  for (int i = 0; i < 8'000; ++i) {
    before.store(Key("k" + std::to_string(i)), {}, std::string(1'000, 'v'), kStart);
  }
  before.store(Key("large"), {}, std::string(500'000, 'l'), kStart);
  Store after(StoreConfig{.limit_bytes = std::size_t{2} << 20, .item_bytes_max = 100'000});
  const SnapshotCounts counts = load(after, save(before));
  EXPECT_EQ(counts.too_large, 1U);
  EXPECT_EQ(counts.stored, 8'000U);
  const StoreStats stats = after.snapshot();
  EXPECT_LE(stats.allocated_bytes, stats.limit_maxbytes);
  EXPECT_GT(stats.curr_items, 1'000U);
  Store strict(StoreConfig{.limit_bytes = std::size_t{2} << 20, .is_evicting = false});
  EXPECT_GT(load(strict, save(before)).no_memory, 1'000U);
}

}  // namespace
}  // namespace kvferry::store
