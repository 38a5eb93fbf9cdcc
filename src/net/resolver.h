// Resolver: host names to addresses with c-ares, on the control thread's loop, never on a worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "net/address.h"

namespace kvferry::net {

class Loop;

struct Resolution {
  std::vector<Address> addresses;  // IPv4 first, in the order of the answer; never empty.
  base::Seconds ttl{0};            // Smallest of the answer; 0 when unknown (hosts file).
};

struct ResolverOptions {
  base::Millis timeout{2000};
  int tries = 3;
  /// "127.0.0.1:5353,..." instead of the system's name servers; for tests and unusual set-ups.
  std::string servers;
};

class Resolver {
 public:
  Resolver() = default;
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  using Callback = std::function<void(base::Result<Resolution>)>;

  /// `loop` must outlive the resolver.
  static base::Result<std::unique_ptr<Resolver>> open(Loop& loop, const ResolverOptions& options);
  virtual ~Resolver() = default;
  /// Looks up A and AAAA, the hosts file first. `callback` runs on the loop's thread, possibly
  /// before this returns (numeric hosts, the hosts file). It must not destroy the resolver; when
  /// that is destroyed, lookups on their way end without a callback.
  /// Errors: NotFound, TimedOut, Refused (the servers would not answer), System.
  virtual void resolve(const std::string& host, std::uint16_t port, Callback callback) = 0;
};

}  // namespace kvferry::net
