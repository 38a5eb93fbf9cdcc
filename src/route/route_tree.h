// RouteTree: the native routes of one RouteSpec, made; what a listener with routes sends to.
//
//   listener -> RouteTree -> PrefixRoute -> FailoverRoute -> pools, the store
//
// A get with several keys goes out as it is when one pool is to have all of them; else each key is
// a request of its own (SplitGet).
//
// Lifetime:  pools, counters, buckets and the budget outlive it. It may be destroyed when it is
// idle. Threads:   one worker.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/counter.h"
#include "base/memory_budget.h"
#include "call/call.h"
#include "net/loop.h"
#include "route/native_route.h"
#include "route/near_copies.h"
#include "route/passing_routes.h"
#include "route/route_spec.h"
#include "route/write_generations.h"

namespace kvferry::route {

/// The budget of the process, a word that all workers share, hears of what a tree keeps in steps of
/// this.
inline constexpr std::size_t kChargeStepBytes = std::size_t{64} << 10;

using SharedBucket = std::shared_ptr<SharedTokenBucket>;

/// Buckets for the routes of `spec` that share one over all workers, in the order in which
/// for_each_route() comes to them.
std::vector<SharedBucket> make_shared_buckets(const RouteSpec& spec, base::SteadyTime now);

class RouteTree final : public call::Target, private call::ReplySink {
 public:
  /// Used while the tree is made only.
  struct Setup {
    net::Loop& loop;
    call::CallPool& calls;
    base::MemoryBudget& budget;  // Is charged for what requests under way keep.
    /// The pool of a name that the spec has.
    std::function<call::Target&(std::string_view name)> pool;
    /// Where a name is counted; null: nowhere.
    std::function<base::Counter*(std::string_view name)> counter;
    std::span<const SharedBucket> buckets;  // Of make_shared_buckets().
    /// Of each near cache of the spec, in the order in which for_each_route() comes to them.
    std::span<const NearSpace> near_spaces{};
    /// For near caches: where they keep copies, and the clock of those. Both outlive the tree.
    NearStores* near_stores = nullptr;
    const StoreTarget* clock = nullptr;
    WriteGenerations* writes = nullptr;  // For coalescing routes. Outlives the tree.
    std::uint64_t seed = 1;              // Of what is drawn by lot.
  };

  RouteTree(const Setup& setup, const RouteSpec& spec);
  RouteTree(const RouteTree&) = delete;
  RouteTree& operator=(const RouteTree&) = delete;
  /// It is idle.
  ~RouteTree() override;

  void send(call::Call& call, const memcache::Request& request) override;
  /// No request is under way in it, and no sub-request of an answered one.
  bool is_idle() const { return held_ == 0; }

 private:
  class Host;
  class Builder;

  // call::ReplySink, of requests with noreply.
  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override;
  void on_blocked(call::Call& call) override;

  void set_kept(std::size_t bytes);
  void send_one(call::Call& call, const memcache::Request& request);

  const RouteChild* leaf_of(memcache::Command command, std::string_view key) const;
  const RouteChild* common_leaf(const memcache::Request& request) const;

  call::CallPool& calls_;
  std::deque<Host> hosts_;
  std::vector<std::unique_ptr<NativeRoute>> routes_;
  RouteChild root_;
  std::size_t held_ = 0;
  base::MemoryBudget& budget_;
  std::size_t kept_bytes_ = 0;     // Values and replies of requests that are under way.
  std::size_t charged_bytes_ = 0;  // What the budget knows of them.
};

}  // namespace kvferry::route
