// Cost of finding a key's server: hashing alone, and the whole selection on rings of three sizes.
//
//   placement_bench --benchmark_repetitions=5 --benchmark_report_aggregates_only=true
#include "pool/placement.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "pool/key_hash.h"

namespace kvferry::pool {
namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kKeyCount = 1024;  // A power of two; fits the second-level cache.

/// Keys that differ in their last digits, as keys of an application do.
std::vector<std::string> make_keys() {
  std::vector<std::string> keys;
  for (std::size_t number = 0; number < kKeyCount; ++number) {
    std::string key = "application:user:profile:";
    const std::string digits = std::to_string(number * 7919);
    key.append(kKeyBytes - key.size() - digits.size(), '0');
    keys.push_back(key + digits);
  }
  return keys;
}

std::vector<ServerOptions> make_servers(std::int64_t count) {
  std::vector<ServerOptions> servers(static_cast<std::size_t>(count));
  for (std::size_t at = 0; at < servers.size(); ++at) {
    servers[at].host = "10.0.0." + std::to_string(at + 1);
    servers[at].port = 22121;
  }
  return servers;
}

void BM_HashKey(benchmark::State& state) {
  const auto kind = static_cast<HashKind>(state.range(0));
  const std::vector<std::string> keys = make_keys();
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(hash_key(kind, keys[next++ % kKeyCount]));
  }
  state.SetLabel(std::string(name_of(kind)));
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kKeyBytes));
}
BENCHMARK(BM_HashKey)->ArgName("kind")->DenseRange(0, static_cast<int>(HashKind::Atol));

void select_keys(benchmark::State& state, HashKind hash, DistributionKind distribution) {
  PlacementOptions options;
  options.hash = hash;
  options.distribution = distribution;
  const std::vector<ServerOptions> servers = make_servers(state.range(0));
  const auto placement =
      Placement::make(options, servers, std::vector<bool>(servers.size(), true)).value();
  const std::vector<std::string> keys = make_keys();
  std::uint64_t random_state = 1;
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(placement->select(keys[next++ % kKeyCount], random_state));
  }
  state.SetItemsProcessed(state.iterations());
}

void BM_SelectKetama(benchmark::State& state) {
  select_keys(state, HashKind::Fnv1a_64, DistributionKind::Ketama);
}
BENCHMARK(BM_SelectKetama)->ArgName("servers")->Arg(2)->Arg(16)->Arg(100);

void BM_SelectKetamaXxh3(benchmark::State& state) {
  select_keys(state, HashKind::Xxh3, DistributionKind::Ketama);
}
BENCHMARK(BM_SelectKetamaXxh3)->ArgName("servers")->Arg(2)->Arg(16)->Arg(100);

void BM_SelectModula(benchmark::State& state) {
  select_keys(state, HashKind::Fnv1a_64, DistributionKind::Modula);
}
BENCHMARK(BM_SelectModula)->ArgName("servers")->Arg(2)->Arg(16)->Arg(100);

void BM_SelectJump(benchmark::State& state) {
  select_keys(state, HashKind::Xxh3, DistributionKind::Jump);
}
BENCHMARK(BM_SelectJump)->ArgName("servers")->Arg(2)->Arg(16)->Arg(100);

void BM_SelectRendezvous(benchmark::State& state) {
  select_keys(state, HashKind::Xxh3, DistributionKind::Rendezvous);
}
BENCHMARK(BM_SelectRendezvous)->ArgName("servers")->Arg(2)->Arg(16)->Arg(100);

}  // namespace
}  // namespace kvferry::pool

BENCHMARK_MAIN();
