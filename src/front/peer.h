// PeerAddress: whom a session talks to, as small as it can be kept, and the lines about
// connections.
//
// Source: memcache-protocol.md section 12.2, connevents. Threads: pure values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "net/address.h"

namespace kvferry::front {

struct PeerAddress {
  std::array<std::uint8_t, 16> ip{};
  std::int32_t fd = -1;
  std::uint16_t port = 0;
  std::uint16_t family = 0;  // AF_INET, AF_INET6, or something without an address.

  static PeerAddress of(const net::Address& address, int fd) noexcept;
};

/// Whether the peer is on this machine: a loopback address, or a Unix socket.
bool is_local(const PeerAddress& peer) noexcept;
/// "127.0.0.1:50188", "[::1]:50188"; of a Unix socket "unix:0".
std::string peer_text(const PeerAddress& peer);
/// "type=conn_new rip=127.0.0.1 rport=5 transport=tcp cfd=7".
std::string conn_new_fields(const PeerAddress& peer);
/// The same with `reason`, which is one of normal, error, idle_timeout, shutdown.
std::string conn_close_fields(const PeerAddress& peer, std::string_view reason);

}  // namespace kvferry::front
