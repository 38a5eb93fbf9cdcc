#include "net/tls_filter.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <utility>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/check.h"
#include "net/socket.h"

namespace kvferry::net {
namespace {

/// The most that one record holds, so that no read leaves a part of one inside OpenSSL.
constexpr std::size_t kRecordBytesMax = SSL3_RT_MAX_PLAIN_LENGTH;
/// Of answers of the TLS layer itself (alerts, keys) that a peer who does not read lets pile up. No
/// handshake says as much at a time.
constexpr std::size_t kWireBytesMax = std::size_t{256} * 1024;
/// Bytes of a name in a certificate that are of interest.
constexpr std::size_t kNameBytesMax = 256;

TlsFilter& filter_of(BIO* bio) {
  return *static_cast<TlsFilter*>(BIO_get_data(bio));
}

int read_bio(BIO* bio, char* to, std::size_t size, std::size_t* taken) {
  BIO_clear_retry_flags(bio);
  *taken = filter_of(bio).take_received(to, size);
  if (*taken != 0) {
    return 1;
  }
  BIO_set_retry_read(bio);
  return -1;
}

int write_bio(BIO* bio, const char* from, std::size_t size, std::size_t* taken) {
  BIO_clear_retry_flags(bio);
  filter_of(bio).put_wire({from, size});
  *taken = size;
  return 1;
}

long control_bio(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

/// How OpenSSL reads and writes: from and into the filter's chains.
BIO_METHOD* make_bio_method() {
  BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "kvferry");
  KVF_CHECK(method != nullptr);
  BIO_meth_set_read_ex(method, &read_bio);
  BIO_meth_set_write_ex(method, &write_bio);
  BIO_meth_set_ctrl(method, &control_bio);
  return method;
}

TlsFailureKind kind_of(int reason) {
  if (reason > SSL_AD_REASON_OFFSET) {
    return TlsFailureKind::Alert;
  }
  switch (reason) {
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return TlsFailureKind::Verify;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_VERSION_TOO_HIGH:
    case SSL_R_UNKNOWN_PROTOCOL:
    case SSL_R_NO_PROTOCOLS_AVAILABLE:
    case SSL_R_NO_SHARED_CIPHER:
      return TlsFailureKind::Version;
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_RECORD_TOO_SMALL:
      return TlsFailureKind::NotTls;
    default:
      return TlsFailureKind::Protocol;
  }
}

}  // namespace

TlsFilter::TlsFilter(Stream& stream, TlsContextPtr context, ssl_st* session, std::string_view host)
    : stream_(stream),
      context_(std::move(context)),
      session_(session),
      host_(host),
      timer_(Timer::Callback::to<&TlsFilter::on_timeout>(this)),
      turn_task_(Task::Callback::to<&TlsFilter::on_turn>(this)),
      phase_(context_->role() == TlsRole::Server ? Phase::Handshake : Phase::Waiting) {
  static BIO_METHOD* const kMethod = make_bio_method();
  BIO* const bio = BIO_new(kMethod);
  KVF_CHECK(bio != nullptr);
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(session_, bio, bio);
  if (phase_ == Phase::Handshake) {
    Loop& loop = *stream_.loop_;
    loop.timers().arm(timer_, loop.now() + context_->options().handshake_timeout);
  }
}

TlsFilter::~TlsFilter() {
  SSL_free(session_);
}

std::size_t TlsFilter::take_received(char* to, std::size_t size_max) noexcept {
  const std::size_t size = std::min(size_max, incoming_.size());
  if (size != 0) {  // Without bytes there may be no place of them either.
    std::memcpy(to, incoming_.data(), size);
    incoming_.remove_prefix(size);
  }
  return size;
}

void TlsFilter::put_wire(std::string_view bytes) noexcept {
  wire_.append_output(*stream_.blocks_, bytes);
  stream_.mark_dirty();
}

/// Whether the handler may be given anything.
bool TlsFilter::is_open() const noexcept {
  return stream_.phase_ == Stream::Phase::Open;
}

// ---- input

void TlsFilter::on_connected() {
  phase_ = Phase::Handshake;
  shake();
}

void TlsFilter::on_data(std::string_view bytes) {
  has_input_ = true;
  if (!held_.empty()) {
    held_.append(*stream_.blocks_, bytes);
    if (phase_ == Phase::Handshake && held_.size() > kTlsHandshakeBytesMax) {
      fail(TlsFailure{.kind = TlsFailureKind::Protocol,
                      .reason = "too much was sent before the handshake was done"},
           EPROTO);
    }
    return;
  }
  incoming_ = bytes;
  advance();
  if (!incoming_.empty() && is_open() && phase_ < Phase::Ended) {
    held_.append(*stream_.blocks_, incoming_);
  }
  incoming_ = {};
}

void TlsFilter::deliver_held() {
  while (!held_.empty() && is_open() && !stream_.is_paused_ && !turn_task_.is_queued()) {
    const std::size_t offered = held_.front().size();
    incoming_ = held_.front();
    advance();
    const std::size_t left = phase_ < Phase::Ended ? incoming_.size() : 0;
    incoming_ = {};
    held_.consume(offered - left);
    if (left == offered) {
      break;  // It waits for another turn.
    }
  }
  if (owes_end_ && held_.empty() && is_open() && !stream_.is_paused_) {
    owes_end_ = false;
    end_input();
  }
}

/// Takes as much of incoming_ as may be taken now.
void TlsFilter::advance() {
  if (phase_ == Phase::Handshake && !shake()) {
    return;
  }
  if (phase_ == Phase::Open) {
    read_records();
  }
  if (wire_.size() > kWireBytesMax && is_open()) {
    fail(TlsFailure{.kind = TlsFailureKind::Protocol,
                    .reason = "the peer makes TLS answer, and does not read the answers"},
         EPROTO);
  }
}

/// The next step of the handshake; true when it is done.
bool TlsFilter::shake() {
  Loop& loop = *stream_.loop_;
  const bool is_server = context_->role() == TlsRole::Server;
  if (is_server && !loop.may_shake()) {
    loop.defer(turn_task_);
    return false;
  }
  const std::size_t wire_before = wire_.size();
  ERR_clear_error();
  const int outcome = SSL_do_handshake(session_);
  if (is_server && wire_.size() != wire_before) {
    loop.note_shaken();  // It was more than waiting for the rest of a message.
  }
  if (outcome == 1) {
    on_shaken();
    return true;
  }
  if (SSL_get_error(session_, outcome) != SSL_ERROR_WANT_READ) {
    fail(classify_failure(), EPROTO);
  }
  return false;
}

void TlsFilter::on_turn() {
  // The flush of this turn takes the step, or asks for another turn.
  stream_.mark_dirty();
}

void TlsFilter::on_shaken() {
  phase_ = Phase::Open;
  timer_.cancel();
  stream_.mark_dirty();  // For what was written meanwhile.
  if (TlsMonitor* const monitor = context_->monitor()) {
    monitor->on_tls_handshake(context_->role(), SSL_session_reused(session_) == 1);
  }
  note_peer();
  if (stream_.closes_after_output_) {
    stream_.phase_ = Stream::Phase::Draining;
  } else if (context_->role() == TlsRole::Client) {
    inner_->on_connected();
  }
}

/// So that whoever knows a client by its descriptor only can ask for its name.
void TlsFilter::note_peer() {
  std::string name = context_->role() == TlsRole::Server ? peer_name() : std::string{};
  if (!name.empty()) {
    named_fd_ = stream_.fd_;
    stream_.loop_->note_tls_peer(named_fd_, std::move(name));
  }
}

void TlsFilter::forget_peer() noexcept {
  if (named_fd_ >= 0) {
    stream_.loop_->forget_tls_peer(std::exchange(named_fd_, -1));
  }
}

void TlsFilter::read_records() {
  std::array<char, kRecordBytesMax> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  while (phase_ == Phase::Open && is_open() && !stream_.is_paused_) {
    ERR_clear_error();
    const int size = SSL_read(session_, bytes.data(), static_cast<int>(bytes.size()));
    if (size > 0) {
      inner_->on_data({bytes.data(), static_cast<std::size_t>(size)});
      continue;
    }
    const int error = SSL_get_error(session_, size);
    if (error == SSL_ERROR_ZERO_RETURN) {
      end_input();
    } else if (error != SSL_ERROR_WANT_READ) {
      fail(classify_failure(), EPROTO);
    }
    return;
  }
}

void TlsFilter::on_end() {
  if (!held_.empty()) {
    owes_end_ = true;
    stream_.mark_dirty();
  } else {
    end_input();
  }
}

/// The peer said that this was all, or its end of the socket was closed. Requests and replies know
/// their lengths, so an end without close_notify cannot make a cut one look whole.
void TlsFilter::end_input() {
  if (phase_ < Phase::Open) {
    fail(TlsFailure{.kind = TlsFailureKind::Closed,
                    .reason = "the peer closed the connection during the handshake"},
         ECONNRESET);
  } else if (phase_ == Phase::Open) {
    phase_ = Phase::Ended;
    inner_->on_end();
  }
}

// ---- output

void TlsFilter::encrypt() {
  base::ByteChain& output = stream_.output_;
  if (phase_ == Phase::Open || phase_ == Phase::Ended) {
    std::size_t room = kTlsFlushBytes;
    while (!output.empty() && room != 0) {
      const std::string_view part = output.front().substr(0, std::min(room, kRecordBytesMax));
      ERR_clear_error();
      const int taken = SSL_write(session_, part.data(), static_cast<int>(part.size()));
      if (taken <= 0) {
        fail(classify_failure(), EPROTO);
        return;
      }
      output.consume(static_cast<std::size_t>(taken));
      room -= static_cast<std::size_t>(taken);
    }
    if (stream_.phase_ == Stream::Phase::Draining && output.empty() &&
        !std::exchange(is_shut_, true)) {
      SSL_shutdown(session_);
    }
  }
  stream_.sending_.splice(*stream_.blocks_, wire_);
}

void TlsFilter::on_drained() {
  inner_->on_drained();
}

// ---- the end

void TlsFilter::on_timeout() {
  fail(TlsFailure{.kind = TlsFailureKind::Timeout,
                  .reason = "no handshake within " +
                            std::to_string(context_->options().handshake_timeout.count()) + " ms"},
       ETIMEDOUT);
}

void TlsFilter::on_closed(int error) {
  if (phase_ == Phase::Handshake && has_input_) {
    report(TlsFailure{.kind = TlsFailureKind::Closed,
                      .reason = std::string("the connection was lost during the handshake: ") +
                                std::strerror(error)});
  }
  phase_ = Phase::Failed;
  timer_.cancel();
  turn_task_.cancel();
  forget_peer();
  inner_->on_closed(error);
}

TlsFailure TlsFilter::classify_failure() const {
  const unsigned long code = ERR_peek_last_error();
  const int reason = ERR_GET_REASON(code);
  TlsFailure failure;
  failure.kind = kind_of(reason);
  const char* const text = ERR_reason_error_string(code);
  failure.reason = text == nullptr ? "unknown failure" : text;
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    failure.reason +=
        std::string(": ") + X509_verify_cert_error_string(SSL_get_verify_result(session_));
  }
  return failure;
}

void TlsFilter::fail(TlsFailure failure, int error) {
  // Whoever connects and goes without a word, as health checks do, has not failed.
  if (has_input_ || context_->role() == TlsRole::Client ||
      failure.kind == TlsFailureKind::Timeout) {
    report(std::move(failure));
  }
  phase_ = Phase::Failed;  // So that on_closed() does not report it again.
  stream_.output_.clear();
  if (has_sent_all()) {
    send_last_words();
    stream_.loop_->finish_draining(stream_, error);
  } else {
    stream_.loop_->fail_stream(stream_, error);
  }
}

void TlsFilter::report(TlsFailure failure) {
  TlsMonitor* const monitor = context_->monitor();
  if (monitor == nullptr) {
    return;
  }
  const Address peer = stream_.fd_ >= 0 ? peer_address(stream_.fd_) : Address{};
  failure.peer = peer.is_set() ? peer.to_string() : host_;  // It may be gone already.
  monitor->on_tls_failure(context_->role(), context_->label(), failure);
}

/// Whether what was encrypted before is the kernel's. A quiet send was tried when it was submitted;
/// should it have failed after all, the peer misses the last words too, and nothing else.
bool TlsFilter::has_sent_all() const noexcept {
  return stream_.sending_.empty() || stream_.is_quiet_;
}

void TlsFilter::send_last_words() noexcept {
  const std::string_view words = wire_.front();
  if (!words.empty() && stream_.fd_ >= 0) {
    // Its outcome changes nothing: the peer learns why the connection ends, or only that it does.
    static_cast<void>(::send(stream_.fd_, words.data(), words.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
  }
  wire_.clear();
}

void TlsFilter::say_goodbye() noexcept {
  timer_.cancel();
  turn_task_.cancel();
  forget_peer();
  // After bytes that were dropped the end must not look like one that was meant.
  const bool is_complete = stream_.output_.empty() && has_sent_all() && wire_.empty() && is_open();
  if ((phase_ == Phase::Open || phase_ == Phase::Ended) && is_complete && !is_shut_) {
    is_shut_ = true;
    ERR_clear_error();
    SSL_shutdown(session_);
    send_last_words();
  }
  phase_ = Phase::Failed;
}

std::string TlsFilter::peer_name() const {
  X509* const certificate = SSL_get0_peer_certificate(session_);
  if (certificate == nullptr) {
    return {};
  }
  std::array<char, kNameBytesMax> name{};
  const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                             name.data(), static_cast<int>(name.size()));
  return size <= 0 ? std::string{} : std::string(name.data(), static_cast<std::size_t>(size));
}

void TlsFilterDeleter::operator()(TlsFilter* filter) const noexcept {
  delete filter;  // NOLINT(cppcoreguidelines-owning-memory): it is that of a unique_ptr
}

bool Stream::start_tls(TlsContextPtr context, std::string_view host) {
  KVF_CHECK(tls_ == nullptr);
  ssl_st* const session = context->make_session(host);
  if (session == nullptr) {
    return false;
  }
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): tls_ owns it
  tls_.reset(new TlsFilter(*this, std::move(context), session, host));
  if (handler_ != nullptr) {
    tls_->set_inner(*handler_);
  }
  handler_ = tls_.get();
  return true;
}

std::string Stream::tls_peer_name() const {
  return tls_ == nullptr ? std::string{} : tls_->peer_name();
}

}  // namespace kvferry::net
