// TlsFilter: TLS between the socket of a stream and its handler: OpenSSL over our chains of bytes,
// without a socket of its own.
//
//   socket --> engine --on_data--> TlsFilter --on_data--> handler      input
//     ^                              |  ^                    |
//     +--- sending_ <--- wire_ <-----+  +---- output_ <------+         output, by the flush
//
//   Waiting --connected--> Handshake --done--> Open --close_notify, end--> Ended
//   (clients)                  |                 |
//                              +---- failure ----+--> Failed
//
// To the engine it is the handler of the stream; to the handler the stream looks as if it were a
// plain one. Received bytes are decrypted where they were received and handed over record by
// record. Output lies in the stream as it was written until a flush finds room for it.
//
// A connection that fails tells its TlsMonitor why, sends its alert if that needs no waiting, and
// ends as any other. There is no renegotiation, no compression and no early data.
//
// Bounds:   what is encrypted and not yet the kernel's: kTlsFlushBytes, and what the handshake
// says.
//           What was received while the handler paused: one receive of the engine.
// Lifetime: owned by its stream, and dies with the stream's hull: never within a callback.
// Threads:  that of the loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/byte_chain.h"
#include "base/clock.h"
#include "net/loop.h"
#include "net/stream.h"
#include "net/timer.h"
#include "net/tls_context.h"

namespace kvferry::net {

/// Handshakes of clients that one turn takes a step with; the others wait for the next, so that a
/// storm of them does not starve established clients. Each may cost a millisecond.
inline constexpr unsigned kTlsHandshakesPerTurn = 8;
/// What a client may send before a step of its handshake could be taken.
inline constexpr std::size_t kTlsHandshakeBytesMax = std::size_t{128} * 1024;
/// Output that one flush encrypts.
inline constexpr std::size_t kTlsFlushBytes = std::size_t{128} * 1024;

class TlsFilter final : public StreamHandler {
 public:
  /// Takes `session` over. A server begins at once; a client when its stream is connected.
  TlsFilter(Stream& stream, TlsContextPtr context, ssl_st* session, std::string_view host);
  TlsFilter(const TlsFilter&) = delete;
  TlsFilter& operator=(const TlsFilter&) = delete;
  ~TlsFilter();

  void set_inner(StreamHandler& inner) noexcept { inner_ = &inner; }

  // StreamHandler; called by the engine.
  void on_connected() override;
  void on_data(std::string_view bytes) override;
  void on_end() override;
  void on_closed(int error) override;
  void on_drained() override;

  /// Part of each flush: hands over what came while the handler paused.
  void deliver_held();
  /// Part of each flush that may send: moves output of the stream, encrypted, to what it is
  /// sending. May fail the stream.
  void encrypt();
  /// Whether there is something to send that Stream::output() does not show.
  bool has_wire() const noexcept { return !wire_.empty(); }
  /// Whether what was written cannot be sent before the peer has sent more.
  bool is_shaking() const noexcept { return phase_ < Phase::Open; }
  /// The owner drops the stream: tells the peer that this is the end, when that needs no waiting.
  void say_goodbye() noexcept;
  /// The common name in the peer's certificate; empty when there is none.
  std::string peer_name() const;

  // For OpenSSL's input and output.
  std::size_t take_received(char* to, std::size_t size_max) noexcept;
  void put_wire(std::string_view bytes) noexcept;

 private:
  enum class Phase : std::uint8_t { Waiting, Handshake, Open, Ended, Failed };

  void advance();
  bool shake();
  void on_shaken();
  void read_records();
  void end_input();
  void on_timeout();
  void on_turn();
  bool is_open() const noexcept;
  TlsFailure classify_failure() const;
  void fail(TlsFailure failure, int error);
  void report(TlsFailure failure);
  void note_peer();
  void forget_peer() noexcept;
  /// Sends what is there, without waiting and at most once.
  void send_last_words() noexcept;
  bool has_sent_all() const noexcept;

  Stream& stream_;
  StreamHandler* inner_ = nullptr;
  TlsContextPtr context_;
  ssl_st* session_;
  std::string host_;           // Of a server, for reports.
  std::string_view incoming_;  // Received, and not yet OpenSSL's.
  base::ByteChain held_;       // The same, kept over the end of on_data().
  base::ByteChain wire_;       // Encrypted; moved to the stream by the next flush.
  Timer timer_;
  Task turn_task_;  // Takes the next step of a handshake in another turn.
  Phase phase_;
  bool owes_end_ = false;  // The end of input waits for held_.
  bool is_shut_ = false;   // close_notify was sent.
  bool has_input_ = false;
  int named_fd_ = -1;  // Under which the loop knows the client's name; -1: it does not.
};

}  // namespace kvferry::net
