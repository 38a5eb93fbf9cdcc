#include "front/peer.h"

#include <arpa/inet.h>
#include <cstring>
#include <netinet/in.h>

namespace kvferry::front {
namespace {

std::string origin_fields(const PeerAddress& peer) {
  if (peer.family != AF_INET && peer.family != AF_INET6) {
    return "rip=unix rport=0 transport=local";
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(peer.family, peer.ip.data(), text.data(), text.size());
  return "rip=" + std::string(text.data()) + " rport=" + std::to_string(peer.port) +
         " transport=tcp";
}

}  // namespace

PeerAddress PeerAddress::of(const net::Address& address, int fd) noexcept {
  PeerAddress peer;
  peer.fd = fd;
  peer.port = address.port();
  peer.family = static_cast<std::uint16_t>(address.family());
  if (address.family() == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address.get(), sizeof(in));
    std::memcpy(peer.ip.data(), &in.sin_addr, sizeof(in.sin_addr));
  } else if (address.family() == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, address.get(), sizeof(in));
    std::memcpy(peer.ip.data(), &in.sin6_addr, sizeof(in.sin6_addr));
  }
  return peer;
}

bool is_local(const PeerAddress& peer) noexcept {
  if (peer.family == AF_INET) {
    return peer.ip[0] == 127;
  }
  if (peer.family != AF_INET6) {
    return true;
  }
  in6_addr address{};
  std::memcpy(&address, peer.ip.data(), sizeof(address));
  return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && peer.ip[12] == 127);
}

std::string peer_text(const PeerAddress& peer) {
  if (peer.family != AF_INET && peer.family != AF_INET6) {
    return "unix:0";
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(peer.family, peer.ip.data(), text.data(), text.size());
  const std::string host(text.data());
  return (peer.family == AF_INET6 ? "[" + host + "]" : host) + ":" + std::to_string(peer.port);
}

std::string conn_new_fields(const PeerAddress& peer) {
  return "type=conn_new " + origin_fields(peer) + " cfd=" + std::to_string(peer.fd);
}

std::string conn_close_fields(const PeerAddress& peer, std::string_view reason) {
  return "type=conn_close " + origin_fields(peer) + " reason=" + std::string(reason) +
         " cfd=" + std::to_string(peer.fd);
}

}  // namespace kvferry::front
