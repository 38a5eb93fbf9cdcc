// McpLink: one connection to a backend of a script, and the FIFO of calls that wait for its
// answers.
//
//   Starting --address known--> Connecting --on_connected--> Validating --VERSION--> Ready
//      ^                             |                            |                    |
//      |                             +---------- any failure -----+--------------------+
//      |                                             |
//      +---- not bad: in the next turn --------------+
//      +---- bad: after the pause ---- Resting <-----+
//
// A new connection is asked for its version before it is used. Calls queue until it is ready,
// unless it is marked bad: it stays bad until a connection is validated, and calls fail at once
// meanwhile.
//
// It is a class of its own beside Link because nearly every rule differs: what a failure is and
// what follows from it, when to connect, what an answer may be. What both have, the FIFO and the
// carry buffer, lies below them.
//
// A call may be several requests in a row (Call::reply_count), and its reply as many replies: each
// counts as a call of its own where depths are told.
//
// Replies are matched to calls by order alone, so every doubt about the order closes the connection
// and fails its calls: a late reply never reaches another request. Bytes that were read before a
// call was queued do not answer it.
//
// Source:    docs/lua.md, "Backends".
// Lifetime:  owned by its backend (the McpLinkHost), which outlives it and does not destroy it from
//            within a callback. Calls are pointed to until their last reply part.
// Threads:   one worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/carry_buffer.h"
#include "base/intrusive_list.h"
#include "call/call.h"
#include "net/loop.h"
#include "net/stream.h"
#include "net/timer.h"
#include "pool/mcp_failure.h"
#include "pool/mcp_health.h"
#include "pool/mcp_options.h"
#include "protocol/memcache/any_reply_parser.h"

namespace kvferry::pool {

class McpLink;

/// Whose link it is: answers what a link must know and hears what becomes of it.
class McpLinkHost {
 public:
  virtual const McpBackendOptions& options() const = 0;
  /// Unset while the name has no address.
  virtual const net::Address& address() const = 0;
  /// The link is about to connect: look the name up (anew). When address() is unset, on_address()
  /// follows; never from within this call.
  virtual void ask_address() = 0;
  /// Whether the bytes of one more reply may be kept.
  virtual bool has_reply_room() = 0;
  /// The link failed and was not bad before. Its calls are answered after this. `unread` holds up
  /// to kMcpUnreadBytesMax bytes.
  virtual void on_link_failed(McpFailure failure, std::size_t depth, std::string_view unread) = 0;
  /// ... and connects again at once.
  virtual void on_link_retried() = 0;
  /// ... and is marked bad from now on.
  virtual void on_link_bad(bool is_flapping, base::Seconds pause) = 0;
  /// It was marked bad, and is well again.
  virtual void on_link_well() = 0;
  /// The last outstanding call of a retired link was answered.
  virtual void on_link_retired() = 0;

 protected:
  ~McpLinkHost() = default;
};

class McpLink final : public net::StreamHandler, public call::ReplySource {
 public:
  enum class Phase : std::uint8_t { Starting, Connecting, Validating, Ready, Resting };

  /// Connects at the end of this turn.
  McpLink(McpLinkHost& host, net::Loop& loop);
  McpLink(const McpLink&) = delete;
  McpLink& operator=(const McpLink&) = delete;
  /// No call may be outstanding.
  ~McpLink();

  /// Whether calls fail at once.
  bool is_bad() const { return health_.is_bad() || is_retired_; }
  /// Queues `call` and sends its bytes as soon as the connection is ready. Not while is_bad().
  void forward(call::Call& call, std::string_view bytes);

  /// The name was looked up; host.address() tells with what success.
  void on_address();
  /// Connects no more; closes at once when no call is outstanding, else after the last.
  void retire();
  /// Fails what is outstanding and closes; after retire().
  void shut();

  Phase phase() const { return phase_; }
  const McpHealth& health() const { return health_; }
  /// Replies that are due to calls, queued ones included.
  std::uint32_t inflight() const { return inflight_; }

  // net::StreamHandler
  void on_connected() override;
  void on_data(std::string_view bytes) override;
  void on_end() override;
  void on_closed(int error) override;
  void on_drained() override;

  // call::ReplySource
  void resume(call::Call& call) override;
  void discard(call::Call& call) override;

 private:
  using CallFifo = base::Fifo<call::Call, &call::Call::next_at_target>;
  /// A connection that has been given up: whom to tell.
  struct Broken {
    McpFailure failure{};
    McpHealth::Verdict verdict;
    CallFifo calls;
    std::uint32_t depth = 0;
    std::string unread;
    bool is_silent = false;  // It was bad before, or has no future.
    bool is_begun = false;   // The first call has had some of its replies ...
    bool is_cut = false;     // ... or a part of one.
  };

  void start();
  void connect();
  void validate();
  void on_ready();
  std::size_t deliver(std::string_view bytes);
  std::uint32_t gather_row(const call::Call& call, std::string_view bytes,
                           memcache::ReplyChunk& chunk);
  bool hand_over(call::Call& call, const memcache::ReplyChunk& chunk, std::uint32_t replies,
                 std::string_view bytes, std::string_view rest);
  bool pass_on(call::Call& call, const call::ReplyPart& part);
  void finish_replies(const call::Call& call, std::uint32_t replies);
  void continue_delivery();
  void after_delivery();
  /// What is wrong with the connection although this last part of a reply is good.
  std::optional<McpFailure> failure_behind(memcache::ReplyCode code, std::string_view rest) const;
  void fail(McpFailure failure, std::string_view unread) { report(give_up(failure, unread)); }
  /// Closes the connection and decides what comes next. Nobody has been told when it returns.
  Broken give_up(McpFailure failure, std::string_view unread);
  void report(Broken broken);
  void close_stream();
  void on_timer();
  void on_read_timer();
  void arm(base::Micros delay);

  McpLinkHost& host_;
  net::Loop& loop_;
  net::StreamPtr stream_;
  CallFifo calls_;
  base::ByteChain queued_;  // Bytes of calls that came before the connection was ready.
  memcache::AnyReplyParser parser_;
  base::CarryBuffer carry_;
  net::Timer timer_;
  net::Task start_task_;
  net::Task resume_task_;
  McpHealth health_;
  base::SteadyTime quiet_since_{};  // Since when nothing has come although answers are due.
  std::uint32_t inflight_ = 0;
  std::uint32_t answerable_ = 0;  // So many replies were due at the last read.
  std::uint32_t begun_ = 0;       // Replies that the front call has had.
  Phase phase_ = Phase::Starting;
  bool is_retired_ = false;
  bool is_in_reply_ = false;    // Parts of a reply to the front call have been taken.
  bool is_passed_on_ = false;   // ... and at least one was handed to its sink.
  bool is_paused_ = false;      // The front call's sink said Pause.
  bool is_discarding_ = false;  // The front call's sink wants no more.
  bool is_delivering_ = false;
};

}  // namespace kvferry::pool
