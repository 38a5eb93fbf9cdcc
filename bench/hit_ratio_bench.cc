// Hit ratios of policies on generated traces: models of well-known ones beside kvferry's own store.
//
//   hit_ratio_bench [--keys N] [--accesses N] [--share S] [--seed N] [--trace NAME]
//
// Every cache has the same bytes: `share` of what all steady items take. The store is the real one,
// so what it spends on its index, on frames that are not full and on its ghost counts against it,
// while the models spend kItemBytes an item. The first third of a trace fills the caches and does
// not count.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hits/policy.h"
#include "hits/trace.h"
#include "store/store.h"

namespace kvferry::hits {
namespace {

/// The clock of a trace begins here.
constexpr std::uint32_t kFirstSecond = 1'700'000'000;

class StorePolicy final : public Policy {
 public:
  explicit StorePolicy(std::size_t capacity_bytes)
      : store_(store::StoreConfig{.limit_bytes = capacity_bytes}), value_(64 * 1024, 'v') {}
  std::string_view name() const noexcept override { return "kvferry"; }
  bool access(const Access& access) override {
    const store::Instant now{kFirstSecond + access.second};
    if (access.second != maintained_second_) {
      maintained_second_ = access.second;
      for (int i = 0; i < 10; ++i) {
        store_.maintain(now);  // As often as a server would.
      }
    }
    key_.clear();
    append_key(access.key, key_);
    const store::Key key(key_);
    if (store_.read(key, {}, now, {}).status == store::ReadStatus::Hit) {
      return true;
    }
    const store::Instant exptime =
        access.ttl_seconds == 0 ? store::kNever : store::Instant{now.get() + access.ttl_seconds};
    store_.store(key, store::StoreOptions{.exptime = exptime},
                 std::string_view(value_).substr(0, access.value_bytes), now);
    return false;
  }

 private:
  store::Store store_;
  std::string value_;
  std::string key_;
  std::uint32_t maintained_second_ = 0;
};

struct Options {
  std::uint32_t keys = 200'000;
  std::uint64_t accesses = 3'000'000;
  double share = 0.1;
  std::uint64_t seed = 1;
  std::string trace;
  std::string policy;
};

double hit_percent(Policy& policy, const TraceSpec& spec, const Options& options) {
  Trace trace(spec, options.seed);
  std::uint64_t hits = 0;
  std::uint64_t counted = 0;
  for (std::uint64_t i = 0; i < options.accesses; ++i) {
    const bool is_hit = policy.access(trace.next());
    if (i >= options.accesses / 3) {
      ++counted;
      hits += is_hit ? 1 : 0;
    }
  }
  return 100.0 * static_cast<double>(hits) / static_cast<double>(counted);
}

bool read_options(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const char* const text = argv[i + 1];
    if (name == "--keys") {
      options.keys = static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
    } else if (name == "--accesses") {
      options.accesses = std::strtoull(text, nullptr, 10);
    } else if (name == "--share") {
      options.share = std::strtod(text, nullptr);
    } else if (name == "--seed") {
      options.seed = std::strtoull(text, nullptr, 10);
    } else if (name == "--trace") {
      options.trace = text;
    } else if (name == "--policy") {
      options.policy = text;
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && options.keys > 0 && options.share > 0;
}

int run(const Options& options) {
  std::printf("keys %u, accesses %llu, memory %.3f of the steady items, seed %llu\n\n",
              options.keys, static_cast<unsigned long long>(options.accesses), options.share,
              static_cast<unsigned long long>(options.seed));
  std::printf(
      "| trace | LRU | segmented LRU | S3-FIFO | W-TinyLFU | kvferry "
      "|\n|---|--:|--:|--:|--:|--:|\n");
  for (const TraceSpec& spec : standard_traces(options.keys)) {
    if (spec.name.find(options.trace) == std::string::npos) {
      continue;
    }
    const auto bytes =
        static_cast<std::size_t>(static_cast<double>(Trace(spec, 1).steady_bytes() +
                                                     std::uint64_t{options.keys} * kItemBytes) *
                                 options.share);
    std::vector<std::unique_ptr<Policy>> policies;
    policies.push_back(make_lru(bytes));
    policies.push_back(make_segmented_lru(bytes));
    policies.push_back(make_s3_fifo(bytes));
    policies.push_back(make_w_tiny_lfu(bytes));
    policies.push_back(std::make_unique<StorePolicy>(bytes));
    std::printf("| %s |", spec.name.c_str());
    for (const auto& policy : policies) {
      if (policy->name().find(options.policy) == std::string_view::npos) {
        std::printf(" - |");
        continue;
      }
      std::printf(" %.2f |", hit_percent(*policy, spec, options));
      std::fflush(stdout);
    }
    std::printf("\n");
  }
  return 0;
}

}  // namespace
}  // namespace kvferry::hits

int main(int argc, char** argv) {
  kvferry::hits::Options options;
  if (!kvferry::hits::read_options(argc, argv, options)) {
    std::fputs(
        "usage: hit_ratio_bench [--keys N] [--accesses N] [--share S] [--seed N] [--trace NAME] "
        "[--policy NAME]\n",
        stderr);
    return 2;
  }
  return kvferry::hits::run(options);
}
