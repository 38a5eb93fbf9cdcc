// Service: what one listener offers on one worker: a target, limits, and the sessions of its
// clients.
//
// Threads: one worker. ClientLimit and ServiceStats are shared with others as they say.
#pragma once

#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/delegate.h"
#include "base/intrusive_list.h"
#include "base/slab_pool.h"
#include "call/call.h"
#include "call/redis_target.h"
#include "front/binary_reply.h"
#include "front/credentials.h"
#include "front/resp_options.h"
#include "front/service_stats.h"
#include "net/loop.h"
#include "protocol/memcache/request_parser.h"
#include "watch/hub.h"

namespace kvferry::front {

class ClientRegistry;
class Session;
struct PeerAddress;
struct SessionTag;

/// How many clients there are, over all workers, and how many there may be. Any thread.
class ClientLimit {
 public:
  explicit ClientLimit(std::size_t max) noexcept : max_(max) {}
  /// 0 means no limit.
  void set_max(std::size_t max) noexcept { max_.store(max, std::memory_order_relaxed); }
  bool try_enter() noexcept {
    const std::size_t max = max_.load(std::memory_order_relaxed);
    if (count_.fetch_add(1, std::memory_order_relaxed) >= max && max != 0) {
      leave();
      return false;
    }
    return true;
  }
  void leave() noexcept { count_.fetch_sub(1, std::memory_order_relaxed); }
  std::size_t max() const noexcept { return max_.load(std::memory_order_relaxed); }
  std::size_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> max_;
  std::atomic<std::size_t> count_{0};
};

/// Answers what concerns the server itself. Called on the worker.
class LocalCommands {
 public:
  /// The version as clients read it, three numbers with dots.
  virtual std::string_view version() const = 0;
  /// Appends the reply to `stats <words>` ("" for plain stats), its last line included; false when
  /// `words` is unknown.
  virtual bool stats(std::string_view words, std::string& out) = 0;
  /// A client on descriptor `fd` spoke the binary protocol and is being refused.
  virtual void on_binary_client(int fd) = 0;
  /// verbosity <level>.
  virtual void set_verbosity(unsigned level) = 0;
  /// Appends the reply to one of memcached's other administration commands; false when it is not
  /// known. Asked on listeners that allow administration only.
  virtual bool administer(const memcache::Request& /*request*/, std::string& /*out*/) {
    return false;
  }
  /// Appends what INFO of Redis tells: the sections that `names` name, or the usual ones for none.
  virtual void redis_info(std::span<const std::string_view> /*names*/, std::string& /*out*/) {}
  /// What CONFIG GET of Redis may tell: names in small letters, and values.
  virtual std::vector<std::pair<std::string, std::string>> redis_settings() { return {}; }
  /// The slot of `key` in a Redis Cluster.
  virtual std::uint16_t redis_key_slot(std::string_view /*key*/) { return 0; }

 protected:
  ~LocalCommands() = default;
};

struct ServiceOptions {
  memcache::ParserLimits parser;
  memcache::ErrorWords words = memcache::ErrorWords::Proxy;
  /// flush_all and its like go to the target; elsewhere they are refused with ERROR.
  bool allows_admin = false;
  /// `quit` with words behind it closes, as memcached 1.6 does it; else it is an error, as
  /// memccapable wants it.
  bool quits_with_words = false;
  /// Clients may speak the text protocol, and the binary one; the first byte of each tells. Where
  /// binary is not served its clients are told so.
  bool serves_text = true;
  bool serves_binary = true;
  /// Clients may read the log streams (`watch`).
  bool allows_watch = false;
  /// Commands without a key that go to the target all the same.
  std::bitset<memcache::kCommandCount> hooked;
  /// Lines that announce a value are looked at before they are passed on (Session::is_sound).
  bool judges_lines = true;
  /// In place of a reply that was cut off before its turn came.
  std::string_view cut_line = "SERVER_ERROR kvferry: connection to backend lost\r\n";
  /// Calls of one client that may be in flight; then its requests wait.
  std::uint32_t inflight_max = 1024;
  /// Requests of one client that are started in one turn; then others get theirs.
  std::uint32_t requests_per_turn = 320;
  /// A client that does not read, and blocks a backend link with that, is closed after this.
  base::Millis stall_timeout{10000};
  /// How long the next kBodyProgressBytes of a streamed value may take to come from the client.
  base::Millis body_timeout{30000};
  /// A client without a request for so long is closed; 0: never.
  base::Seconds idle_timeout{0};
  /// Clients speak TLS; null: in clear. New clients get what was configured last.
  net::TlsContextPtr tls{};
  /// Clients say who they are before anything else (ASCII authentication of memcached); null: no.
  std::shared_ptr<const Credentials> credentials{};
  RespOptions resp{};
};

/// What a worker lends its services; all of it outlives them.
struct ServiceContext {
  net::Loop& loop;
  call::CallPool& calls;
  base::SlabPool& sessions;  // Pieces of session_bytes().
  base::MemoryBudget& budget;
  LocalCommands& commands;
  watch::Hub* watch = nullptr;        // Null: there are no log streams.
  ClientRegistry* clients = nullptr;  // Of clients of Redis; null: they are not listed.
};

/// Size of a session, for the pool that sessions come from.
std::size_t session_bytes() noexcept;

class Service final : public net::AcceptHandler {
 public:
  /// `target` and `limits` must outlive the service or be replaced. `process_limit` counts all
  /// clients of the process.
  Service(const ServiceContext& context, ServiceOptions options, call::Target& target,
          ClientLimit& process_limit, std::shared_ptr<ClientLimit> listener_limit);
  /// No session may be left: see is_drained().
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // net::AcceptHandler
  void on_accepted(net::StreamPtr stream, const net::Address& peer) override;

  /// Requests that come from now on go to `target` and follow `options`.
  void configure(const ServiceOptions& options, call::Target& target);
  /// Where requests of clients of Redis go from now on; none are served before. It outlives the
  /// service, or is replaced.
  void set_redis_target(call::RedisTarget& target) { redis_target_ = &target; }
  const ServiceOptions& options() const { return options_; }
  /// Where the old item of a value that was refused as too large is dropped; none for pools.
  void set_forget(base::Delegate<void(std::string_view)> forget) { forget_ = forget; }
  /// No new requests: sessions end when what they have sent is answered.
  void drain();
  /// Closes every session at once. Calls in flight keep hulls of sessions alive until they are
  /// answered.
  void close_all();
  bool is_drained() const { return live_ == 0; }
  /// Closes clients that were idle for longer than the idle timeout, and gives spare memory back;
  /// call about once a second.
  void keep_house();

  const std::shared_ptr<ServiceStats>& shared_stats() const { return stats_; }

 private:
  friend class RespClient;
  friend class Session;

  void refuse_handshake(const PeerAddress& peer, bool has_entered);
  void release(Session& session);
  /// Made when the first binary client comes.
  BinaryDesk& binary_desk();
  /// Tells those that watch connections.
  void report_closed(const Session& session, std::string_view reason) const;

  ServiceContext context_;
  ServiceOptions options_;
  call::Target* target_;
  call::RedisTarget* redis_target_ = nullptr;
  ClientLimit& process_limit_;
  std::shared_ptr<ClientLimit> listener_limit_;
  std::shared_ptr<ServiceStats> stats_;
  base::Delegate<void(std::string_view)> forget_;
  std::unique_ptr<BinaryDesk> binary_desk_;
  // Where replies to, and requests of, clients of Redis are composed.
  std::string resp_reply_;
  std::string resp_scratch_;
  base::List<Session, SessionTag> sessions_;
  std::size_t live_ = 0;
  std::uint64_t next_lane_ = 1;
  bool is_draining_ = false;
};

}  // namespace kvferry::front
