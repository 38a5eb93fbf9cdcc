// Probe: asks a backend that is down whether it is back: one connection, one question, one verdict.
// Memcached servers are asked for their `version`; Redis servers get the greeting of their pool and
// a PING. A server that is there but refuses the credentials, or is loading, is not well.
//
// Clients never pay for finding out: only a probe brings an ejected backend back.
// Lifetime:  the verdict comes exactly once, unless the probe is destroyed first; never from within
// start(). Threads:   that of the loop; the control thread's in practice.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "net/loop.h"
#include "pool/greeting.h"
#include "pool/options.h"

namespace kvferry::pool {

/// Of a line that spoke against a backend so much is kept.
inline constexpr std::size_t kRefusalBytesMax = 256;

/// What a backend is asked, and what it answers when it is well.
struct ProbeQuestion {
  std::string bytes = "version\r\n";
  std::string answer = "VERSION ";  // How the last reply begins.
  Greeting greeting{};              // Redis only: what `bytes` begin with.
};

/// The question for servers of a pool. It may hold the password.
ProbeQuestion probe_question(const PoolOptions& options);

class Probe final : private net::StreamHandler {
 public:
  using Verdict = std::function<void(bool is_well)>;

  Probe(net::Loop& loop, base::Millis timeout, Verdict verdict, ProbeQuestion question = {});

  /// With `tls` unless it is null; `host` is the backend's name then.
  void start(const net::Address& address, const net::TlsContextPtr& tls = {},
             const std::string& host = {});
  /// The line that spoke against the backend, for logs; empty when it said nothing.
  const std::string& refusal() const { return refusal_; }

 private:
  void on_connected() override;
  void on_data(std::string_view bytes) override;
  void on_end() override { decide(false); }
  void on_closed(int /*error*/) override { decide(false); }
  void on_timeout() { decide(false); }
  void decide(bool is_well);
  bool take_greeting_replies();

  net::Loop& loop_;
  net::StreamPtr stream_;
  net::Timer timer_;
  base::Millis timeout_;
  Verdict verdict_;
  ProbeQuestion question_;
  std::uint8_t step_ = 0;  // Of the greeting: the one whose reply comes next.
  std::string reply_;
  std::string refusal_;
};

}  // namespace kvferry::pool
