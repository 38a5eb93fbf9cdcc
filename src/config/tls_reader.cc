#include "config/tls_reader.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>
#include <variant>

#include "config/choices.h"
#include "config/reader.h"
#include "config/secret.h"
#include "net/tls_context.h"

namespace kvferry::config {
namespace {

using net::TlsOptions;
using net::TlsVerify;
using net::TlsVersion;

constexpr std::array kListenerVerify = {TlsVerify::None, TlsVerify::Request, TlsVerify::Require};
constexpr std::array kServerVerify = {TlsVerify::None, TlsVerify::Require, TlsVerify::Full};
constexpr std::array kVersions = {TlsVersion::V12, TlsVersion::V13};
static_assert(kListenerVerify.size() == kListenerVerifyWords.size());
static_assert(kServerVerify.size() == kServerVerifyWords.size());
static_assert(kVersions.size() == kTlsVersionWords.size());

void set_version(TlsOptions& tls, const Value& value, Reader& /*reader*/) {
  tls.min_version = kVersions[value.choice];
}

void set_ciphers(TlsOptions& tls, const Value& value, Reader& /*reader*/) {
  tls.ciphers = value.text;
}

void set_cert(TlsOptions& tls, const Value& value, Reader& /*reader*/) {
  tls.cert = value.text;
}

void set_key(TlsOptions& tls, const Value& value, Reader& /*reader*/) {
  tls.key = value.text;
}

void set_ca(TlsOptions& tls, const Value& value, Reader& /*reader*/) {
  tls.ca = value.text;
}

constexpr KeyInfo kMinVersion{.name = "min_version",
                              .type = ValueType::Enum,
                              .default_text = "1.2",
                              .doc = "Oldest version of TLS that is spoken.",
                              .choices = kTlsVersionWords};
constexpr KeyInfo kCiphers{
    .name = "ciphers",
    .type = ValueType::Text,
    .doc =
        "OpenSSL's list of ciphers for TLS 1.2, such as `ECDHE+AESGCM`. Without it OpenSSL and "
        "the system decide. TLS 1.3 has no ciphers to choose from."};

constexpr Key<TlsOptions> kListenerKeys[] = {
    {{.name = "cert",
      .type = ValueType::Text,
      .doc = "PEM file with the certificate, and behind it those that lead to its authority. "
             "Required."},
     set_cert},
    {{.name = "key",
      .type = ValueType::Text,
      .doc = "PEM file with its private key, without a password; may be the same file. Required."},
     set_key},
    {{.name = "ca",
      .type = ValueType::Text,
      .doc = "PEM file with the authorities of clients' certificates. Required unless `verify` is "
             "none."},
     set_ca},
    {{.name = "verify",
      .type = ValueType::Enum,
      .default_text = "none",
      .doc =
          "none: clients are not asked for a certificate. optional: one that a client sends must "
          "be good. required: clients need one.",
      .choices = kListenerVerifyWords},
     [](TlsOptions& tls, const Value& value, Reader&) {
       tls.verify = kListenerVerify[value.choice];
     }},
    {kMinVersion, set_version},
    {kCiphers, set_ciphers},
};

constexpr Key<TlsOptions> kServerKeys[] = {
    {{.name = "ca",
      .type = ValueType::Text,
      .default_text = "those of the system",
      .doc = "PEM file with the authorities that servers' certificates must come from."},
     set_ca},
    {{.name = "verify",
      .type = ValueType::Enum,
      .default_text = "full",
      .doc = "full: the certificate must come from an authority and be for the server's name or "
             "address. ca: the name does not matter. none: anybody may pose as the server.",
      .choices = kServerVerifyWords},
     [](TlsOptions& tls, const Value& value, Reader&) {
       tls.verify = kServerVerify[value.choice];
     }},
    {{.name = "sni",
      .type = ValueType::Text,
      .default_text = "the host of the server",
      .doc = "Name that is asked for and, with `verify: full`, must be in the certificate. Needed "
             "for servers on Unix sockets."},
     [](TlsOptions& tls, const Value& value, Reader&) { tls.sni = value.text; }},
    {{.name = "cert",
      .type = ValueType::Text,
      .doc = "PEM file with a certificate of our own, for servers that ask for one."},
     set_cert},
    {{.name = "key",
      .type = ValueType::Text,
      .doc = "PEM file with its private key, without a password. `cert` and `key` come together."},
     set_key},
    {kMinVersion, set_version},
    {kCiphers, set_ciphers},
};

void require(const Node& mapping, bool is_there, std::string_view key, std::string_view why,
             Reader& reader) {
  if (!is_there) {
    reader.fail(mapping, "E-missing", key, fmt::format("'{}' is missing in 'tls'{}", key, why));
  }
}

std::string_view key_of(net::TlsField field) {
  switch (field) {
    case net::TlsField::Cert:
      return "cert";
    case net::TlsField::Key:
      return "key";
    case net::TlsField::Ca:
      return "ca";
    case net::TlsField::Ciphers:
      return "ciphers";
    case net::TlsField::MinVersion:
      return "min_version";
    case net::TlsField::Other:
      break;
  }
  return "tls";
}

void add(const TlsUse& use, std::string_view key, Severity severity, std::string_view code,
         std::string message, ProblemList& problems) {
  const auto place = std::find_if(use.places.begin(), use.places.end(),
                                  [&](const Problem& problem) { return problem.key == key; });
  Problem problem = place == use.places.end() ? use.places.front() : *place;
  problem.severity = severity;
  problem.code = code;
  problem.message = std::move(message);
  problems.add(std::move(problem));
}

}  // namespace

std::span<const Key<TlsOptions>> listener_tls_keys() {
  return kListenerKeys;
}

std::span<const Key<TlsOptions>> server_tls_keys() {
  return kServerKeys;
}

void read_tls(const Value& value, net::TlsRole role, Reader& reader,
              std::optional<TlsOptions>& out) {
  const bool is_server = role == net::TlsRole::Server;
  TlsOptions tls;
  tls.role = role;
  tls.verify = is_server ? TlsVerify::None : TlsVerify::Full;
  const Node& mapping = *value.node;
  const std::size_t errors_before = reader.error_count();
  reader.read_mapping(mapping, is_server ? listener_tls_keys() : server_tls_keys(),
                      {.noun = "'tls'", .path = {}, .reserved = {}, .is_process = false}, tls);
  if (reader.error_count() != errors_before) {
    return;
  }
  if (is_server || !tls.key.empty()) {
    require(*value.key_node, !tls.cert.empty(), "cert", "", reader);
  }
  if (!tls.cert.empty()) {
    require(*value.key_node, !tls.key.empty(), "key",
            "; when it stands in the file of 'cert', name that file", reader);
  }
  if (is_server && tls.verify != TlsVerify::None) {
    require(*value.key_node, !tls.ca.empty(), "ca", ", without which no client could be verified",
            reader);
  }
  TlsUse use{.options = tls, .places = {reader.place_of(*value.key_node, "tls")}};
  for (const Node::Entry& entry : mapping.entries) {
    use.places.push_back(reader.place_of(*entry.value, entry.key->text));
  }
  if (reader.error_count() == errors_before) {
    reader.remember_tls(std::move(use));
  }
  out = std::move(tls);
}

std::string_view verify_word(const TlsOptions& options) {
  const bool is_server = options.role == net::TlsRole::Server;
  const auto& values = is_server ? kListenerVerify : kServerVerify;
  const auto& words = is_server ? kListenerVerifyWords : kServerVerifyWords;
  const auto place = std::find(values.begin(), values.end(), options.verify);
  return place == values.end() ? words.back()
                               : words[static_cast<std::size_t>(place - values.begin())];
}

void check_tls_files(const TlsUse& use, ProblemList& problems) {
  const auto opened = net::TlsContext::open(use.options, "tls", nullptr);
  if (const auto* problem = std::get_if<net::TlsProblem>(&opened)) {
    add(use, key_of(problem->field), Severity::Error, problem->is_unreadable ? "E-file" : "E-tls",
        problem->text, problems);
    return;
  }
  const std::string warning = std::get<net::TlsContextPtr>(opened)->validity_warning();
  if (!warning.empty()) {
    add(use, "cert", Severity::Warning, "W41", warning, problems);
  }
  if (!use.options.key.empty() && is_exposed(Secret{Secret::Kind::File, use.options.key})) {
    add(use, "key", Severity::Warning, "W40",
        fmt::format("others may read the private key in '{}'", use.options.key), problems);
  }
}

}  // namespace kvferry::config
