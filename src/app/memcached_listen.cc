#include "app/memcached_listen.h"

#include <array>
#include <charconv>
#include <optional>

namespace kvferry::app {
namespace {

/// Names of protocols in front of an address. Clients of every listener of ours choose by their
/// first byte.
constexpr std::string_view kNoTls = "notls";
constexpr std::array<std::string_view, 5> kProtocols = {"ascii", "binary", "negotiating", "proxy",
                                                        kNoTls};

void skip_protocols(std::string_view& text, bool& is_clear) {
  for (bool is_found = true; is_found;) {
    is_found = false;
    for (const std::string_view name : kProtocols) {
      if (!text.starts_with(name)) {
        continue;
      }
      std::string_view rest = text.substr(name.size());
      if (rest.starts_with("x:")) {
        rest.remove_prefix(1);
      }
      if (rest.starts_with(':')) {
        is_clear = is_clear || name == kNoTls;
        text = rest.substr(1);
        is_found = true;
      }
    }
  }
}

/// Takes "tag[NAME]:" or "tag_NAME_:" off the front. False: begun, but not a tag.
bool take_tag(std::string_view& text, std::string& tag) {
  const bool is_bracket = text.starts_with("tag[");
  if (!is_bracket && !text.starts_with("tag_")) {
    return true;
  }
  const std::string_view rest = text.substr(4);
  const std::size_t end = rest.find(is_bracket ? "]:" : "_:");
  if (end == std::string_view::npos || end == 0 || end > kTagBytesMax) {
    return false;
  }
  tag = rest.substr(0, end);
  text = rest.substr(end + 2);
  return true;
}

std::optional<std::uint16_t> read_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || code != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return port;
}

/// Splits "host", "host:port", "[v6]", "[v6]:port" and "v6".
bool split_host(std::string_view text, config::Endpoint& endpoint, bool& has_port) {
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) {
      return false;
    }
    endpoint.host = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (!port.empty() && port.front() != ':') {
      return false;
    }
  } else if (const std::size_t colon = text.find(':');
             colon != std::string_view::npos && colon == text.rfind(':')) {
    endpoint.host = text.substr(0, colon);
    port = text.substr(colon);
  } else {
    endpoint.host = text;
  }
  if (endpoint.host == "*") {
    endpoint.host.clear();
  }
  has_port = !port.empty();
  if (!has_port) {
    return true;
  }
  const auto number = read_port(port.substr(1));
  endpoint.port = number.value_or(0);
  return number.has_value();
}

bool parse_one(std::string_view text, config::ListenerOptions& listener, bool& has_port,
               bool& is_clear) {
  skip_protocols(text, is_clear);
  if (!take_tag(text, listener.tag)) {
    return false;
  }
  skip_protocols(text, is_clear);
  if (text.starts_with("unix:")) {
    listener.endpoint.path = text.substr(5);
    has_port = true;
    return !listener.endpoint.path.empty();
  }
  return !text.empty() && split_host(text, listener.endpoint, has_port);
}

}  // namespace

bool parse_memcached_listen(std::string_view text, std::vector<config::ListenerOptions>& out,
                            ListenMarks& marks, std::string& error) {
  for (bool is_last = false; !is_last;) {
    const std::size_t comma = text.find(',');
    is_last = comma == std::string_view::npos;
    config::ListenerOptions listener;
    bool has_port = false;
    bool is_clear = false;
    const std::string_view one = text.substr(0, comma);
    if (!parse_one(one, listener, has_port, is_clear)) {
      error = "-l must be [tag_NAME_:]host[:port] with a name of 1 to 8 characters, found '" +
              std::string(one) + "'";
      return false;
    }
    if (!has_port) {
      marks.portless.push_back(out.size());
    }
    if (is_clear) {
      marks.clear.push_back(out.size());
    }
    out.push_back(std::move(listener));
    text.remove_prefix(is_last ? text.size() : comma + 1);
  }
  return true;
}

}  // namespace kvferry::app
