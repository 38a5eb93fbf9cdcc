// Link: one connection to a backend and the FIFO of calls that wait for its replies.
//
//   Down --admit()/timer--> Connecting --on_connected--> Up --on_closed, timeout, bad reply--> Down
//                             \--greeting--> its answers --^   (Redis)
//     ^                         |
//     +---- refused, timeout ---+   after a failure the timer tries again with back-off, and calls
//     are refused meanwhile
//
// Replies are matched to calls by order alone, so a link whose order is in doubt (timeout, damage,
// stray bytes) is closed and all its calls fail: a late reply never reaches another request.
//
// A link to a Redis server may have a greeting (AUTH, SELECT). It is Connecting until that has been
// answered, and what calls write is held back meanwhile: a server that refuses to select a database
// must not run them in another one.
//
// Ordinary links carry the calls of many sessions. An exclusive link carries one streamed request
// at a time, whose body would otherwise hold everyone else up.
//
// Lifetime:  owned by its Backend (the LinkHost), which outlives it. Calls are pointed to until
// their last reply part. Threads:   one worker.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/carry_buffer.h"
#include "base/intrusive_list.h"
#include "call/call.h"
#include "net/loop.h"
#include "net/stream.h"
#include "net/timer.h"
#include "pool/backoff.h"
#include "pool/failure_text.h"
#include "pool/greeting.h"
#include "pool/options.h"
#include "pool/resp_reader.h"
#include "pool/stats.h"
#include "protocol/memcache/reply_parser.h"

namespace kvferry::pool {

class Link;

/// Whose link it is: answers what a link must know and hears what becomes of it.
class LinkHost {
 public:
  /// Unset while the name has no address.
  virtual const net::Address& address() const = 0;
  virtual const PoolOptions& options() const = 0;
  virtual BackendStats& stats() = 0;
  virtual std::string failure_line(const Failure& failure) const = 0;
  virtual std::uint64_t random() = 0;
  /// Whether a link that failed may try again by itself.
  virtual bool wants_reconnect() const = 0;
  /// Starts TLS on a connection that has begun, where there is to be any. False: it cannot be.
  virtual bool secure(net::Stream& stream) = 0;
  /// What a fresh connection says first.
  virtual const Greeting& greeting() const = 0;
  /// The first reply of a fresh connection came.
  virtual void on_link_proven(Link& link) = 0;
  /// The link failed with calls outstanding, or could not connect. Its calls are answered after
  /// this.
  virtual void on_link_failed(Link& link, const Failure& failure) = 0;
  /// A client that does not read has blocked the link for kStallNotice.
  virtual void on_link_stalled(Link& link) = 0;
  /// The last outstanding call was answered; not reported from within admit() or commit().
  virtual void on_link_empty(Link& link) = 0;

 protected:
  ~LinkHost() = default;
};

class Link final : public net::StreamHandler, public call::ReplySource, public call::BodySink {
 public:
  enum class Phase : std::uint8_t { Down, Connecting, Up };
  enum class Use : std::uint8_t { Shared, Exclusive };

  Link(LinkHost& host, net::Loop& loop, Use use);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  /// No call may be outstanding.
  ~Link();

  /// Whether a call may be queued now; starts connecting when that is what it takes. A value is the
  /// reason of a refusal.
  std::optional<FailureKind> admit();
  /// Where the bytes of an admitted request go, before commit().
  void write(std::string_view bytes) { output_->append_output(stream_->blocks(), bytes); }
  /// Queues `call`, whose bytes were written, for its reply.
  void commit(call::Call& call);
  /// As commit(), for a streamed request on an exclusive link: the body follows through on_body().
  void commit_upload(call::Call& call);

  /// Starts connecting ahead of the first call; does nothing unless Down and not in back-off.
  void preconnect();
  /// Forgets the back-off: the backend is known to be well again.
  void clear_backoff();
  /// Takes over what it keeps of the host's options: the limits of its back-off. A wait that is
  /// under way begins anew within them.
  void follow_options();
  /// Takes no new connection attempts from now on; closes at once when no call is outstanding, else
  /// after the last.
  void retire();
  /// Fails every outstanding call and closes.
  void shut(FailureKind kind);

  Phase phase() const { return phase_; }
  Use use() const { return use_; }
  bool is_empty() const { return calls_.empty(); }
  bool is_retired() const { return is_retired_; }
  bool is_paused() const { return is_paused_; }
  std::uint32_t inflight() const { return inflight_; }
  std::size_t queued_bytes() const { return stream_ ? stream_->output_bytes() + held_.size() : 0; }
  /// Whether a call of `lane` is outstanding. Linear in the calls; for the rare case of a stalled
  /// link.
  bool has_lane(std::uint64_t lane) const;

  // net::StreamHandler
  void on_connected() override;
  void on_data(std::string_view bytes) override;
  void on_end() override;
  void on_closed(int error) override;
  void on_drained() override;

  // call::ReplySource
  void resume(call::Call& call) override;
  void discard(call::Call& call) override;

  // call::BodySink
  call::Flow on_body(call::Call& call, std::string_view bytes, bool is_last) override;
  void on_body_lost(call::Call& call) override;

 private:
  using CallFifo = base::Fifo<call::Call, &call::Call::next_at_target>;

  /// What links to Redis servers have besides.
  struct RespSide {
    RespReader reader;
    // Of the greeting that was sent: what it asks, and the step whose reply comes next.
    std::array<Greeting::Step, 3> steps{};
    std::uint8_t step_count = 0;
    std::uint8_t step = 0;
  };

  void connect();
  void greet();
  void on_up();
  bool is_greeting() const { return phase_ == Phase::Connecting && output_ == &held_; }
  void fail(const Failure& failure);
  void close_stream();
  /// Whether the connection was of use, or stood for so long that a loop of attempts cannot come of
  /// replacing it at once.
  bool has_lasted() const;
  /// Hands over whole parts from the front of `bytes`; returns how many bytes it took.
  std::size_t deliver(std::string_view bytes);
  std::size_t deliver_resp(std::string_view bytes);
  void take_greeting_reply(const RespChunk& chunk, std::string_view bytes);
  void fail_as_stray(std::string_view bytes);
  void hand_over(call::Call& call, const memcache::ReplyChunk& chunk, std::string_view bytes);
  void on_call_answered(call::Call& call);
  void continue_delivery();
  void on_timer();
  void on_stalled();
  void check_head_timeout();
  std::optional<base::Millis> head_time_max() const;
  void arm_reply_timer();
  std::uint32_t now_ms() const;

  LinkHost& host_;
  net::Loop& loop_;
  net::StreamPtr stream_;
  CallFifo calls_;
  memcache::ReplyParser parser_;
  std::unique_ptr<RespSide> resp_;  // Null: a memcached server.
  base::CarryBuffer carry_;
  base::ByteChain held_;              // What calls have written before the greeting was answered.
  base::ByteChain* output_ = &held_;  // Where write() goes: held_, or the output of stream_.
  net::Timer timer_;
  net::Task resume_task_;
  Backoff backoff_;
  base::SteadyTime connected_at_{};
  call::Call* upload_ = nullptr;  // The call whose body is being sent.
  std::uint32_t inflight_ = 0;
  Phase phase_ = Phase::Down;
  Use use_;
  bool is_retired_ = false;
  bool is_proven_ = false;      // A reply has come since it was connected.
  bool is_in_reply_ = false;    // Parts of the front call's reply have been taken.
  bool is_passed_on_ = false;   // ... and at least one was handed to its sink.
  bool is_paused_ = false;      // The front call's sink said Pause.
  bool is_discarding_ = false;  // The front call's sink wants no more.
  bool is_delivering_ = false;
  bool is_cut_ = false;  // The connection was closed while it was delivering.
  bool is_upload_paused_ = false;
};

/// A paused link is reported as stalled after this.
inline constexpr base::Millis kStallNotice{200};
/// Unsent bytes of a streamed request from which its sender is paused.
inline constexpr std::size_t kUploadWindowBytes = std::size_t{256} * 1024;
/// A backend that has refused our credentials is not asked again before this.
inline constexpr base::Millis kCredentialsRetryMin{5000};

}  // namespace kvferry::pool
