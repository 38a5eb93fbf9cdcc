// Session: one client connection and the order of its replies. See README.md for how it holds and
// dies.
//
//   Open --on_end, quit, drain--> Ending --queue empty, output sent--> (gone)
//     \__________________________________ on_closed, broken reply --> Dead --queue empty--> (gone)
//
// Threads: one worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/carry_buffer.h"
#include "base/intrusive_list.h"
#include "call/call.h"
#include "front/peer.h"
#include "front/service.h"
#include "front/watcher.h"
#include "net/loop.h"
#include "net/stream.h"
#include "net/timer.h"
#include "protocol/memcache/request_parser.h"
#include "protocol/memcache_binary/request.h"

namespace kvferry::front {

class RespClient;

/// Unsent output of a client from which its requests wait, and from which a streamed reply is
/// paused.
inline constexpr std::size_t kOutputWindowBytes = std::size_t{256} * 1024;
/// Bytes of a reply whose turn has not come that are kept before its source is paused.
inline constexpr std::size_t kStashWindowBytes = std::size_t{1} << 20;
/// How much of a streamed value must come before its client gets ServiceOptions::body_timeout anew:
/// a client that sends single bytes holds a connection to a backend as one that sends nothing.
inline constexpr std::size_t kBodyProgressBytes = std::size_t{16} * 1024;

class Session final : public net::StreamHandler,
                      public call::ReplySink,
                      public call::BodySource,
                      public base::ListHook<SessionTag> {
 public:
  Session(Service& service, net::StreamPtr stream, std::uint64_t lane, bool is_counted);
  ~Session();

  /// Serves nothing: writes `line`, then closes.
  void reject(std::string_view line);
  /// Takes no new requests: ends when what was received is answered, a body on its way included.
  void drain();
  /// Closes now; `reason` is for those that watch connections.
  void abort(std::string_view reason = "error");
  void set_peer(const PeerAddress& peer) { peer_ = peer; }
  const PeerAddress& peer() const { return peer_; }
  bool is_counted() const { return is_counted_; }
  bool is_idle_since(base::SteadyTime time) const {
    return queue_.empty() && last_active_ < time && phase_ == Phase::Open && watcher_ == nullptr;
  }

  // net::StreamHandler
  void on_data(std::string_view bytes) override;
  void on_end() override;
  void on_closed(int error) override;
  void on_drained() override;

  // call::ReplySink
  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override;
  void on_blocked(call::Call& call) override;

  // call::BodySource
  void resume_body(call::Call& call) override;
  void discard_body(call::Call& call) override;

 private:
  friend class RespClient;  // A part of it, for clients of Redis.

  enum class Phase : std::uint8_t { Open, Ending, Dead };
  /// What the client speaks; its first byte says so.
  enum class Wire : std::uint8_t { Unknown, Text, Binary, Resp };
  /// Reasons not to parse; bits.
  enum Hold : std::uint8_t { kInflight = 1, kOutput = 2, kBarrier = 4, kBody = 8, kTurn = 16 };

  std::size_t consume(std::string_view bytes);
  std::size_t consume_one(std::string_view bytes);
  std::size_t consume_line(std::string_view bytes);
  bool begin_wire(char first);
  std::size_t pass_body(std::string_view bytes);
  void on_body_taken(call::Flow flow, std::size_t part_bytes);
  void send_streamed(call::Call& call, const memcache::Request& request, std::uint64_t body_bytes);
  void on_body_begun();
  void await_body();
  void await_body_after(std::size_t part_bytes);
  call::Call* forget_body();
  void on_body_late();
  std::size_t on_parse_failure(const memcache::ParseFailure& failure, std::string_view bytes);
  /// False when the request must wait: nothing of it was taken.
  bool dispatch(const memcache::Request& request);
  bool dispatch_streamed(const memcache::Request& request);
  call::Call& make_call(const memcache::Request& request);
  call::Call& begin_call();
  void answer_locally(const memcache::Request& request);
  void answer_stats(std::string_view words);
  void set_verbosity(const memcache::Request& request);
  bool administer(const memcache::Request& request);
  void start_watching(std::string_view streams);
  void pass_watched();
  void answer_with(std::string_view line, memcache::ReplyCode code);
  bool is_sound(const memcache::Request& request);
  void authenticate(const memcache::Request& request);
  void refuse_memory(const memcache::Request& request);

  // Of clients that speak the binary protocol.
  std::size_t consume_packet(std::string_view bytes);
  std::size_t on_packet_failure(const memcache_binary::ParseFailure& failure);
  bool dispatch_packet(const memcache_binary::Request& packet);
  void send_packet(const memcache_binary::Request& packet);
  void pass_value_of_packet(call::Call& call, std::string_view bytes);
  void tell_of_late_packet();
  void answer_packet(const memcache_binary::Request& packet);
  void answer_packet_with(const memcache_binary::Request& packet, memcache_binary::Status status,
                          std::string_view text, memcache::ReplyCode code);
  void refuse_packet(const memcache_binary::Request& packet, memcache_binary::Status status);
  void answer_packet_stats(const memcache_binary::Request& packet);
  static bool may_pass_locked(const memcache_binary::Request& packet);
  void authenticate_packet(const memcache_binary::Request& packet);

  call::Flow take_reply(call::Call& call, const call::ReplyPart& part);
  call::Flow on_front_reply(call::Call& call, const call::ReplyPart& part);
  call::Flow on_early_reply(call::Call& call, const call::ReplyPart& part);
  void keep(call::Call& call, std::string_view bytes);
  void pass_stash(call::Call& call);
  void pass_stash_whole(call::Call& call);
  std::size_t output_window() const {
    return is_spilling_ ? call::kSpillBytesMax : kOutputWindowBytes;
  }
  void pop_front();
  void pass_stashes();
  void on_answered();
  void resume_front();
  void pause(call::Call& call);
  void mark_paused(call::Call& call);

  void hold(Hold reason) { holds_ |= reason; }
  void unhold(Hold reason);
  void hold_if_full();
  void continue_parsing();
  void after_input();
  void update_reading();
  void arm_stall_timer();
  void discard_paused();
  bool is_in_body() const;
  void drop_rest_of_body();
  std::string_view cut_line() const;
  bool end_if_ready();
  void end();
  /// What becomes of replies that were written and not yet sent.
  enum class Farewell : std::uint8_t { DropOutput, SendOutput };
  void die(std::string_view reason, Farewell farewell = Farewell::DropOutput);
  void release_if_done();
  void on_stalled();
  void write(std::string_view bytes);

  Service& service_;
  net::StreamPtr stream_;
  base::Fifo<call::Call, &call::Call::next_at_owner> queue_;
  memcache::RequestParser parser_;
  base::CarryBuffer carry_;
  net::Task task_;
  std::unique_ptr<net::Timer> stall_timer_;  // Only while a reply is paused for this client.
  std::unique_ptr<net::Timer> body_timer_;   // Armed while a body waits for the client's bytes.
  call::Call* body_call_ = nullptr;          // Whose body is being received.
  std::uint64_t body_left_ = 0;              // Bytes of it still to come, with what ends it.
  std::uint64_t skip_left_ = 0;              // Bytes to swallow.
  std::size_t body_progress_bytes_ = 0;      // Of the body, since body_timer_ was armed.
  std::uint32_t body_opaque_ = 0;            // Of the packet that the body belongs to.
  memcache_binary::Opcode body_opcode_{};    // The same.
  std::unique_ptr<RespClient> resp_;         // Of a client that speaks the Redis protocol.
  std::unique_ptr<Watcher> watcher_;  // Of a client that gets log lines, and nothing else any more.
  PeerAddress peer_;
  std::uint64_t lane_;
  base::SteadyTime last_active_;
  std::uint32_t inflight_ = 0;
  std::uint32_t turn_requests_ = 0;
  Phase phase_ = Phase::Open;
  Wire wire_ = Wire::Unknown;
  std::uint8_t holds_ = 0;
  bool is_parsing_ = false;   // Within consume(): this may not be released now.
  bool is_spilling_ = false;  // Others wait behind this client: take more than its windows.
  bool has_ended_ = false;    // The client will send no more.
  bool is_locked_ = false;    // It has not said who it is, and has to.
  bool is_draining_ = false;
  bool is_counted_;  // By the limits of clients; a rejected one is not.
};

}  // namespace kvferry::front
