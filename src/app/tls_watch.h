// TlsWatch: counts handshakes, and logs those that fail.
//
// One line a minute for each kind of failure at each place, however many there are: anybody can
// connect and fail. Threads: any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "base/clock.h"
#include "base/log.h"
#include "net/tls_context.h"

namespace kvferry::app {

/// Time between two lines of one kind.
inline constexpr base::Seconds kTlsLogInterval{60};

class TlsWatch final : public net::TlsMonitor {
 public:
  /// What there was of connections of one role.
  struct Figures {
    std::uint64_t handshakes = 0;
    std::uint64_t resumed = 0;
    std::array<std::uint64_t, net::kTlsFailureKinds> failures{};
  };

  explicit TlsWatch(base::Log& log) : log_(log) {}

  // net::TlsMonitor
  void on_tls_handshake(net::TlsRole role, bool is_resumed) override;
  void on_tls_failure(net::TlsRole role, const std::string& label,
                      const net::TlsFailure& failure) override;

  Figures figures(net::TlsRole role) const;

 private:
  struct Counts {
    std::atomic<std::uint64_t> handshakes{0};
    std::atomic<std::uint64_t> resumed{0};
    std::array<std::atomic<std::uint64_t>, net::kTlsFailureKinds> failures{};
  };
  struct Throttle {
    base::SteadyTime next{};
    std::uint64_t held_back = 0;
  };
  using Key = std::tuple<net::TlsRole, net::TlsFailureKind, std::string>;

  base::Log& log_;
  std::array<Counts, 2> counts_;  // By role: Server, Client.
  std::mutex mutex_;
  std::map<Key, Throttle> throttles_;  // Bounded by the labels that were ever configured.
};

}  // namespace kvferry::app
