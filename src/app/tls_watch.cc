#include "app/tls_watch.h"

#include <chrono>
#include <utility>

namespace kvferry::app {

void TlsWatch::on_tls_handshake(net::TlsRole role, bool is_resumed) {
  Counts& counts = counts_[static_cast<std::size_t>(role)];
  counts.handshakes.fetch_add(1, std::memory_order_relaxed);
  if (is_resumed) {
    counts.resumed.fetch_add(1, std::memory_order_relaxed);
  }
}

void TlsWatch::on_tls_failure(net::TlsRole role, const std::string& label,
                              const net::TlsFailure& failure) {
  counts_[static_cast<std::size_t>(role)]
      .failures[static_cast<std::size_t>(failure.kind)]
      .fetch_add(1, std::memory_order_relaxed);
  const base::SteadyTime now = std::chrono::steady_clock::now();
  std::uint64_t held_back = 0;
  {
    const std::lock_guard lock(mutex_);
    Throttle& throttle = throttles_[Key(role, failure.kind, label)];
    if (now < throttle.next) {
      ++throttle.held_back;
      return;
    }
    throttle.next = now + kTlsLogInterval;
    held_back = std::exchange(throttle.held_back, 0);
  }
  const bool is_client = role == net::TlsRole::Server;
  log_.write(base::LogLevel::Warning, "net",
             is_client ? "TLS with a client failed" : "TLS with a backend failed",
             {{"at", label},
              {"peer", failure.peer},
              {"kind", net::tls_failure_name(failure.kind)},
              {"reason", failure.reason},
              {"suppressed", std::to_string(held_back)}});
}

TlsWatch::Figures TlsWatch::figures(net::TlsRole role) const {
  const Counts& counts = counts_[static_cast<std::size_t>(role)];
  Figures figures;
  figures.handshakes = counts.handshakes.load(std::memory_order_relaxed);
  figures.resumed = counts.resumed.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < figures.failures.size(); ++i) {
    figures.failures[i] = counts.failures[i].load(std::memory_order_relaxed);
  }
  return figures;
}

}  // namespace kvferry::app
