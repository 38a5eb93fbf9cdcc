#include "net/address.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstddef>
#include <cstring>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>

namespace kvferry::net {
namespace {

using base::Error;
using base::ErrorCode;

template <typename T>
T copy_as(const sockaddr_storage& storage) noexcept {
  T address{};
  std::memcpy(&address, &storage, sizeof(address));
  return address;
}

/// "fe80::1%eth0": the part behind the percent sign names an interface. 0 when there is none of
/// that name.
std::uint32_t scope_of(const std::string& zone) noexcept {
  return if_nametoindex(zone.c_str());
}

}  // namespace

Address::Address(const sockaddr* address, socklen_t length)
    : size_(std::min(length, static_cast<socklen_t>(sizeof(storage_)))) {
  std::memcpy(&storage_, address, size_);
}

base::Result<Address> Address::from_ip(std::string_view host, std::uint16_t port) {
  const std::size_t percent = host.find('%');
  const std::string text(host.substr(0, percent));
  sockaddr_in v4{};
  if (percent == std::string_view::npos && inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    return Address(reinterpret_cast<const sockaddr*>(&v4), sizeof(v4));
  }
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    if (percent != std::string_view::npos) {
      v6.sin6_scope_id = scope_of(std::string(host.substr(percent + 1)));
      if (v6.sin6_scope_id == 0) {
        return Error(ErrorCode::NotFound,
                     "\"" + std::string(host) + "\" names a network interface that is not there");
      }
    }
    return Address(reinterpret_cast<const sockaddr*>(&v6), sizeof(v6));
  }
  return Error(ErrorCode::NotFound, "\"" + std::string(host) + "\" is not a numeric IP address");
}

base::Result<Address> Address::from_path(std::string_view path) {
  sockaddr_un address{};
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return Error(ErrorCode::InvalidInput, "the path of a Unix socket takes 1 to " +
                                              std::to_string(sizeof(address.sun_path) - 1) +
                                              " bytes, \"" + std::string(path) + "\" has " +
                                              std::to_string(path.size()));
  }
  if (path.find('\0') != std::string_view::npos) {
    return Error(ErrorCode::InvalidInput, "the path of a Unix socket holds a zero byte");
  }
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  const std::size_t size = offsetof(sockaddr_un, sun_path) + path.size() + 1;
  return Address(reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size));
}

std::uint16_t Address::port() const noexcept {
  switch (family()) {
    case AF_INET:
      return ntohs(copy_as<sockaddr_in>(storage_).sin_port);
    case AF_INET6:
      return ntohs(copy_as<sockaddr_in6>(storage_).sin6_port);
    default:
      return 0;
  }
}

std::string Address::to_string() const {
  char text[INET6_ADDRSTRLEN] = {};
  switch (family()) {
    case AF_INET: {
      const auto v4 = copy_as<sockaddr_in>(storage_);
      inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
      return std::string(text) + ":" + std::to_string(port());
    }
    case AF_INET6: {
      const auto v6 = copy_as<sockaddr_in6>(storage_);
      inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
      char zone[IF_NAMESIZE] = {};
      if (v6.sin6_scope_id != 0 && if_indextoname(v6.sin6_scope_id, zone) != nullptr) {
        return "[" + std::string(text) + "%" + zone + "]:" + std::to_string(port());
      }
      return "[" + std::string(text) + "]:" + std::to_string(port());
    }
    case AF_UNIX: {
      const auto path = copy_as<sockaddr_un>(storage_);
      if (size_ <= offsetof(sockaddr_un, sun_path)) {
        return "unix";  // The client end of a Unix connection has no name.
      }
      const std::size_t room = size_ - offsetof(sockaddr_un, sun_path);
      return {path.sun_path, strnlen(path.sun_path, room)};
    }
    default:
      return "unknown";
  }
}

bool operator==(const Address& left, const Address& right) noexcept {
  return left.size_ == right.size_ && std::memcmp(&left.storage_, &right.storage_, left.size_) == 0;
}

}  // namespace kvferry::net
