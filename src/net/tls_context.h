// TlsContext: certificates, key, authorities and rules of one listener or of one pool's backends,
// ready for use; immutable, shared by all workers, replaced as a whole by a reload.
//
// Source:   OpenSSL 3.0. None of its types is visible here.
// Errors:   TlsProblem says which option is wrong, in OpenSSL's or the system's words.
// Threads:  open() and inspect(): any one, they read files. A context may be used by any number of
//           threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "net/tls_options.h"

struct ssl_ctx_st;
struct ssl_st;

namespace kvferry::net {

/// Why a connection failed as a TLS connection.
enum class TlsFailureKind : std::uint8_t {
  Verify,    // The peer's certificate is not good enough.
  Alert,     // The peer refused us.
  Version,   // No version or cipher in common.
  NotTls,    // The peer does not speak TLS.
  Timeout,   // The handshake took too long.
  Closed,    // The peer left during the handshake.
  Protocol,  // Anything else, damage of what was sent included.
};
inline constexpr std::size_t kTlsFailureKinds =
    static_cast<std::size_t>(TlsFailureKind::Protocol) + 1;

/// The word used in metrics and logs.
std::string_view tls_failure_name(TlsFailureKind kind) noexcept;

struct TlsFailure {
  TlsFailureKind kind = TlsFailureKind::Protocol;
  std::string reason{};  // For people.
  std::string peer{};    // Its address.
};

/// Hears what becomes of handshakes. Called on the thread of the connection: any.
class TlsMonitor {
 public:
  virtual void on_tls_handshake(TlsRole role, bool is_resumed) = 0;
  /// `label` is that of the context.
  virtual void on_tls_failure(TlsRole role, const std::string& label,
                              const TlsFailure& failure) = 0;

 protected:
  ~TlsMonitor() = default;
};

/// Which option a problem is about.
enum class TlsField : std::uint8_t { Cert, Key, Ca, Ciphers, MinVersion, Other };

struct TlsProblem {
  TlsField field = TlsField::Other;
  std::string text{};
  bool is_unreadable = false;  // A file cannot be read at all.
};

/// A certificate that ends within so long is warned of.
inline constexpr base::Seconds kTlsExpiryNotice{14 * 86400};

class TlsContext;
using TlsContextPtr = std::shared_ptr<const TlsContext>;

class TlsContext {
 public:
  /// Reads the files. `label` says in logs whose context it is ("pool alpha"). `monitor` may be
  /// null, else outlives the context.
  static std::variant<TlsContextPtr, TlsProblem> open(const TlsOptions& options, std::string label,
                                                      TlsMonitor* monitor);
  /// The same certificates and rules for another place, without reading anything.
  TlsContextPtr for_place(std::string label, TlsMonitor* monitor) const;
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext();

  TlsRole role() const noexcept { return options_.role; }
  const TlsOptions& options() const noexcept { return options_; }
  const std::string& label() const noexcept { return label_; }
  TlsMonitor* monitor() const noexcept { return monitor_; }

  /// From when until when the own certificate is valid; both the epoch when there is none.
  base::WallTime not_before() const noexcept { return not_before_; }
  base::WallTime not_after() const noexcept { return not_after_; }
  /// What is to be said about that today; empty when the certificate is good for more than
  /// kTlsExpiryNotice.
  std::string validity_warning() const;

  /// A connection's state, to be freed by SSL_free(); null when there is no memory for it. `host`
  /// is the server's name or address, for the Client role.
  ssl_st* make_session(std::string_view host) const noexcept;

 private:
  TlsContext(TlsOptions options, std::string label, TlsMonitor* monitor)
      : options_(std::move(options)), label_(std::move(label)), monitor_(monitor) {}

  using Outcome = std::optional<TlsProblem>;  // None: all is well.
  Outcome fill();
  Outcome load_certificate();
  Outcome load_key();
  Outcome load_authorities();
  Outcome set_ciphers();
  void set_verify();
  void note_validity();

  TlsOptions options_;
  std::string label_;
  TlsMonitor* monitor_;
  ssl_ctx_st* context_ = nullptr;
  base::WallTime not_before_{};
  base::WallTime not_after_{};
};

}  // namespace kvferry::net
