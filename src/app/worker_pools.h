// WorkerPools: the pools of one protocol that a worker has, over its plans.
//
// PoolType is pool::Pool or pool::RedisPool.
// Threads: one worker.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pool/pool_context.h"
#include "pool/snapshot.h"

namespace kvferry::app {

template <typename PoolType>
class WorkerPools {
 public:
  using Snapshots = std::vector<std::shared_ptr<const pool::PoolSnapshot>>;

  /// Takes those of `snapshots` over that speak `protocol`. Pools that are not among them retire.
  void apply(const pool::PoolContext& context, const Snapshots& snapshots,
             pool::Protocol protocol) {
    auto before = std::exchange(pools_, {});
    for (const auto& snapshot : snapshots) {
      if (snapshot->options.protocol != protocol) {
        continue;
      }
      const std::string& name = snapshot->options.name;
      const auto kept = before.find(name);
      if (kept == before.end()) {
        pools_[name] = std::make_unique<PoolType>(context, snapshot);
      } else {
        kept->second->apply(snapshot);
        pools_[name] = std::move(kept->second);
      }
    }
    for (auto& [name, pool] : before) {
      if (pool != nullptr) {
        pool->retire();
        retired_.push_back(std::move(pool));
      }
    }
  }

  /// Null when there is none of this name.
  PoolType* find(const std::string& name) const {
    const auto found = pools_.find(name);
    return found == pools_.end() ? nullptr : found->second.get();
  }
  template <typename Use>
  void for_each(Use use) const {
    for (const auto& [name, pool] : pools_) {
      use(*pool);
    }
  }
  /// Fails what is outstanding, in retired pools too.
  void shut() {
    for (const auto& [name, pool] : pools_) {
      pool->shut();
    }
    for (const auto& pool : retired_) {
      pool->shut();
    }
  }
  /// Lets go of retired pools that nobody waits for any more.
  void sweep() {
    std::erase_if(retired_, [](const auto& pool) { return pool->is_drained(); });
  }

 private:
  std::unordered_map<std::string, std::unique_ptr<PoolType>> pools_;
  std::vector<std::unique_ptr<PoolType>> retired_;
};

}  // namespace kvferry::app
