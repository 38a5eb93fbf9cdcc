// EpollEngine: the loop over epoll, for kernels and containers without io_uring.
//
// Level-triggered, and silent in the steady state: a connection is registered once for input, and
// its registration changes only when its output gets stuck, when it is paused, or at its end.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <sys/epoll.h>
#include <vector>

#include "net/loop.h"
#include "net/socket.h"

namespace kvferry::net {

/// What is in the epoll set besides streams. Owned by its handle (Listener, FdWatch) until that is
/// destroyed, then by the engine until the events of the turn have passed.
class EpollSource {
 public:
  virtual ~EpollSource() = default;
  virtual void on_ready(std::uint32_t events) = 0;
};

class EpollEngine final : public Loop {
 public:
  static base::Result<std::unique_ptr<Loop>> open(base::MemoryBudget& budget);
  ~EpollEngine() override;

  base::Result<std::unique_ptr<Listener>> listen(const Address& address,
                                                 const ListenOptions& options,
                                                 AcceptHandler& handler, int socket) override;
  base::Result<StreamPtr> connect(const Address& address, const ConnectOptions& options,
                                  StreamHandler& handler) override;
  base::Result<std::unique_ptr<FdWatch>> watch_fd(int fd, unsigned events,
                                                  base::Delegate<void(unsigned)> callback) override;
  std::string_view engine_name() const noexcept override { return "epoll"; }

  // For listeners and watches.
  bool add_source(EpollSource& source, int fd, std::uint32_t events) noexcept;
  void remove_source(int fd) noexcept;
  /// Keeps `source` until no event of this turn can refer to it.
  void bury(std::unique_ptr<EpollSource> source) { buried_.push_back(std::move(source)); }
  void accepted(int fd, AcceptHandler& handler);

 protected:
  void take_events(base::Millis sleep_max) override;
  void flush_stream(Stream& stream) override;
  void abandon(Stream& stream) noexcept override;

 private:
  static constexpr std::size_t kEventsPerTurn = 512;

  EpollEngine(base::MemoryBudget& budget, int wake_fd, int epoll_fd);

  void dispatch(const epoll_event& event);
  void on_stream_event(Stream& stream, std::uint32_t events);
  void finish_connect(Stream& stream);
  void receive(Stream& stream);
  void on_hang_up(Stream& stream);
  void flush_tls(Stream& stream);
  /// Sends from `chain`, which is the stream's output or what TLS made of it.
  void send_output(Stream& stream, base::ByteChain& chain);
  void update_registration(Stream& stream) noexcept;
  void unregister(Stream& stream) noexcept;

  Fd epoll_fd_;
  std::array<epoll_event, kEventsPerTurn> events_{};
  std::unique_ptr<char[]> scratch_;
  std::vector<std::unique_ptr<EpollSource>> buried_;
};

}  // namespace kvferry::net
