// Routes that decide at once and then have nothing more to do: they hand the call itself on, or
// answer it.
//
// Source: docs/routelib.md. Threads: one worker.
#pragma once

#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "route/native_route.h"
#include "route/token_bucket.h"

namespace kvferry::route {

/// Forwards to its only child.
class DirectRoute final : public NativeRoute {
 public:
  using NativeRoute::NativeRoute;
  const RouteChild* select(memcache::Command /*command*/, std::string_view /*key*/) const override {
    return children().data();
  }
  void send(call::Call& call, const memcache::Request& request) override;
};

/// Answers as if no item existed; has no children.
class NullRoute final : public NativeRoute {
 public:
  using NativeRoute::NativeRoute;
  void send(call::Call& call, const memcache::Request& request) override;
};

/// Forwards each request to one of its children, drawn by lot.
class RandomRoute final : public NativeRoute {
 public:
  RandomRoute(const RouteSetup& setup, std::uint64_t seed)
      : NativeRoute(setup), state_(seed | 1U) {}
  void send(call::Call& call, const memcache::Request& request) override;

 private:
  std::uint64_t state_;
};

/// Forwards as many requests as a bucket of tokens allows; the others are answered as if no item
/// existed, and counted. Inverted: those above the limit are forwarded.
class RateLimitRoute final : public NativeRoute {
 public:
  /// The bucket is this worker's own, or one for all workers.
  using Bucket = std::variant<TokenBucket, std::shared_ptr<SharedTokenBucket>>;

  RateLimitRoute(const RouteSetup& setup, Bucket bucket, bool fails_until_limit)
      : NativeRoute(setup), bucket_(std::move(bucket)), fails_until_limit_(fails_until_limit) {}
  void send(call::Call& call, const memcache::Request& request) override;

 private:
  bool take_token();

  Bucket bucket_;
  bool fails_until_limit_;
};

/// Gives everything that is stored through it the same time to live: flag T of ms, the exptime of
/// set, add and cas. Other commands are refused.
class TtlRoute final : public NativeRoute {
 public:
  /// `ttl` as a client would write it.
  TtlRoute(const RouteSetup& setup, std::string ttl)
      : NativeRoute(setup), ttl_(std::move(ttl)), flag_("T" + ttl_) {}
  void send(call::Call& call, const memcache::Request& request) override;

 private:
  EditError edit(memcache::Command command);

  std::string ttl_;
  std::string flag_;
  RouteRequest edited_;  // Used within send() only.
};

}  // namespace kvferry::route
