// Probe: asks a backend that is down whether it is back: one connection, one `version`, one
// verdict.
//
// Clients never pay for finding out: only a probe brings an ejected backend back.
// Lifetime:  the verdict comes exactly once, unless the probe is destroyed first; never from within
// start(). Threads:   that of the loop; the control thread's in practice.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "net/loop.h"

namespace kvferry::pool {

class Probe final : private net::StreamHandler {
 public:
  using Verdict = std::function<void(bool is_well)>;

  Probe(net::Loop& loop, base::Millis timeout, Verdict verdict);

  /// With `tls` unless it is null; `host` is the backend's name then.
  void start(const net::Address& address, const net::TlsContextPtr& tls = {},
             const std::string& host = {});

 private:
  void on_connected() override;
  void on_data(std::string_view bytes) override;
  void on_end() override { decide(false); }
  void on_closed(int /*error*/) override { decide(false); }
  void on_timeout() { decide(false); }
  void decide(bool is_well);

  net::Loop& loop_;
  net::StreamPtr stream_;
  net::Timer timer_;
  base::Millis timeout_;
  Verdict verdict_;
  std::string reply_;
};

}  // namespace kvferry::pool
