#include "net/tls_context.h"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace kvferry::net {
namespace {

/// Of our servers, so that a session of another kind of server is never taken for one of ours.
constexpr std::string_view kSessionIdContext = "kvferry";

/// What OpenSSL has to say about its last failure; the first of its errors is the nearest to it.
std::string reason_text() {
  const unsigned long code = ERR_peek_error();
  const char* const text = ERR_reason_error_string(code);
  ERR_clear_error();
  return text == nullptr ? "unknown error" : text;
}

std::optional<TlsProblem> check_readable(TlsField field, const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return TlsProblem{field, "cannot read '" + path + "': " + std::strerror(errno), true};
  }
  ::close(fd);
  return std::nullopt;
}

/// In place of OpenSSL's, which would ask at the terminal.
int refuse_password(char* /*buffer*/, int /*size*/, int /*for_writing*/, void* /*user*/) {
  return 0;
}

int version_number(TlsVersion version) {
  switch (version) {
    case TlsVersion::V10:
      return TLS1_VERSION;
    case TlsVersion::V11:
      return TLS1_1_VERSION;
    case TlsVersion::V12:
      return TLS1_2_VERSION;
    case TlsVersion::V13:
      break;
  }
  return TLS1_3_VERSION;
}

base::WallTime wall_time(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) {
    return {};
  }
  return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

/// "2026-01-02".
std::string date_text(base::WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) {
    return {};  // A year that no number of type int holds.
  }
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts)};
}

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

}  // namespace

std::string_view tls_failure_name(TlsFailureKind kind) noexcept {
  switch (kind) {
    case TlsFailureKind::Verify:
      return "verify";
    case TlsFailureKind::Alert:
      return "alert";
    case TlsFailureKind::Version:
      return "version";
    case TlsFailureKind::NotTls:
      return "not_tls";
    case TlsFailureKind::Timeout:
      return "timeout";
    case TlsFailureKind::Closed:
      return "closed";
    case TlsFailureKind::Protocol:
      break;
  }
  return "protocol";
}

std::variant<TlsContextPtr, TlsProblem> TlsContext::open(const TlsOptions& options,
                                                         std::string label, TlsMonitor* monitor) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::shared_ptr<TlsContext> made(new TlsContext(options, std::move(label), monitor));
  if (auto problem = made->fill()) {
    ERR_clear_error();
    return *std::move(problem);
  }
  return TlsContextPtr(std::move(made));
}

TlsContextPtr TlsContext::for_place(std::string label, TlsMonitor* monitor) const {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::shared_ptr<TlsContext> made(new TlsContext(options_, std::move(label), monitor));
  SSL_CTX_up_ref(context_);
  made->context_ = context_;
  made->not_before_ = not_before_;
  made->not_after_ = not_after_;
  return made;
}

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
}

TlsContext::Outcome TlsContext::fill() {
  const bool is_server = options_.role == TlsRole::Server;
  ERR_clear_error();
  context_ = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
  if (context_ == nullptr) {
    return TlsProblem{TlsField::Other, "OpenSSL cannot begin: " + reason_text()};
  }
  SSL_CTX_set_default_passwd_cb(context_, &refuse_password);
  SSL_CTX_set_options(context_, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // Idle connections hold no record buffers. Output lies in chains, which move.
  SSL_CTX_set_mode(context_, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_set_min_proto_version(context_, version_number(options_.min_version)) != 1) {
    return TlsProblem{TlsField::MinVersion, "this version of TLS is not available"};
  }
  for (const auto step : {&TlsContext::load_certificate, &TlsContext::load_key,
                          &TlsContext::load_authorities, &TlsContext::set_ciphers}) {
    if (auto problem = (this->*step)()) {
      return problem;
    }
  }
  set_verify();
  if (is_server) {
    SSL_CTX_set_session_cache_mode(
        context_, options_.has_session_cache ? SSL_SESS_CACHE_SERVER : SSL_SESS_CACHE_OFF);
    SSL_CTX_set_session_id_context(context_,
                                   reinterpret_cast<const unsigned char*>(kSessionIdContext.data()),
                                   static_cast<unsigned>(kSessionIdContext.size()));
    if (!options_.has_session_cache) {
      SSL_CTX_set_options(context_, SSL_OP_NO_TICKET);
      SSL_CTX_set_num_tickets(context_, 0);
    }
  }
  return std::nullopt;
}

TlsContext::Outcome TlsContext::load_certificate() {
  if (options_.cert.empty()) {
    return options_.role == TlsRole::Server
               ? Outcome(TlsProblem{TlsField::Cert, "a server needs a certificate"})
               : std::nullopt;
  }
  if (auto problem = check_readable(TlsField::Cert, options_.cert)) {
    return problem;
  }
  if (SSL_CTX_use_certificate_chain_file(context_, options_.cert.c_str()) != 1) {
    return TlsProblem{TlsField::Cert, "cannot use the certificate in '" + options_.cert +
                                          "', which must be in PEM form: " + reason_text()};
  }
  note_validity();
  return std::nullopt;
}

void TlsContext::note_validity() {
  const X509* const certificate = SSL_CTX_get0_certificate(context_);
  not_before_ = wall_time(X509_get0_notBefore(certificate));
  not_after_ = wall_time(X509_get0_notAfter(certificate));
}

std::string TlsContext::validity_warning() const {
  const base::WallTime now = std::chrono::system_clock::now();
  const std::string certificate = "the certificate in '" + options_.cert + "' ";
  if (options_.cert.empty() || (now >= not_before_ && now + kTlsExpiryNotice < not_after_)) {
    return {};
  }
  if (now < not_before_) {
    return certificate + "is not valid before " + date_text(not_before_);
  }
  return certificate + (now < not_after_ ? "ends to be valid on " : "has expired on ") +
         date_text(not_after_);
}

TlsContext::Outcome TlsContext::load_key() {
  if (options_.cert.empty()) {
    return options_.key.empty()
               ? std::nullopt
               : Outcome(TlsProblem{TlsField::Key, "a key is of use with its certificate only"});
  }
  const std::string& path = options_.key.empty() ? options_.cert : options_.key;
  if (auto problem = check_readable(TlsField::Key, path)) {
    return problem;
  }
  const int format =
      options_.key_format == TlsKeyFormat::Der ? SSL_FILETYPE_ASN1 : SSL_FILETYPE_PEM;
  if (SSL_CTX_use_PrivateKey_file(context_, path.c_str(), format) == 1 &&
      SSL_CTX_check_private_key(context_) == 1) {
    return std::nullopt;
  }
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  if (reason == X509_R_KEY_VALUES_MISMATCH || reason == X509_R_KEY_TYPE_MISMATCH) {
    return TlsProblem{
        TlsField::Key,
        "the key in '" + path + "' does not belong to the certificate in '" + options_.cert + "'"};
  }
  return TlsProblem{TlsField::Key,
                    "cannot use the private key in '" + path +
                        "', which must be there without a password: " + reason_text()};
}

TlsContext::Outcome TlsContext::load_authorities() {
  const bool is_server = options_.role == TlsRole::Server;
  if (options_.ca.empty()) {
    if (!is_server && options_.verify != TlsVerify::None) {
      SSL_CTX_set_default_verify_paths(context_);
    }
    return std::nullopt;
  }
  if (auto problem = check_readable(TlsField::Ca, options_.ca)) {
    return problem;
  }
  if (SSL_CTX_load_verify_locations(context_, options_.ca.c_str(), nullptr) != 1) {
    return TlsProblem{TlsField::Ca, "cannot use the authorities in '" + options_.ca +
                                        "', which must be in PEM form: " + reason_text()};
  }
  if (is_server) {
    // Tells clients whose certificates are welcome.
    SSL_CTX_set_client_CA_list(context_, SSL_load_client_CA_file(options_.ca.c_str()));
  }
  return std::nullopt;
}

TlsContext::Outcome TlsContext::set_ciphers() {
  if (!options_.ciphers.empty() &&
      SSL_CTX_set_cipher_list(context_, options_.ciphers.c_str()) != 1) {
    return TlsProblem{TlsField::Ciphers,
                      "OpenSSL knows no cipher of the list '" + options_.ciphers + "'"};
  }
  return std::nullopt;
}

void TlsContext::set_verify() {
  int mode = SSL_VERIFY_NONE;
  switch (options_.verify) {
    case TlsVerify::None:
      break;
    case TlsVerify::Request:
      mode = SSL_VERIFY_PEER;
      break;
    case TlsVerify::Once:
      mode = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT | SSL_VERIFY_CLIENT_ONCE;
      break;
    case TlsVerify::Require:
    case TlsVerify::Full:
      mode = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
      break;
  }
  SSL_CTX_set_verify(context_, mode, nullptr);
}

ssl_st* TlsContext::make_session(std::string_view host) const noexcept {
  SSL* const session = SSL_new(context_);
  if (session == nullptr) {
    return nullptr;
  }
  if (options_.role == TlsRole::Server) {
    SSL_set_accept_state(session);
    return session;
  }
  SSL_set_connect_state(session);
  const std::string name = options_.sni.empty() ? std::string(host) : options_.sni;
  const bool is_ip = is_address(name);
  if (!is_ip && !name.empty() && (!options_.sni.empty() || options_.sends_host_as_sni)) {
    // SSL_set_tlsext_host_name(), without the cast in its macro; the name is only read.
    std::string writable = name;
    SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, writable.data());
  }
  if (options_.verify == TlsVerify::Full) {
    SSL_set_hostflags(session, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    // An empty name would match any certificate.
    const bool is_set =
        is_ip ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), name.c_str()) == 1
              : !name.empty() && SSL_set1_host(session, name.c_str()) == 1;
    if (!is_set) {
      SSL_free(session);
      return nullptr;
    }
  }
  return session;
}

}  // namespace kvferry::net
