// Credentials: who may use a listener that asks clients for a name and a password.
//
// Source:  memcached protocol.txt, "Authentication"; the file has lines of user:password.
// Threads: immutable.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvferry::front {

/// Longest "user password" of a client.
inline constexpr std::size_t kAuthenticationBytesMax = 1024;

class Credentials {
 public:
  /// Nothing when a line has no colon, or when there is no line at all.
  static std::optional<Credentials> parse(std::string_view text);

  /// One user only.
  static Credentials of(std::string_view user, std::string_view password);

  /// Whether `value` ("user password") is one of them. Takes the same time wherever they differ.
  bool allow(std::string_view value) const noexcept;

 private:
  std::vector<std::string> values_;
};

}  // namespace kvferry::front
