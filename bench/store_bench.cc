// What an operation of the store costs, without protocol and sockets.
#include "store/store.h"

#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using kvferry::store::Instant;
using kvferry::store::ItemView;
using kvferry::store::ItemVisitor;
using kvferry::store::Key;
using kvferry::store::Store;
using kvferry::store::StoreConfig;

constexpr Instant kNow{1'700'000'000};
constexpr std::size_t kLimitBytes = std::size_t{256} * 1024 * 1024;

std::vector<std::string> make_keys(std::int64_t count) {
  std::vector<std::string> keys;
  for (std::int64_t i = 0; i < count; ++i) {
    keys.push_back("key_" + std::to_string(i * 7919 % count));
  }
  return keys;
}

struct Copy {
  char bytes[16384];
  void on_item(const ItemView& item) {
    benchmark::DoNotOptimize(item.value.copy(bytes, item.value.size()));
  }
};

void fill(Store& store, const std::vector<std::string>& keys, std::size_t value_bytes) {
  const std::string value(value_bytes, 'v');
  for (const std::string& key : keys) {
    store.store(Key(key), {}, value, kNow);
  }
}

void BM_StoreGetHit(benchmark::State& state) {
  Store store(StoreConfig{.limit_bytes = kLimitBytes});
  const std::vector<std::string> keys = make_keys(state.range(1));
  fill(store, keys, static_cast<std::size_t>(state.range(0)));
  Copy copy;
  std::size_t at = 0;
  for (auto _ : state) {
    auto result = store.read(Key(keys[at]), {}, kNow, ItemVisitor::to<&Copy::on_item>(&copy));
    benchmark::DoNotOptimize(result);
    at = at + 1 == keys.size() ? 0 : at + 1;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_StoreGetHit)
    ->ArgNames({"value_bytes", "items"})
    ->Args({100, 1'000})
    ->Args({100, 500'000})
    ->Args({1'000, 100'000})
    ->Args({8'000, 10'000});

void BM_StoreGetMiss(benchmark::State& state) {
  Store store(StoreConfig{.limit_bytes = kLimitBytes});
  fill(store, make_keys(500'000), 100);
  const std::string absent = "absent";
  for (auto _ : state) {
    auto result = store.read(Key(absent), {}, kNow, {});
    benchmark::DoNotOptimize(result);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_StoreGetMiss);

/// More keys than fit make every set evict; fewer make it overwrite.
void BM_StoreSet(benchmark::State& state) {
  Store store(StoreConfig{.limit_bytes = kLimitBytes});
  const std::vector<std::string> keys = make_keys(state.range(1));
  const std::string value(static_cast<std::size_t>(state.range(0)), 'v');
  fill(store, keys, value.size());
  std::size_t at = 0;
  for (auto _ : state) {
    auto result = store.store(Key(keys[at]), {}, value, kNow);
    benchmark::DoNotOptimize(result);
    at = at + 1 == keys.size() ? 0 : at + 1;
  }
  const auto stats = store.snapshot();
  state.counters["bytes_per_item"] =
      static_cast<double>(stats.allocated_bytes) / static_cast<double>(stats.curr_items);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_StoreSet)
    ->ArgNames({"value_bytes", "items"})
    ->Args({100, 1'000})
    ->Args({100, 500'000})
    ->Args({100, 3'000'000})
    ->Args({100'000, 10'000});

}  // namespace

BENCHMARK_MAIN();
