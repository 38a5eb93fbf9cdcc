// Call: what joins a request to whoever wants its answer. The only object that travels on the
// request path.
//
//   session --send(call, request)--> target ... backend link --on_reply(call, part)--> session
//
// Owner:     whoever waits (a session, a merge of several calls) acquires it from the worker's
// CallPool and releases it after
//            the last part. Whoever answers holds a plain pointer in its FIFO until then.
// Contract:  every sent call is answered exactly once: parts of one reply, the last of them marked,
// or one failure, which is
//            a reply too. A debug build asserts that.
// Threads:   one worker.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/byte_chain.h"
#include "base/clock.h"
#include "base/slab_pool.h"
#include "protocol/memcache/reply.h"
#include "protocol/memcache/request.h"

namespace kvferry::call {

struct Answerer;
struct Call;

/// The request object of a route, when one route calls another: the callee works on the same one.
class SharedRequest {
 protected:
  ~SharedRequest() = default;
};

/// What the receiver of reply parts wants next.
enum class Flow : std::uint8_t {
  Continue,
  Pause,  // Stop delivering parts of this reply until ReplySource::resume(); what was passed is
          // taken nevertheless.
};

/// Who made a reply.
enum class ReplyOrigin : std::uint8_t {
  Answerer,  // The one that was asked: a backend, the store.
  Failure,   // No answer came, and the bytes say why.
  Script,    // A script's own text, whatever it says.
};

/// A run of bytes of one reply.
struct ReplyPart {
  std::string_view bytes;  // Valid in the call only. The first part has the first line whole.
  /// Of the whole reply; the same in all its parts. With Call::reply_count: of the replies in it.
  memcache::ReplyCode code;
  bool is_first;
  bool is_last;
  /// Only with is_last: the reply was cut off and cannot be completed. Whoever has passed a part of
  /// it on must give up its own stream too; others say the bytes, or words of their own for none.
  bool is_broken = false;
  /// The rest of the reply is at hand and cannot be cut off: this part may be passed on at once,
  /// however small it is.
  bool is_sure = false;
  ReplyOrigin origin = ReplyOrigin::Answerer;
};

/// Waits for the answer of calls.
class ReplySink {
 public:
  /// Takes the next part of the reply to `call`. After the last part the answerer has forgotten the
  /// call.
  virtual Flow on_reply(Call& call, const ReplyPart& part) = 0;
  /// The reply to `call` is near: it is time to fetch what taking it needs into the cache.
  virtual void prefetch(const Call& /*call*/) const {}
  /// Calls of others have waited behind the paused reply to `call`: take more of it, or give it up.
  virtual void on_blocked(Call& /*call*/) {}

 protected:
  ~ReplySink() = default;
};

/// Delivers reply parts and can be paused.
class ReplySource {
 public:
  /// The sink of `call`, which answered Pause, wants more.
  virtual void resume(Call& call) = 0;
  /// The sink of `call`, which answered Pause, no longer wants the rest: the source drops it, and
  /// reports the last part as usual.
  virtual void discard(Call& call) = 0;

 protected:
  ~ReplySource() = default;
};

/// Takes the body of a request whose value is streamed (larger than kStreamBytesMin).
class BodySink {
 public:
  /// Takes the next bytes of the value, the line end after it included.
  virtual Flow on_body(Call& call, std::string_view bytes, bool is_last) = 0;
  /// The sender is gone before the last byte; the call is answered as failed.
  virtual void on_body_lost(Call& call) = 0;

 protected:
  ~BodySink() = default;
};

/// Sends the body of a streamed request and can be paused.
class BodySource {
 public:
  virtual void resume_body(Call& call) = 0;
  /// The rest of the body is not wanted (the call was answered early): read it and drop it.
  virtual void discard_body(Call& call) = 0;

 protected:
  ~BodySource() = default;
};

/// Values above this are streamed: forwarding starts before the last byte has come.
inline constexpr std::size_t kStreamBytesMin = std::size_t{64} * 1024;

/// What one client may have waiting so that others need not wait behind it; see
/// ReplySink::on_blocked().
inline constexpr std::size_t kSpillBytesMax = std::size_t{8} << 20;

/// How much of a reply the client has asked not to see.
enum class Quiet : std::uint8_t {
  No,
  All,      // Classic noreply: nothing of a well-formed command.
  Success,  // ms, md, ma with q: HD (and VA of ma) are hidden, NS, EX, NF and errors are shown.
  Miss,     // mg with q: EN is hidden.
  Done,     // ms, md, ma with q where a route decides: what Success hides, and misses of reads.
  Good,     // Classic noreply where a route decides: everything but errors and a script's own text.
};

/// Whether a reply with `code` stays hidden.
bool is_hidden(Quiet quiet, memcache::ReplyCode code) noexcept;

struct Call {
  // Set by the owner before send().
  ReplySink* sink = nullptr;
  BodySource* body_source = nullptr;  // Of a streamed request only.
  base::SteadyTime started{};
  std::uint64_t lane =
      0;  // Calls with equal lanes keep their order at a backend: the session's number.
  memcache::Command command{};
  memcache::ReplyKind reply_kind{};
  Quiet quiet = Quiet::No;
  std::uint16_t redis_command = 0;  // Of requests of Redis: its place in the command table.
  /// The reply may hold any number of items. Backends of scripts take no more than one otherwise.
  bool is_wide = false;
  std::int32_t client_fd = 0;               // The client's descriptor, as a number for logs.
  SharedRequest* shared_request = nullptr;  // Of a sub-request of a route.
  ReplySink* outer_sink = nullptr;          // Whose place `sink` took to hear the reply first.
  /// Its bytes are so many requests, one behind the other, and so many replies answer it: they are
  /// passed on as parts of one. Links to Redis servers count it down (pool/link_resp.cc).
  std::uint32_t reply_count = 1;
  /// Bytes that whoever took the place of `sink` counts as held, until it answers.
  std::uint32_t held_bytes = 0;

  // Set by whoever answers.
  ReplySource* source = nullptr;   // Of a reply in parts.
  BodySink* body_sink = nullptr;   // Set within send() by a target that takes the body.
  Call* next_at_target = nullptr;  // FIFO of a backend link.
  std::uint32_t sent_at_ms = 0;    // Loop time when queued at the backend, for its deadline.
  bool body_waits = false;         // Set with body_sink: pass nothing before resume_body().
  /// Set with a part: some of the request has not been carried out yet. When that part is paused,
  /// later requests of the client must wait, or they would be carried out first.
  bool is_half_done = false;
  /// Who answers, for logs; set by targets that have a name there. Lives as long as the worker.
  const Answerer* answerer = nullptr;

  // The owner's own.
  Call* next_at_owner = nullptr;  // Queue of a session.
  base::ByteChain stash;          // Reply bytes that wait for their turn.
  std::uint32_t owner_index = 0;  // Which part of a merge this is.
  bool is_done = false;           // The last part has come.
  bool is_paused = false;         // The source was told to pause.
  bool is_passed = false;         // Some of the reply has left and cannot be taken back.
  bool is_hidden = false;         // Decided at the first part.
};

/// Anything that takes a call: a pool, a route, the embedded store, later a ring.
class Target {
 public:
  virtual ~Target() = default;
  /// Takes `call` over until its last reply part, which may be delivered before this returns.
  /// `request` and all its views are valid during the call only. When request.value is incomplete
  /// (a streamed value), the target sets call.body_sink, or answers at once.
  virtual void send(Call& call, const memcache::Request& request) = 0;
};

/// Answers `call` with one whole reply.
inline Flow answer(Call& call, std::string_view bytes, memcache::ReplyCode code) {
  return call.sink->on_reply(
      call, ReplyPart{.bytes = bytes, .code = code, .is_first = true, .is_last = true});
}

/// Source of calls, one a worker.
class CallPool {
 public:
  explicit CallPool(base::MemoryBudget& budget) : pool_(sizeof(Call), budget) {}
  Call& acquire() noexcept { return *new (pool_.acquire()) Call; }
  void release(Call& call) noexcept {
    call.~Call();
    pool_.release(&call);
  }
  std::size_t live() const noexcept { return pool_.live_pieces(); }
  void trim() noexcept { pool_.trim(); }

 private:
  base::SlabPool pool_;
};

}  // namespace kvferry::call
