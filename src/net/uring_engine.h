// UringEngine: the loop over io_uring. One io_uring_enter() a turn submits all sends, arms and
// cancels of the turn before, and waits.
//
// Every operation in flight is counted by a bit of its stream (or by its source), and hulls are
// freed only when none is left, so a completion always finds its object.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "net/loop.h"
#include "net/uring_ring.h"

namespace kvferry::net {

class UringEngine;

/// What completes besides streams: the wake-up, listeners, watches. One operation in flight each.
class UringSource {
 public:
  virtual ~UringSource() = default;
  virtual void on_completion(int result, bool has_more) = 0;
  bool is_in_flight = false;
};

class UringEngine final : public Loop {
 public:
  static base::Result<std::unique_ptr<Loop>> open(const LoopOptions& options,
                                                  base::MemoryBudget& budget);
  ~UringEngine() override;

  base::Result<std::unique_ptr<Listener>> listen(const Address& address,
                                                 const ListenOptions& options,
                                                 AcceptHandler& handler, int socket) override;
  base::Result<StreamPtr> connect(const Address& address, const ConnectOptions& options,
                                  StreamHandler& handler) override;
  base::Result<std::unique_ptr<FdWatch>> watch_fd(int fd, unsigned events,
                                                  base::Delegate<void(unsigned)> callback) override;
  std::string_view engine_name() const noexcept override { return "io_uring"; }

  // For the sources.
  UringRing& ring() noexcept { return *ring_; }
  void start(UringSource& source, io_uring_sqe* entry) noexcept;
  void cancel(UringSource& source) noexcept;
  /// Keeps `source`, which has been cancelled, until its operation has completed.
  void bury(std::unique_ptr<UringSource> source) { buried_.push_back(std::move(source)); }
  void accepted(int fd, AcceptHandler& handler);
  void woken() noexcept { note_wake(); }
  bool is_ending() const noexcept { return is_ending_; }

 protected:
  void take_events(base::Millis sleep_max) override;
  void linger(base::Micros length) override;
  void flush_stream(Stream& stream) override;
  void abandon(Stream& stream) noexcept override;
  void submit() noexcept override { ring_->submit(); }

 private:
  /// The low bits of user data; the rest is the address of a Stream or UringSource.
  enum Tag : std::uint8_t { kIgnored, kReceive, kSend, kConnect, kSource };
  static constexpr std::uintptr_t kTagMask = 7;
  /// Bits of Stream::ops_.
  static constexpr std::uint8_t op_bit(Tag tag) noexcept {
    return static_cast<std::uint8_t>(1U << tag);
  }
  static std::uint64_t user_data(const void* object, Tag tag) noexcept {
    return reinterpret_cast<std::uintptr_t>(object) | tag;
  }

  UringEngine(base::MemoryBudget& budget, int wake_fd, std::unique_ptr<UringRing> ring);

  unsigned reap();
  void dispatch(std::uint64_t data, int result, unsigned flags);
  void on_receive(Stream& stream, int result, unsigned flags);
  void deliver(Stream& stream, std::string_view bytes);
  void on_end(Stream& stream);
  void on_send(Stream& stream, int result);
  void on_connect(Stream& stream);
  void settle_quiet_sends();
  void finish_send(Stream& stream);

  bool is_doing(const Stream& stream, Tag tag) const noexcept {
    return (stream.ops_ & op_bit(tag)) != 0;
  }
  void begin(Stream& stream, Tag tag, io_uring_sqe* entry) noexcept;
  void cancel_all(Stream& stream) noexcept;
  void cancel(Stream& stream, Tag tag) noexcept;
  void arm_receive(Stream& stream) noexcept;
  void arm_connect(Stream& stream) noexcept;
  void start_send(Stream& stream) noexcept;
  /// Sends what there is to send; the end of flush_stream().
  void flush_output(Stream& stream);
  void start_tls_send(Stream& stream);
  void submit_send(Stream& stream, bool may_be_quiet) noexcept;
  void deliver_stash(Stream& stream);
  void flush_closed(Stream& stream) noexcept;

  std::unique_ptr<UringRing> ring_;
  std::unique_ptr<UringSource> wake_;
  std::vector<Stream*> quiet_;  // Streams whose quiet send has not been settled.
  std::vector<std::unique_ptr<UringSource>> buried_;
  bool has_lingered_ = false;  // Completions were collected by linger().
  bool is_unsettled_ = false;  // The last settling had to be put off.
  bool is_usable_ = true;      // This thread may use the ring.
  bool is_ending_ = false;
};

}  // namespace kvferry::net
