// Cost of finding the command of a Redis request, and its keys.
//
//   redis_commands_bench --benchmark_repetitions=5 --benchmark_report_aggregates_only=true
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "protocol/redis_commands/command_errors.h"
#include "protocol/redis_commands/command_table.h"
#include "protocol/redis_commands/key_places.h"

namespace kvferry::redis {
namespace {

/// Names as they come in turn, so that the next one is not foreseen.
constexpr std::array<std::string_view, 8> kCommonNames{"GET",    "SET",  "get",  "HGETALL",
                                                       "EXPIRE", "ZADD", "mget", "INCRBY"};
constexpr std::array<std::string_view, 4> kLongNames{"ZREVRANGEBYSCORE", "GEORADIUSBYMEMBER_RO",
                                                     "SUNIONSTORE", "XAUTOCLAIM"};
constexpr std::array<std::string_view, 4> kOtherNames{"JSON.GET", "FT.SEARCH", "FOO",
                                                      "a-name-that-is-longer-than-any"};

template <std::size_t count>
void resolve_names(benchmark::State& state, const std::array<std::string_view, count>& names) {
  std::size_t at = 0;
  std::array<std::string_view, 2> args{"", "key"};
  for (auto unused : state) {
    args[0] = names[at++ % count];
    benchmark::DoNotOptimize(resolve(args).command);
  }
}

void find_common_names(benchmark::State& state) {
  resolve_names(state, kCommonNames);
}
void find_long_names(benchmark::State& state) {
  resolve_names(state, kLongNames);
}
void find_other_names(benchmark::State& state) {
  resolve_names(state, kOtherNames);
}
BENCHMARK(find_common_names);
BENCHMARK(find_long_names);
BENCHMARK(find_other_names);

void find_keys_of(benchmark::State& state, const std::vector<std::string_view>& args) {
  KeyPlaces places;
  const Command& command = *resolve(args).command;
  for (auto unused : state) {
    benchmark::DoNotOptimize(find_keys(command, args, places));
  }
}

void keys_of_get(benchmark::State& state) {
  find_keys_of(state, {"get", "key"});
}
void keys_of_set(benchmark::State& state) {
  find_keys_of(state, {"set", "key", "value", "ex", "10"});
}
void keys_of_eval(benchmark::State& state) {
  find_keys_of(state, {"eval", "return 1", "2", "a", "b", "c"});
}
void keys_of_xread(benchmark::State& state) {
  find_keys_of(state, {"xread", "count", "10", "streams", "a", "b", "0", "0"});
}
void keys_of_mget(benchmark::State& state) {
  std::vector<std::string_view> args(static_cast<std::size_t>(state.range(0)) + 1, "key");
  args[0] = "mget";
  find_keys_of(state, args);
}
BENCHMARK(keys_of_get);
BENCHMARK(keys_of_set);
BENCHMARK(keys_of_eval);
BENCHMARK(keys_of_xread);
BENCHMARK(keys_of_mget)->Arg(1)->Arg(10)->Arg(100);

/// All that a plain request needs: the command, the count, the place of its key.
void whole_get(benchmark::State& state) {
  const std::array<std::string_view, 2> args{"GET", "key"};
  for (auto unused : state) {
    const Command& command = *resolve(args).command;
    benchmark::DoNotOptimize(has_good_count(command, 2) ? command.sole_key : 0);
  }
}
BENCHMARK(whole_get);

}  // namespace
}  // namespace kvferry::redis
