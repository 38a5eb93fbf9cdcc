#include "app/memcached_command_line.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "app/memcached_help.h"
#include "app/memcached_listen.h"
#include "app/memcached_option_table.h"
#include "app/memcached_tls.h"
#include "app/version.h"

namespace kvferry::app {
namespace {

constexpr std::uint64_t kMegabyte = std::uint64_t{1} << 20;
constexpr std::uint64_t kMegabytesMax = std::uint64_t{1} << 24;
constexpr std::uint64_t kItemBytesMin = 1024;
constexpr std::uint64_t kItemBytesMax = std::uint64_t{1} << 30;
constexpr std::uint32_t kWorkersMax = 256;
constexpr std::uint32_t kVerbosityMax = 3;
constexpr std::uint32_t kNumberMax = 1U << 30;

template <typename T>
bool read_whole(std::string_view text, T& value, int base = 10) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return !text.empty() && code == std::errc{} && end == text.data() + text.size();
}

/// "64", "64m" and "2g" are what they say in units of `unit`, "k", "m" and "g" in their own.
std::optional<std::uint64_t> read_size(std::string_view text, std::uint64_t unit) {
  if (text.empty()) {
    return std::nullopt;
  }
  const std::string_view suffixes = "kmg";
  const std::size_t power = suffixes.find(static_cast<char>(text.back() | 0x20));
  if (power != std::string_view::npos) {
    unit = std::uint64_t{1} << (10 * (power + 1));
    text.remove_suffix(1);
  }
  std::uint64_t number = 0;
  if (!read_whole(text, number) || number > kMegabytesMax * kMegabyte / unit) {
    return std::nullopt;
  }
  return number * unit;
}

/// Reads option by option; what depends on others is put together at the end.
class Reader {
 public:
  MemcachedCommandLine read(std::span<const std::string> arguments) {
    for (std::size_t at = 0; at < arguments.size(); ++at) {
      const std::string_view word = arguments[at];
      if (word == "--") {
        break;
      }
      const bool is_long = word.starts_with("--");
      if (is_long ? !read_long(arguments, at) : !read_short(arguments, at)) {
        return std::move(line_);
      }
    }
    finish();
    return std::move(line_);
  }

 private:
  bool read_long(std::span<const std::string> arguments, std::size_t& at);
  bool read_short(std::span<const std::string> arguments, std::size_t& at);
  /// False: reading ends, line_ says why.
  bool take(const MemcachedOption& option, std::string_view value);
  bool take_listening(char letter, std::string_view value);
  bool take_switch(char letter);
  bool take_limit(char letter, std::string_view value);
  bool take_suboptions(std::string_view text);
  bool take_suboption(std::string_view name, std::string_view value);
  bool take_lua_files(std::string_view text);
  void finish();
  void place_tls();
  void place_listeners();

  bool stop(MemcachedCommandLine::Action action, std::string text) {
    line_.action = action;
    line_.text = std::move(text);
    return false;
  }
  bool refuse(std::string_view text) {
    return stop(MemcachedCommandLine::Action::Refuse, "kvferry: " + std::string(text) + "\n");
  }
  bool refuse_value(std::string_view name, std::string_view allowed, std::string_view value) {
    return refuse(std::string(name) + " must be " + std::string(allowed) + ", found '" +
                  std::string(value) + "'");
  }
  bool take_number(std::string_view name, std::string_view text, std::uint32_t min,
                   std::uint32_t max, std::uint32_t& out) {
    if (read_whole(text, out) && out >= min && out <= max) {
      return true;
    }
    return refuse_value(name, "a number from " + std::to_string(min) + " to " + std::to_string(max),
                        text);
  }

  MemcachedCommandLine line_;
  MemcachedOptions& made_ = line_.options;
  std::uint16_t port_ = kMemcachedPort;
  bool has_tcp_ = true;
  bool is_port_given_ = false;
  std::uint32_t backlog_ = 1024;
  std::string unix_path_;
  std::uint32_t unix_mode_ = 0700;
  ListenMarks marks_;
};

bool Reader::read_long(std::span<const std::string> arguments, std::size_t& at) {
  const std::string_view word = std::string_view(arguments[at]).substr(2);
  const std::size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  // As getopt_long does it: a beginning is enough where it fits one option only.
  const MemcachedOption* found = nullptr;
  for (const MemcachedOption& option : memcached_options()) {
    if (option.name == name) {
      found = &option;
      break;
    }
    if (!name.empty() && option.name.starts_with(name)) {
      if (found != nullptr && found->letter != option.letter) {
        return refuse("option '--" + std::string(name) + "' is ambiguous. " +
                      memcached_options_allowed());
      }
      found = &option;
    }
  }
  if (found == nullptr) {
    return refuse("unknown option '--" + std::string(name) + "'. " + memcached_options_allowed());
  }
  if (equals != std::string_view::npos) {
    return found->takes_value ? take(*found, word.substr(equals + 1))
                              : refuse("option '--" + std::string(name) + "' takes no value");
  }
  if (!found->takes_value) {
    return take(*found, {});
  }
  if (at + 1 == arguments.size()) {
    return refuse("option '--" + std::string(name) + "' needs a value");
  }
  return take(*found, arguments[++at]);
}

bool Reader::read_short(std::span<const std::string> arguments, std::size_t& at) {
  const std::string_view word = arguments[at];
  if (word.size() < 2 || word.front() != '-') {
    return true;  // No option.
  }
  for (std::size_t i = 1; i < word.size(); ++i) {
    const MemcachedOption* const found = find_memcached_option(word[i]);
    if (found == nullptr) {
      return refuse("unknown option '-" + std::string(1, word[i]) + "'. " +
                    memcached_options_allowed());
    }
    if (found->takes_value) {
      if (i + 1 < word.size()) {
        return take(*found, word.substr(i + 1));
      }
      if (at + 1 == arguments.size()) {
        return refuse("option '-" + std::string(1, word[i]) + "' needs a value");
      }
      return take(*found, arguments[++at]);
    }
    if (!take(*found, {})) {
      return false;
    }
  }
  return true;
}

bool Reader::take(const MemcachedOption& option, std::string_view value) {
  switch (option.letter) {
    case 'p':
    case 'U':
    case 's':
    case 'a':
    case 'l':
    case 'b':
    case 'B':
      return take_listening(option.letter, value);
    case 'm':
    case 'I':
    case 'c':
    case 't':
    case 'R':
    case 'D':
      return take_limit(option.letter, value);
    case 'u':
      made_.user = value;
      return true;
    case 'P':
      made_.pid_file = value;
      return true;
    case 'Y':
      made_.auth_file = value;
      return !value.empty() || refuse_value("-Y", "the name of a file", value);
    case 'e':
      made_.snapshot_file = value;
      return !value.empty() || refuse_value("-e", "the name of a file", value);
    case 'o':
      return take_suboptions(value);
    case 'k':
    case 'L':
    case 'r':
    case 'f':
    case 'n':
    case 'N':
      made_.ignored.push_back(std::string("-") + option.letter);
      return true;
    default:
      return take_switch(option.letter);
  }
}

bool Reader::take_listening(char letter, std::string_view value) {
  switch (letter) {
    case 'p':
      is_port_given_ = true;
      has_tcp_ = value != "0";
      if (value == "-1") {
        port_ = 0;  // Any free one.
        return true;
      }
      return read_whole(value, port_) || refuse_value("-p", "a port", value);
    case 'U':
      return value == "0" || refuse("UDP is not served; leave -U out, or say -U 0");
    case 's':
      unix_path_ = value;
      return !value.empty() || refuse_value("-s", "a path", value);
    case 'a':
      return (read_whole(value, unix_mode_, 8) && unix_mode_ <= 0777) ||
             refuse_value("-a", "an access mode in octal, up to 777", value);
    case 'b':
      return take_number("-b", value, 1, kNumberMax, backlog_);
    case 'B':
      made_.protocol = value == "binary"  ? ClientProtocol::Binary
                       : value == "ascii" ? ClientProtocol::Ascii
                                          : ClientProtocol::Auto;
      return value == "auto" || made_.protocol != ClientProtocol::Auto ||
             refuse_value("-B", "auto, ascii or binary", value);
    default: {
      std::string error;
      return parse_memcached_listen(value, made_.listeners, marks_, error) || refuse(error);
    }
  }
}

bool Reader::take_switch(char letter) {
  using Action = MemcachedCommandLine::Action;
  switch (letter) {
    case 'A':
      made_.allows_shutdown = true;
      return true;
    case 'd':
      made_.is_daemon = true;
      return true;
    case 'M':
      made_.is_evicting = false;
      return true;
    case 'v':
      made_.verbosity = std::min(made_.verbosity + 1, kVerbosityMax);
      return true;
    case 'C':
      made_.has_cas = false;
      return true;
    case 'F':
      made_.allows_flush = false;
      return true;
    case 'X':
      made_.allows_dump = false;
      return true;
    case 'W':
      made_.allows_watch = false;
      return true;
    case 'S':
      return refuse(
          "SASL (-S) needs files of its own; say -Y FILE with lines of user:password, "
          "which holds for binary clients (SASL PLAIN) too");
    case 'Z':
      made_.has_tls = true;
      return true;
    case 'h':
      return stop(Action::Print, std::string(memcached_help()));
    case 'i':
      return stop(Action::Print, "kvferry is under the licence in the file LICENSE beside it.\n");
    default:
      return stop(Action::Print, "memcached " + std::string(kProtocolVersion) + " (kvferry " +
                                     std::string(kVersion) + ")\n");
  }
}

bool Reader::take_limit(char letter, std::string_view value) {
  switch (letter) {
    case 'm': {
      const auto size = read_size(value, kMegabyte);
      made_.memory_bytes = size.value_or(0);
      return made_.memory_bytes > 0 || refuse_value("-m", "megabytes, 1 or more", value);
    }
    case 'I': {
      const auto size = read_size(value, 1);
      made_.item_bytes_max = size.value_or(0);
      return (made_.item_bytes_max >= kItemBytesMin && made_.item_bytes_max <= kItemBytesMax) ||
             refuse_value("-I", "a size from 1k to 1024m", value);
    }
    case 'c':
      return take_number("-c", value, 1, kNumberMax, made_.clients_max);
    case 't':
      return take_number("-t", value, 1, kWorkersMax, made_.workers);
    case 'R':
      return take_number("-R", value, 1, kNumberMax, made_.requests_per_turn);
    default:
      if (value.size() != 1) {
        return refuse_value("-D", "one character", value);
      }
      made_.prefix_delimiter = value.front();
      made_.counts_prefixes = true;
      return true;
  }
}

bool Reader::take_suboptions(std::string_view text) {
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    if (one.empty()) {
      continue;
    }
    const std::size_t equals = one.find('=');
    const std::string_view name = one.substr(0, equals);
    const bool has_value = equals != std::string_view::npos;
    const MemcachedSuboption* const known = find_memcached_suboption(name);
    if (known == nullptr) {
      return refuse("unknown suboption '" + std::string(name) + "' of -o. " +
                    memcached_suboptions_allowed());
    }
    if (known->value == MemcachedSuboption::Value::Needed &&
        (!has_value || equals + 1 == one.size())) {
      return refuse("-o " + std::string(name) + " needs a value");
    }
    if (!take_suboption(name, has_value ? one.substr(equals + 1) : std::string_view{})) {
      return false;
    }
  }
  return true;
}

bool Reader::take_suboption(std::string_view name, std::string_view value) {
  if (name == "proxy_config") {
    return take_lua_files(value);
  }
  if (name == "proxy_arg") {
    made_.proxy_arg = value;
    return true;
  }
  if (name == "proxy_uring") {
    made_.io = config::IoEngine::Uring;
    return true;
  }
  if (name == "io") {
    const std::optional<config::IoEngine> engine = config::parse_io_engine(value);
    made_.io = engine.value_or(made_.io);
    return engine.has_value() || refuse_value("-o io", "auto, uring or epoll", value);
  }
  if (name == "proxy_memprofile") {
    made_.traces_lua_memory = true;
    return true;
  }
  if (name == "idle_timeout") {
    return take_number("-o idle_timeout", value, 0, kNumberMax, made_.idle_timeout_seconds);
  }
  if (name.starts_with("ssl_") || name.starts_with("no_ssl_")) {
    const std::string_view allowed = take_tls_suboption(name, value, made_);
    return allowed.empty() || refuse_value("-o " + std::string(name), allowed, value);
  }
  made_.ignored.push_back("-o " + std::string(name));
  return true;
}

bool Reader::take_lua_files(std::string_view text) {
  if (!made_.lua_files.empty()) {
    return refuse("-o proxy_config is there twice; put colons between several files");
  }
  while (!text.empty()) {
    const std::string_view file = text.substr(0, text.find(':'));
    text.remove_prefix(std::min(text.size(), file.size() + 1));
    if (!file.empty()) {
      made_.lua_files.emplace_back(file);
    }
  }
  return !made_.lua_files.empty() || refuse("-o proxy_config names no file");
}

/// -Z is about TCP, Unix sockets stay in clear.
void Reader::place_tls() {
  if (!made_.has_tls) {
    return;
  }
  for (std::size_t i = 0; i < made_.listeners.size(); ++i) {
    const bool is_clear =
        std::find(marks_.clear.begin(), marks_.clear.end(), i) != marks_.clear.end();
    if (!is_clear && !made_.listeners[i].endpoint.is_unix()) {
      made_.listeners[i].tls = made_.tls;
    }
  }
}

void Reader::place_listeners() {
  std::vector<config::ListenerOptions>& listeners = made_.listeners;
  for (const std::size_t number : marks_.portless) {
    listeners[number].endpoint.port = port_;
  }
  place_tls();
  const std::vector<std::size_t>& portless = marks_.portless;
  if (!has_tcp_) {
    // -p 0 is about listeners that name no port, those of -l included.
    for (std::size_t i = portless.size(); i > 0; --i) {
      listeners.erase(listeners.begin() + static_cast<std::ptrdiff_t>(portless[i - 1]));
    }
  }
  if (!unix_path_.empty()) {
    config::ListenerOptions listener;
    listener.endpoint.path = unix_path_;
    listeners.push_back(std::move(listener));
  }
  if (listeners.empty() || (listeners.size() == 1 && !unix_path_.empty() && is_port_given_)) {
    config::ListenerOptions everywhere;
    everywhere.endpoint.port = port_;
    if (made_.has_tls) {
      everywhere.tls = made_.tls;
    }
    if (has_tcp_) {
      listeners.push_back(std::move(everywhere));
    }
  }
  for (config::ListenerOptions& listener : listeners) {
    listener.backlog = backlog_;
    if (listener.endpoint.is_unix()) {
      listener.endpoint.mode = unix_mode_;
    }
  }
}

void Reader::finish() {
  if (made_.protocol == ClientProtocol::Binary && !made_.lua_files.empty()) {
    refuse("-B binary and -o proxy_config do not go together");
    return;
  }
  if (made_.item_bytes_max > made_.memory_bytes / 2) {
    refuse("-I may be at most half of -m");
    return;
  }
  if (made_.has_tls && made_.tls.cert.empty()) {
    refuse("-Z needs a certificate: -o ssl_chain_cert=FILE,ssl_key=FILE");
    return;
  }
  place_listeners();
  if (made_.listeners.empty()) {
    refuse("there is nowhere to listen: -p 0 needs -s or -l with a port");
  }
}

}  // namespace

MemcachedCommandLine parse_memcached_command_line(std::span<const std::string> arguments) {
  return Reader().read(arguments);
}

}  // namespace kvferry::app
