// What a TLS context is made of: files, what is asked of the peer, versions. Plain values, compared
// by ==, so that a reload can tell whether anything about a listener or a pool has changed.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace kvferry::net {

/// How long a client may take for its handshake. Handshakes with servers have the time of their
/// connect.
inline constexpr base::Millis kTlsHandshakeTimeout{10000};

enum class TlsRole : std::uint8_t { Server, Client };

enum class TlsVersion : std::uint8_t { V10, V11, V12, V13 };

/// What is asked of the peer's certificate.
///
///             Server role                                   Client role
///   None      clients are not asked for one                 the server's is not looked at
///   Request   asked for; one that is sent must be good      -
///   Require   a good one is a condition                     it must come from a known authority
///   Once      as Require (there is no renegotiation)        -
///   Full      -                                             ... and be for the name of the server
enum class TlsVerify : std::uint8_t { None, Request, Require, Once, Full };

enum class TlsKeyFormat : std::uint8_t { Pem, Der };

struct TlsOptions {
  TlsRole role = TlsRole::Server;
  std::string cert{};  // PEM file: certificate first, then its chain. Needed by servers.
  std::string key{};   // File of the private key; empty: it stands in `cert`.
  std::string ca{};    // PEM file of authorities; empty: those of the system, where any are needed.
  std::string sni{};   // Client: the name that is asked for and verified; empty: the server's host.
  std::string ciphers{};  // OpenSSL's list, for TLS 1.2 and older; empty: OpenSSL's choice.
  TlsKeyFormat key_format = TlsKeyFormat::Pem;
  TlsVerify verify = TlsVerify::None;
  TlsVersion min_version = TlsVersion::V12;
  base::Millis handshake_timeout = kTlsHandshakeTimeout;  // Server.
  bool has_session_cache = true;                          // Server: clients may resume sessions.
  bool sends_host_as_sni = true;  // Client: the host is sent as SNI when `sni` is empty.

  friend bool operator==(const TlsOptions&, const TlsOptions&) = default;
};

}  // namespace kvferry::net
