#include "app/memcached_tls.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace kvferry::app {
namespace {

using net::TlsKeyFormat;
using net::TlsVerify;
using net::TlsVersion;

/// By memcached's numbers.
constexpr std::array kVerifyModes = {TlsVerify::None, TlsVerify::Request, TlsVerify::Require,
                                     TlsVerify::Once};
constexpr std::array<std::string_view, 4> kVersions = {"tlsv1.0", "tlsv1.1", "tlsv1.2", "tlsv1.3"};
/// OpenSSL's numbers of the forms of keys, which memcached takes, and the words of its help.
constexpr std::array<std::string_view, 2> kKeyFormats = {"PEM", "DER"};
constexpr std::uint32_t kBufferKilobytesMax = 1024 * 1024;

std::optional<std::uint32_t> read_number(std::string_view text) {
  std::uint32_t number = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number);
  return error == std::errc{} && stop == end ? std::optional(number) : std::nullopt;
}

/// The place of `text` in `words`, or its number less `first`.
template <std::size_t Size>
std::optional<std::size_t> find(const std::array<std::string_view, Size>& words,
                                std::string_view text, std::uint32_t first) {
  const auto word = std::find(words.begin(), words.end(), text);
  if (word != words.end()) {
    return static_cast<std::size_t>(word - words.begin());
  }
  const auto number = read_number(text);
  const bool is_one = number && *number >= first && *number - first < Size;
  return is_one ? std::optional<std::size_t>(*number - first) : std::nullopt;
}

void line(std::string& out, std::string_view name, std::string_view value) {
  out.append("STAT ").append(name).append(" ").append(value).append("\r\n");
}

std::string_view yes_no(bool flag) {
  return flag ? "yes" : "no";
}

std::string_view or_null(const std::string& text, std::string_view null) {
  return text.empty() ? null : std::string_view(text);
}

std::size_t verify_number(TlsVerify verify) {
  const auto* const mode = std::find(kVerifyModes.begin(), kVerifyModes.end(), verify);
  return static_cast<std::size_t>(mode - kVerifyModes.begin());
}

}  // namespace

std::string_view take_tls_suboption(std::string_view name, std::string_view value,
                                    MemcachedOptions& options) {
  net::TlsOptions& tls = options.tls;
  if (name == "ssl_chain_cert") {
    tls.cert = value;
  } else if (name == "ssl_key") {
    tls.key = value;
  } else if (name == "ssl_ca_cert") {
    tls.ca = value;
  } else if (name == "ssl_ciphers") {
    tls.ciphers = value;
  } else if (name.ends_with("ssl_session_cache")) {
    tls.has_session_cache = !name.starts_with("no_");
  } else if (name.ends_with("ssl_kernel_tls")) {
    options.wants_kernel_tls = !name.starts_with("no_");
  } else if (name == "ssl_verify_mode") {
    const auto mode = read_number(value);
    if (!mode || *mode >= kVerifyModes.size()) {
      return "0 (none), 1 (request), 2 (require) or 3 (once)";
    }
    tls.verify = kVerifyModes[*mode];
  } else if (name == "ssl_keyformat") {
    const auto format = find(kKeyFormats, value, 1);
    if (!format) {
      return "1 (PEM) or 2 (DER)";
    }
    tls.key_format = static_cast<TlsKeyFormat>(*format);
  } else if (name == "ssl_min_version") {
    const auto version = find(kVersions, value, 0);
    if (!version) {
      return "0 (tlsv1.0), 1 (tlsv1.1), 2 (tlsv1.2) or 3 (tlsv1.3)";
    }
    tls.min_version = static_cast<TlsVersion>(*version);
  } else {
    const auto kilobytes = read_number(value);
    if (!kilobytes || *kilobytes > kBufferKilobytesMax) {
      return "kilobytes, up to 1048576";
    }
    options.tls_buffer_kilobytes = *kilobytes;
  }
  return {};
}

void append_tls_settings(const MemcachedOptions& options, std::string& out) {
  const net::TlsOptions& tls = options.tls;
  line(out, "ssl_enabled", yes_no(options.has_tls));
  line(out, "ssl_chain_cert", or_null(tls.cert, "(null)"));
  line(out, "ssl_key", or_null(tls.key, "(null)"));
  line(out, "ssl_verify_mode", std::to_string(verify_number(tls.verify)));
  line(out, "ssl_keyformat", std::to_string(static_cast<int>(tls.key_format) + 1));
  line(out, "ssl_ciphers", or_null(tls.ciphers, "NULL"));
  line(out, "ssl_ca_cert", or_null(tls.ca, "NULL"));
  line(out, "ssl_wbuf_size", std::to_string(std::uint64_t{options.tls_buffer_kilobytes} * 1024));
  line(out, "ssl_session_cache", yes_no(tls.has_session_cache));
  line(out, "ssl_kernel_tls", yes_no(options.wants_kernel_tls));
  line(out, "ssl_min_version", kVersions[static_cast<std::size_t>(tls.min_version)]);
}

}  // namespace kvferry::app
