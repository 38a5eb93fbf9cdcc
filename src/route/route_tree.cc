#include "route/route_tree.h"

#include <array>
#include <utility>

#include "base/check.h"
#include "protocol/memcache/token_walker.h"
#include "route/coalesce_route.h"
#include "route/failover_routes.h"
#include "route/near_route.h"
#include "route/replicating_routes.h"
#include "route/selecting_routes.h"
#include "route/split_get.h"

namespace kvferry::route {

/// What one route tells its tree.
class RouteTree::Host final : public RouteHost {
 public:
  /// Null counters: nowhere.
  using Counters = std::array<base::Counter*, kRouteEvents>;

  Host(RouteTree& tree, const Counters& counters) : tree_(tree), counters_(counters) {}

  void on_logged_reply(const RouteReply& /*reply*/, const RouteRequest& /*request*/,
                       int /*client_fd*/) override {}
  void count(RouteEvent event) override {
    if (base::Counter* const counter = counters_[static_cast<std::size_t>(event)]) {
      counter->add(1);
    }
  }
  void on_lingering() override {}
  void on_lingered() override {}
  void on_kept(std::size_t bytes) override { tree_.set_kept(tree_.kept_bytes_ + bytes); }
  void on_dropped(std::size_t bytes) override { tree_.set_kept(tree_.kept_bytes_ - bytes); }
  void hold() override { ++tree_.held_; }
  void let_go() override {
    KVF_DCHECK(tree_.held_ != 0);
    --tree_.held_;
  }

 private:
  RouteTree& tree_;
  Counters counters_;
};

class RouteTree::Builder {
 public:
  Builder(const Setup& setup, RouteTree& tree) : setup_(setup), tree_(tree), seed_(setup.seed) {}

  RouteChild build(const RouteSpec& spec) {
    if (spec.kind == RouteKind::Pool) {
      return {.target = &setup_.pool(spec.text), .is_route = false};
    }
    const SharedBucket bucket =
        spec.is_bucket_shared ? setup_.buckets[buckets_used_++] : SharedBucket{};
    const NearSpace space =
        spec.kind == RouteKind::NearCache ? setup_.near_spaces[near_spaces_used_++] : NearSpace{};
    std::vector<RouteChild> children;
    children.reserve(spec.children.size());
    for (const RouteSpec& child : spec.children) {
      children.push_back(build(child));
    }
    if (spec.kind == RouteKind::Direct) {
      return children.front();
    }
    Host& host = tree_.hosts_.emplace_back(tree_, counters_of(spec));
    const RouteSetup setup{
        .loop = setup_.loop, .calls = setup_.calls, .host = host, .children = std::move(children)};
    if (spec.kind == RouteKind::NearCache) {
      tree_.routes_.push_back(std::make_unique<NearRoute>(
          setup, setup_.near_stores->of(space, spec.near_memory_bytes), *setup_.clock,
          NearOptions{.ttl = spec.near_ttl, .value_bytes_max = spec.near_value_bytes_max}));
    } else {
      tree_.routes_.push_back(make(spec, setup, bucket));
    }
    return {.target = tree_.routes_.back().get(), .is_route = true};
  }

 private:
  Host::Counters counters_of(const RouteSpec& spec) const {
    Host::Counters counters{};
    for (std::size_t i = 0; i < kRouteEvents; ++i) {
      const std::string name = counter_name(spec, static_cast<RouteEvent>(i));
      counters[i] = name.empty() ? nullptr : setup_.counter(name);
    }
    return counters;
  }

  std::unique_ptr<NativeRoute> make(const RouteSpec& spec, const RouteSetup& setup,
                                    const SharedBucket& bucket) {
    switch (spec.kind) {
      case RouteKind::Failover:
        return std::make_unique<FailoverRoute>(
            setup, FailoverOptions{.goes_on_after_miss = spec.goes_on_after_miss,
                                   .tries_max = spec.tries_max,
                                   .shuffles = spec.shuffles,
                                   .fixed_children = spec.fixed_children,
                                   .wait = spec.wait,
                                   .seed = next_seed()});
      case RouteKind::ZoneFailover:
        return std::make_unique<ZoneFailoverRoute>(setup, spec.goes_on_after_miss);
      case RouteKind::AllFastest:
        return std::make_unique<AllFastestRoute>(setup, spec.goes_on_after_miss, spec.wait);
      case RouteKind::AllSync:
        return std::make_unique<AllSyncRoute>(setup);
      case RouteKind::AllAsync:
        return std::make_unique<AllAsyncRoute>(setup);
      case RouteKind::Split:
        return std::make_unique<SplitRoute>(setup);
      case RouteKind::Random:
        return std::make_unique<RandomRoute>(setup, next_seed());
      case RouteKind::Ttl:
        return std::make_unique<TtlRoute>(setup, spec.text);
      case RouteKind::RateLimit:
        return std::make_unique<RateLimitRoute>(setup,
                                                bucket != nullptr
                                                    ? RateLimitRoute::Bucket(bucket)
                                                    : TokenBucket(spec.bucket, setup_.loop.now()),
                                                spec.fails_until_limit);
      case RouteKind::Error:
        return std::make_unique<ErrorRoute>(setup, spec.text);
      case RouteKind::Commands:
        return std::make_unique<CommandRoute>(setup, spec.commands);
      case RouteKind::Prefixes:
        return std::make_unique<PrefixRoute>(setup, spec.prefixes);
      case RouteKind::Coalesce:
        return std::make_unique<CoalesceRoute>(setup, *setup_.writes);
      case RouteKind::NearCache:
      case RouteKind::Null:
      case RouteKind::Pool:
      case RouteKind::Direct:
        break;
    }
    return std::make_unique<NullRoute>(setup);
  }

  /// Routes of one tree draw apart from each other (the multiplier is that of PCG).
  std::uint64_t next_seed() { return seed_ = seed_ * 6364136223846793005U + 1; }

  const Setup& setup_;
  RouteTree& tree_;
  std::uint64_t seed_;
  std::size_t buckets_used_ = 0;
  std::size_t near_spaces_used_ = 0;
};

std::vector<SharedBucket> make_shared_buckets(const RouteSpec& spec, base::SteadyTime now) {
  std::vector<SharedBucket> buckets;
  for_each_route(spec, [&](const RouteSpec& each) {
    if (each.is_bucket_shared) {
      buckets.push_back(std::make_shared<SharedTokenBucket>(each.bucket, now));
    }
  });
  return buckets;
}

RouteTree::RouteTree(const Setup& setup, const RouteSpec& spec)
    : calls_(setup.calls), budget_(setup.budget) {
  root_ = Builder(setup, *this).build(spec);
  if (!root_.is_route) {
    // A pool alone takes no requests whose answer is not wanted; a route makes them plain.
    Host& host = hosts_.emplace_back(*this, Host::Counters{});
    routes_.push_back(std::make_unique<DirectRoute>(
        RouteSetup{.loop = setup.loop, .calls = setup.calls, .host = host, .children = {root_}}));
    root_ = {.target = routes_.back().get(), .is_route = true};
  }
}

RouteTree::~RouteTree() {
  KVF_CHECK(is_idle());
  budget_.release(charged_bytes_);
}

void RouteTree::set_kept(std::size_t bytes) {
  kept_bytes_ = bytes;
  if (kept_bytes_ >= charged_bytes_ + kChargeStepBytes) {
    budget_.charge(kept_bytes_ - charged_bytes_);
    charged_bytes_ = kept_bytes_;
  } else if (kept_bytes_ + kChargeStepBytes <= charged_bytes_) {
    budget_.release(charged_bytes_ - kept_bytes_);
    charged_bytes_ = kept_bytes_;
  }
}

void RouteTree::send(call::Call& call, const memcache::Request& request) {
  if (request.key_count <= 1) [[likely]] {
    send_one(call, request);
    return;
  }
  if (const RouteChild* leaf = common_leaf(request)) {
    leaf->target->send(call, request);
    return;
  }
  SplitGet::start(calls_, call, request, *root_.target);
}

/// Routes of scripts show errors of requests that asked for no reply, as memcached's proxy does it.
/// Clients of pools do not expect that: they would take the error for the next answer.
void RouteTree::send_one(call::Call& call, const memcache::Request& request) {
  if (request.noreply) {
    ++held_;
    call.outer_sink = std::exchange(call.sink, static_cast<call::ReplySink*>(this));
  }
  root_.target->send(call, request);
}

call::Flow RouteTree::on_reply(call::Call& call, const call::ReplyPart& part) {
  --held_;
  set_kept(kept_bytes_ - std::exchange(call.held_bytes, 0));
  call.quiet = call::Quiet::All;
  call.sink = call.outer_sink;
  return call.sink->on_reply(call, part);
}

void RouteTree::on_blocked(call::Call& call) {
  call.outer_sink->on_blocked(call);
}

/// The pool that a request would be handed to as it is; null when more is to be done.
const RouteChild* RouteTree::leaf_of(memcache::Command command, std::string_view key) const {
  const RouteChild* child = &root_;
  while (child != nullptr && child->is_route) {
    child = static_cast<const NativeRoute*>(child->target)->select(command, key);
  }
  return child;
}

/// The same for all keys of a request.
const RouteChild* RouteTree::common_leaf(const memcache::Request& request) const {
  memcache::KeyWalker keys(request.keys);
  const RouteChild* first = leaf_of(request.command, keys.next());
  for (std::uint32_t i = 1; first != nullptr && i < request.key_count; ++i) {
    const RouteChild* leaf = leaf_of(request.command, keys.next());
    if (leaf == nullptr || leaf->target != first->target) {
      return nullptr;
    }
  }
  return first;
}

}  // namespace kvferry::route
