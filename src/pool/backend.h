// Backend: one remote server of a pool, as one worker sees it: its links, its limits, what becomes
// of its failures.
//
// Shared links carry everything but streamed requests; a session keeps to one of them (call.lane),
// so its requests run in order. When a client that does not read blocks a shared link, the link is
// set aside: a fresh one takes its place, and only lanes that still have calls outstanding on the
// old one stay there. Threads: one worker; BackendHealth is shared with the others and with
// control.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/intrusive_list.h"
#include "call/call.h"
#include "net/address.h"
#include "net/loop.h"
#include "pool/health.h"
#include "pool/link.h"
#include "pool/options.h"
#include "pool/stats.h"

namespace kvferry::pool {

class Backend;

/// Hears what control or the log must know. Called on the worker.
class PoolEvents {
 public:
  /// The failure that took the backend down; reported by one worker only.
  virtual void on_backend_down(const PoolOptions& pool, const ServerOptions& server) = 0;
  virtual void on_backend_failure(const PoolOptions& pool, const ServerOptions& server,
                                  const Failure& failure) = 0;

 protected:
  ~PoolEvents() = default;
};

/// Links for streamed requests, per backend and worker; more such requests wait for one to be free.
inline constexpr std::size_t kUploadLinksMax = 8;
/// How many of them are kept while idle.
inline constexpr std::size_t kUploadLinksIdleMax = 1;
/// How long a streamed request waits for a link when its pool has no timeout.
inline constexpr base::Millis kUploadWaitMax{10000};

class Backend final : public LinkHost, public call::BodySink {
 public:
  /// What a backend is made of; `options` must outlive it or be replaced by configure().
  struct Setup {
    const PoolOptions* options = nullptr;
    ServerOptions server;
    net::Address address;  // Unset while the name has no address.
    std::shared_ptr<BackendHealth> health;
    net::TlsContextPtr tls{};               // Null: connections in clear.
    Greeting greeting{};                    // What fresh connections say first.
    std::shared_ptr<BackendStats> stats{};  // Null: it counts for itself.
  };
  Backend(Setup setup, net::Loop& loop, PoolEvents& events, std::uint64_t random_seed);
  ~Backend();

  /// Sends a whole request, or answers `call` with the reason why not.
  void forward(call::Call& call, std::string_view bytes);
  /// The link that `call` may be written to (Link::write, then Link::commit), or null with the
  /// reason in `why`.
  Link* admit(const call::Call& call, Failure& why);
  /// Starts a streamed request: its line now, its body through call.body_sink.
  void start_upload(call::Call& call, std::string_view line);
  /// Answers `call` with the error line of `failure` and counts it.
  void refuse(call::Call& call, const Failure& failure);

  /// Takes new options, address and health over. Links to another address are set aside; connection
  /// counts are adjusted.
  void configure(Setup setup);
  void preconnect();
  /// Removed from its pool: outstanding calls end, then is_drained().
  void retire();
  /// Fails what is still outstanding.
  void shut();
  bool is_drained() const;
  /// Notes how many bytes wait to be sent; call about once a second.
  void sample_queue() { stats_->queue_bytes.set(queued_bytes()); }
  /// Bytes that wait to be sent now.
  std::size_t queued_bytes() const;

  const ServerOptions& server() const { return setup_.server; }
  const std::shared_ptr<BackendHealth>& shared_health() const { return setup_.health; }

  // LinkHost
  const net::Address& address() const override { return setup_.address; }
  const PoolOptions& options() const override { return *setup_.options; }
  BackendStats& stats() override { return *stats_; }
  std::string failure_line(const Failure& failure) const override;
  std::uint64_t random() override { return next_random(random_state_); }
  bool wants_reconnect() const override;
  bool secure(net::Stream& stream) override;
  const Greeting& greeting() const override { return setup_.greeting; }
  void on_link_proven(Link& link) override;
  void on_link_failed(Link& link, const Failure& failure) override;
  void on_link_stalled(Link& link) override;
  void on_link_empty(Link& link) override;

  // call::BodySink, for calls that wait for an upload link.
  call::Flow on_body(call::Call& call, std::string_view bytes, bool is_last) override;
  void on_body_lost(call::Call& call) override;

  /// Shared with whoever reads statistics; lives on when the backend is gone.
  const std::shared_ptr<BackendStats>& shared_stats() const { return stats_; }

 private:
  using CallFifo = base::Fifo<call::Call, &call::Call::next_at_target>;
  using Links = std::vector<std::unique_ptr<Link>>;

  Link& link_for(const call::Call& call);
  Link* free_upload_link();
  /// False when it was refused: `call` is answered and gone.
  bool admit_upload(Link& link, call::Call& call);
  void begin_upload(Link& link, call::Call& call, std::string_view line);
  void start_waiting_uploads();
  void set_aside(std::unique_ptr<Link>& link);
  void reap();
  void on_wait_timer();
  base::Millis upload_wait_max() const { return options().timeout.value_or(kUploadWaitMax); }
  std::uint32_t now_ms() const;

  Setup setup_;
  net::Loop& loop_;
  PoolEvents& events_;
  std::shared_ptr<BackendStats> stats_;
  Links links_;
  Links uploads_;
  Links aside_;       // Stalled or retired: drain, then go.
  CallFifo waiting_;  // Streamed requests without a link yet; their lines lie in call.stash.
  net::Timer wait_timer_;
  net::Task reap_task_;  // Links are destroyed, and waiting uploads started, outside of their own
                         // callbacks.
  std::uint64_t random_state_;
  bool is_retired_ = false;
};

}  // namespace kvferry::pool
