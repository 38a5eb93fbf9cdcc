// Addresses and servers as files write them.
//
// Errors:  AddressError says which code of docs/configuration.md and what is wrong.
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "config/model.h"
#include "pool/options.h"

namespace kvferry::config {

/// Longest path of a Unix socket that the kernel takes.
inline constexpr std::size_t kUnixPathBytesMax = 107;
/// Longest host name that the domain name system has.
inline constexpr std::size_t kHostBytesMax = 253;

struct AddressError {
  std::string code;        // Empty: no error.
  std::string message;     // Without the name of the key.
  bool names_key = false;  // The message continues "'<key>' ".

  bool is_set() const noexcept { return !code.empty(); }
};

/// What a file of some dialect may leave out or add.
struct AddressRules {
  bool port_zero_allowed = false;      // Any free port.
  bool weight_may_be_missing = false;  // Then it is 1.
};

/// "host:port", "[v6]:port", "v6:port", "/path" or "/path 0660".
AddressError parse_endpoint(std::string_view text, AddressRules rules, Endpoint& out);

/// "host:port:weight [name]" or "/path:weight [name]". Labels stay empty. `has_weight` tells
/// whether the weight is written.
AddressError parse_server(std::string_view text, AddressRules rules, pool::ServerOptions& out,
                          bool& has_weight);

}  // namespace kvferry::config
