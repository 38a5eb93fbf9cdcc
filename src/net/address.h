// Socket addresses: TCP over IPv4 or IPv6, and Unix sockets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/socket.h>

#include "base/result.h"

namespace kvferry::net {

/// A resolved address, ready for bind() or connect().
class Address {
 public:
  Address() = default;
  /// Copies `length` bytes of a kernel address.
  Address(const sockaddr* address, socklen_t length);

  /// Numeric IPv4 or IPv6 text (without brackets), never looked up. NotFound when `host` is a name.
  static base::Result<Address> from_ip(std::string_view host, std::uint16_t port);
  /// A Unix socket; InvalidInput when the path is empty or does not fit sun_path (107 bytes).
  static base::Result<Address> from_path(std::string_view path);

  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const noexcept { return size_; }
  int family() const noexcept { return storage_.ss_family; }
  bool is_unix() const noexcept { return storage_.ss_family == AF_UNIX; }
  bool is_set() const noexcept { return size_ != 0; }
  /// 0 for Unix sockets.
  std::uint16_t port() const noexcept;
  /// "127.0.0.1:11211", "[::1]:11211" or the path.
  std::string to_string() const;

  friend bool operator==(const Address& left, const Address& right) noexcept;

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

}  // namespace kvferry::net
