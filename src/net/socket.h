// Sockets as the engines need them: the system calls of listening and connecting, without a loop.
//
// Errors:  errno values where an engine goes on, Result where a person reads it.
// Threads: any.
#pragma once

#include <cstdint>
#include <sys/types.h>
#include <utility>

#include "base/result.h"
#include "net/address.h"

namespace kvferry::net {

struct ConnectOptions;
struct ListenOptions;

/// A descriptor that closes itself.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = other.release();
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const noexcept { return fd_; }
  bool is_set() const noexcept { return fd_ >= 0; }
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset() noexcept;

 private:
  int fd_ = -1;
};

/// What a listener owns: the listening socket and, when it bound one, the file of a Unix socket.
class ListenSocket {
 public:
  /// Uses `inherited` unless it is -1, in which case it binds `address` and removes a Unix socket's
  /// file in the end.
  static base::Result<ListenSocket> open(const Address& address, const ListenOptions& options,
                                         int inherited, bool non_blocking);
  ListenSocket(ListenSocket&& other) noexcept = default;
  ListenSocket& operator=(ListenSocket&& other) noexcept = delete;
  ListenSocket(const ListenSocket&) = delete;
  ListenSocket& operator=(const ListenSocket&) = delete;
  ~ListenSocket();

  int fd() const noexcept { return fd_.get(); }
  const Address& address() const noexcept { return address_; }

 private:
  ListenSocket(Fd fd, const Address& address) : fd_(std::move(fd)), address_(address) {}

  Fd fd_;
  Address address_;
  // The file that was made by binding; removed only while it is still that one.
  std::uint64_t file_device_ = 0;
  std::uint64_t file_inode_ = 0;
};

/// A connection on its way: `error` is 0 when it is done, EINPROGRESS when not yet, or why it
/// failed at once.
struct ConnectAttempt {
  Fd fd;
  int error = 0;
};
/// Starts connecting without waiting; the socket is non-blocking. An error only when no socket
/// could be made.
base::Result<ConnectAttempt> start_connect(const Address& address, const ConnectOptions& options);

/// What getsockopt(SO_ERROR) says; 0 when nothing is wrong.
int take_socket_error(int fd) noexcept;
/// The other end's address; unset when it is gone already.
Address peer_address(int fd) noexcept;
void set_non_blocking(int fd, bool non_blocking) noexcept;

/// Whether an error of accept() is that of one connection, which went away before it was taken. Any
/// other one (descriptors, memory) goes on until others give something back: waiting helps.
bool is_accept_of_lost_peer(int error) noexcept;

}  // namespace kvferry::net
