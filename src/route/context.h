// Context: one request on its way through a route: what was sent where, what came back, and what
// the route waits for.
//
//   Idle --enqueue()--> Queued --any wait--> Active --last reply part--> Complete
//
// A route fills handles (one per target), waits, looks at the replies, and ends. Sub-requests that
// are still in flight then go on; their replies are dropped when they come, and only when the last
// has come may the context serve another request (on_settled).
//
// Source:    docs/lua.md, "Waiting".
// Lifetime:  targets and the host outlive the context. Replies die with reset().
// Threads:   one worker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "call/call.h"
#include "net/loop.h"
#include "net/timer.h"
#include "route/route_reply.h"
#include "route/route_request.h"

namespace kvferry::route {

/// Handles that lie in the context itself, so that with thousands of requests in flight fewer
/// pieces of memory are to be fetched for each.
inline constexpr std::uint32_t kHandlesNear = 1;

/// What a wait counts. The numbers are part of the Lua API.
enum class WaitMode : std::uint8_t { Any = 1, Ok = 2, Good = 3, FastGood = 4 };

/// What a route says to an arrival.
struct Verdict {
  ResultClass result_class = ResultClass::Any;
  bool resumes = false;  // The wait is over, whatever it counts.
};

/// The route that a context serves.
class ContextHost {
 public:
  /// A reply has come to `handle`; also after the request has ended. May send nothing and wait for
  /// nothing.
  virtual Verdict on_arrival(std::uint32_t handle, ResultClass natural) = 0;
  /// What was waited for has come, or its time is over. Not called from within a wait function.
  virtual void on_wait_over(bool has_timed_out) = 0;
  /// The request has ended and the last of its sub-requests is answered. The context may be reset
  /// or destroyed by this.
  virtual void on_settled() = 0;
  /// A reply is near; see call::ReplySink.
  virtual void prefetch() const {}

 protected:
  ~ContextHost() = default;
};

class Context final : public call::ReplySink {
 public:
  Context(net::Loop& loop, call::CallPool& calls, ContextHost& host,
          std::span<call::Target* const> targets);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  /// No sub-request may be in flight.
  ~Context();

  /// Begins a request on behalf of `client`.
  void begin(const call::Call& client);
  /// Marks `handle` to be sent by the next wait. Ignored when it was used before in this request.
  /// `request` lives until reset().
  void enqueue(std::uint32_t handle, RouteRequest& request);

  // Waits. Each sends what is queued, in the order of the handles. True: it is over already, and
  // on_wait_over() will not come.

  /// Until `handle` has its reply. A handle that was never sent is no reason to wait.
  bool wait_for(std::uint32_t handle, std::optional<base::Micros> timeout);
  /// Until `count` replies that `mode` counts have come, or no more can come. done() tells how many
  /// counted.
  bool wait_until(std::uint32_t count, WaitMode mode, std::optional<base::Micros> timeout);
  void sleep(base::Micros duration);

  /// Gives the wait up; what is in flight stays so.
  void cancel_wait();
  /// Makes a handle that is complete idle again, so that it can be sent once more.
  void reopen(std::uint32_t handle);

  bool is_waiting() const { return wait_.kind != Wait::Kind::None; }
  std::uint32_t done() const { return wait_.done; }

  std::uint32_t handle_count() const { return handle_count_; }
  bool is_used(std::uint32_t handle) const { return at(handle).state != State::Idle; }
  bool is_complete(std::uint32_t handle) const { return at(handle).state == State::Complete; }
  /// None until it is complete.
  ResultClass class_of(std::uint32_t handle) const { return at(handle).result_class; }
  RouteReply& reply(std::uint32_t handle) { return at(handle).reply; }
  /// What was enqueued on it; null before.
  RouteRequest* request_of(std::uint32_t handle) { return at(handle).request; }
  /// First Good in order; else the last Ok; else the last of the rest. None complete: nothing.
  std::optional<std::uint32_t> best_of(std::span<const std::uint32_t> handles) const;
  /// The worst class, the last one among equals.
  std::optional<std::uint32_t> worst_of(std::span<const std::uint32_t> handles) const;

  /// The request is answered. on_settled() follows, unless this returns true: nothing is in flight.
  bool end();
  /// After the end: all handles are idle again.
  void reset();
  std::uint32_t inflight() const { return inflight_; }
  int client_fd() const { return client_fd_; }

  // call::ReplySink
  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override;
  void prefetch(const call::Call& call) const override;

 private:
  enum class State : std::uint8_t { Idle, Queued, Active, Complete };
  struct Handle {
    call::Target* target = nullptr;
    RouteRequest* request = nullptr;
    base::SteadyTime sent_at{};
    State state = State::Idle;
    bool is_waited = false;  // Counted by a wait, or looked at by one.
    ResultClass result_class = ResultClass::None;
    RouteReply reply;
  };
  struct Wait {
    enum class Kind : std::uint8_t { None, Handle, Count, Sleep };
    Kind kind = Kind::None;
    WaitMode mode = WaitMode::Any;
    bool is_resumed = false;  // An arrival's verdict said so.
    std::uint32_t handle = 0;
    std::uint32_t count = 0;
    std::uint32_t done = 0;
  };

  Handle& at(std::uint32_t handle) {
    return handle < kHandlesNear ? near_[handle] : far_[handle - kHandlesNear];
  }
  const Handle& at(std::uint32_t handle) const {
    return handle < kHandlesNear ? near_[handle] : far_[handle - kHandlesNear];
  }
  void make_idle(Handle& handle);
  void send_queued();
  void send(std::uint32_t index);
  void complete(std::uint32_t index);
  /// Counts the reply of `handle`; whether the wait is over with it.
  bool judge(Handle& handle, bool resumes);
  bool is_wait_over() const;
  void arm(std::optional<base::Micros> timeout);
  void finish_wait(bool has_timed_out);
  void on_timer();
  void on_next_turn();

  // In the order of their use, and the handle that most routes have to themselves first: whoever
  // has thousands of contexts fetches them anew for each reply.
  std::array<Handle, kHandlesNear> near_;
  net::Loop& loop_;
  call::CallPool& calls_;
  ContextHost& host_;
  Wait wait_;
  std::uint64_t lane_ = 0;
  std::uint64_t serial_ =
      0;  // Which request this is: a reply's handling may end it and begin the next.
  int client_fd_ = 0;
  std::uint32_t handle_count_;
  std::uint32_t used_ = 0;  // Handles that are not idle.
  std::uint32_t queued_ = 0;
  std::uint32_t inflight_ = 0;
  bool is_sending_ = false;  // Replies that come meanwhile are judged by the wait that sends.
  bool has_ended_ = false;
  net::Timer timer_;
  net::Task next_turn_;
  std::vector<Handle> far_;
};

}  // namespace kvferry::route
