#include "config/address_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fmt/format.h>

#include "config/scalar.h"

namespace kvferry::config {
namespace {

constexpr std::int64_t kPortMax = 65535;
constexpr std::int64_t kWeightMax = 2147483647;
constexpr std::uint32_t kModeMax = 0777;

AddressError endpoint_shape_error(std::string_view text) {
  return {"E-addr", fmt::format("must be host:port, [v6]:port or /path, found '{}'", text), true};
}

AddressError server_shape_error(std::string_view text, AddressRules rules, std::string_view part) {
  const std::string_view shape = rules.weight_may_be_missing
                                     ? "host:port[:weight] [name] or /path[:weight] [name]"
                                     : "host:port:weight [name] or /path:weight [name]";
  return {"E-server", fmt::format("server must be {}, found '{}'; {}", shape, text, part)};
}

AddressError parse_port(std::string_view text, bool zero_allowed, std::uint16_t& out) {
  const WholeNumber number = parse_whole(text);
  const std::int64_t least = zero_allowed ? 0 : 1;
  if (number.state != WholeNumber::State::Good || number.value < least || number.value > kPortMax) {
    return {"E-addr", fmt::format("port must be from 1 to {}, found {}", kPortMax, text)};
  }
  out = static_cast<std::uint16_t>(number.value);
  return {};
}

/// Cuts "[v6]" down to "v6"; false for what cannot be a host.
bool take_host(std::string_view text, std::string& out) {
  if (text.starts_with('[')) {
    if (!text.ends_with(']') || text.find(':') == std::string_view::npos) {
      return false;
    }
    text = text.substr(1, text.size() - 2);
  }
  const bool is_bad = text.empty() || text.size() > kHostBytesMax ||
                      std::any_of(text.begin(), text.end(), [](char byte) {
                        return static_cast<unsigned char>(byte) <= 0x20 || byte == 0x7f ||
                               byte == '/' || byte == '[' || byte == ']';
                      });
  out = std::string(text);
  return !is_bad;
}

AddressError parse_mode(std::string_view text, std::optional<std::uint32_t>& out) {
  std::uint32_t mode = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size() ||
      mode > kModeMax) {
    return {"E-addr", fmt::format("mode must be an octal number from 0 to 0777, found {}", text)};
  }
  out = mode;
  return {};
}

AddressError check_path(std::string_view path) {
  if (path.size() < 2 || path.size() > kUnixPathBytesMax) {
    return {"E-addr", fmt::format("path of a Unix socket must have 2 to {} bytes, found {}",
                                  kUnixPathBytesMax, path.size())};
  }
  return {};
}

AddressError parse_unix_endpoint(std::string_view text, Endpoint& out) {
  const std::size_t blank = text.find(' ');
  const std::string_view path = text.substr(0, blank);
  if (AddressError error = check_path(path); error.is_set()) {
    return error;
  }
  out.path = std::string(path);
  if (blank == std::string_view::npos) {
    return {};
  }
  return parse_mode(text.substr(blank + 1), out.mode);
}

AddressError parse_weight(std::string_view text, std::uint32_t& out) {
  const WholeNumber number = parse_whole(text);
  if (number.state != WholeNumber::State::Good || number.value < 1 || number.value > kWeightMax) {
    return {"E-weight", fmt::format("weight must be from 1 to {}, found {}", kWeightMax,
                                    text.empty() ? std::string_view("nothing") : text)};
  }
  out = static_cast<std::uint32_t>(number.value);
  return {};
}

/// The address of a server cut into its parts; has_weight tells how many there were.
struct ServerParts {
  std::string_view host;
  std::string_view port;
  std::string_view weight;
  bool has_weight = false;
};

/// Cuts "host:port:weight" at its last colons, since an IPv6 address has colons of its own.
ServerParts cut_tcp_server(std::string_view address) {
  ServerParts parts;
  const std::size_t last = address.rfind(':');
  if (last == std::string_view::npos) {
    parts.host = address;
    return parts;
  }
  const std::size_t bracket = address.rfind(']');
  const std::size_t host_from = bracket == std::string_view::npos ? 0 : bracket;
  const std::string_view behind = address.substr(host_from);
  const auto colons = std::count(behind.begin(), behind.end(), ':');
  if (colons < 2) {
    parts.host = address.substr(0, last);
    parts.port = address.substr(last + 1);
    return parts;
  }
  const std::size_t middle = address.rfind(':', last - 1);
  parts.host = address.substr(0, middle);
  parts.port = address.substr(middle + 1, last - middle - 1);
  parts.weight = address.substr(last + 1);
  parts.has_weight = true;
  return parts;
}

AddressError parse_tcp_server(std::string_view text, std::string_view address, AddressRules rules,
                              pool::ServerOptions& out, bool& has_weight) {
  const ServerParts parts = cut_tcp_server(address);
  has_weight = parts.has_weight;
  if (parts.port.empty() && !has_weight) {
    return server_shape_error(
        text, rules,
        rules.weight_may_be_missing ? "the port is missing" : "port and weight are missing");
  }
  if (!has_weight && !rules.weight_may_be_missing) {
    return server_shape_error(text, rules, "the weight is missing");
  }
  if (!take_host(parts.host, out.host)) {
    return server_shape_error(text, rules,
                              parts.host.empty() ? "the host is missing" : "the host is not valid");
  }
  if (AddressError error = parse_port(parts.port, false, out.port); error.is_set()) {
    return error;
  }
  return has_weight ? parse_weight(parts.weight, out.weight) : AddressError{};
}

AddressError parse_unix_server(std::string_view text, std::string_view address, AddressRules rules,
                               pool::ServerOptions& out, bool& has_weight) {
  const std::size_t colon = address.find(':');
  has_weight = colon != std::string_view::npos;
  if (!has_weight && !rules.weight_may_be_missing) {
    return server_shape_error(text, rules, "the weight is missing");
  }
  const std::string_view path = address.substr(0, colon);
  if (AddressError error = check_path(path); error.is_set()) {
    return error;
  }
  out.host = std::string(path);
  out.is_unix = true;
  return has_weight ? parse_weight(address.substr(colon + 1), out.weight) : AddressError{};
}

}  // namespace

AddressError parse_endpoint(std::string_view text, AddressRules rules, Endpoint& out) {
  out = Endpoint{};
  if (text.starts_with('/')) {
    return parse_unix_endpoint(text, out);
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || !take_host(text.substr(0, colon), out.host)) {
    return endpoint_shape_error(text);
  }
  return parse_port(text.substr(colon + 1), rules.port_zero_allowed, out.port);
}

AddressError parse_server(std::string_view text, AddressRules rules, pool::ServerOptions& out,
                          bool& has_weight) {
  const std::size_t blank = text.find(' ');
  const std::string_view address = text.substr(0, blank);
  if (blank != std::string_view::npos) {
    const std::string_view name = text.substr(blank + 1);
    const bool is_bad = name.empty() || std::any_of(name.begin(), name.end(), [](char byte) {
                          return static_cast<unsigned char>(byte) <= 0x20 || byte == 0x7f;
                        });
    if (is_bad) {
      return server_shape_error(text, rules, "the name must be one word after one blank");
    }
    out.name = std::string(name);
  }
  return address.starts_with('/') ? parse_unix_server(text, address, rules, out, has_weight)
                                  : parse_tcp_server(text, address, rules, out, has_weight);
}

}  // namespace kvferry::config
