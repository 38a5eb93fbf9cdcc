#include "net/socket.h"

#include <cerrno>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/loop.h"

namespace kvferry::net {
namespace {

using base::Error;

constexpr int kKeepaliveIdleSeconds = 30;
constexpr int kKeepaliveIntervalSeconds = 10;
constexpr int kKeepaliveProbes = 3;

bool set_option(int fd, int level, int name, int value) noexcept {
  return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

/// Whether somebody listens on the Unix socket at `address`.
bool is_listened_on(const Address& address) noexcept {
  const Fd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!probe.is_set()) {
    return true;  // Nobody can tell, and a living listener must not lose its file.
  }
  // EAGAIN says that the queue of a living listener is full.
  return ::connect(probe.get(), address.get(), address.size()) == 0 || errno == EAGAIN ||
         errno == EINPROGRESS;
}

/// Removes the file of a Unix socket that nobody listens on; true when bind() is worth another try.
bool remove_stale_file(const Address& address) noexcept {
  const std::string path = address.to_string();
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0) {
    return errno == ENOENT;
  }
  // Never a regular file, whatever the configuration says.
  return S_ISSOCK(status.st_mode) && !is_listened_on(address) && unlink(path.c_str()) == 0;
}

int bind_unix(int fd, const Address& address, unsigned mode) noexcept {
  // The file takes the mode of the descriptor less the umask, so that it never lets more people in
  // than `mode` does; the umask may have taken too much, which chmod() mends.
  if (fchmod(fd, mode) != 0) {
    return errno;
  }
  if (::bind(fd, address.get(), address.size()) != 0) {
    if (errno != EADDRINUSE) {
      return errno;
    }
    if (!remove_stale_file(address)) {
      return EADDRINUSE;
    }
    if (::bind(fd, address.get(), address.size()) != 0) {
      return errno;
    }
  }
  return chmod(address.to_string().c_str(), mode) == 0 ? 0 : errno;
}

int bind_tcp(int fd, const Address& address, bool reuse_port) noexcept {
  set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (reuse_port && !set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1)) {
    return errno;
  }
  if (address.family() == AF_INET6) {
    // [::] and 0.0.0.0 can be listened on side by side.
    set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  }
  return ::bind(fd, address.get(), address.size()) == 0 ? 0 : errno;
}

void set_keepalive(int fd) noexcept {
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepaliveIdleSeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepaliveIntervalSeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepaliveProbes);
}

Address local_address(int fd) noexcept {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return {};
  }
  return {reinterpret_cast<const sockaddr*>(&storage), size};
}

}  // namespace

void Fd::reset() noexcept {
  if (fd_ >= 0) {
    ::close(fd_);
    fd_ = -1;
  }
}

base::Result<int> open_listening_socket(const Address& address, const ListenOptions& options) {
  const std::string what = "cannot listen on " + address.to_string();
  Fd fd(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.is_set()) {
    return Error::from_errno(what, errno);
  }
  const int error = address.is_unix() ? bind_unix(fd.get(), address, options.unix_mode)
                                      : bind_tcp(fd.get(), address, options.reuse_port);
  if (error != 0) {
    return Error::from_errno(what, error);
  }
  if (::listen(fd.get(), options.backlog) != 0) {
    return Error::from_errno(what, errno);
  }
  return fd.release();
}

base::Result<void> check_unused(const Address& address) {
  const Fd fd(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int error = fd.is_set() ? bind_tcp(fd.get(), address, false) : errno;
  if (error != 0) {
    return Error::from_errno("cannot listen on " + address.to_string(), error);
  }
  return {};
}

base::Result<ListenSocket> ListenSocket::open(const Address& address, const ListenOptions& options,
                                              int inherited, bool non_blocking) {
  Fd fd(inherited);
  const bool is_ours = !fd.is_set();
  if (is_ours) {
    auto opened = open_listening_socket(address, options);
    if (!opened) {
      return std::move(opened).error();
    }
    fd = Fd(*opened);
  }
  set_non_blocking(fd.get(), non_blocking);
  const Address bound = local_address(fd.get());
  if (!bound.is_set()) {
    return Error::from_errno("cannot listen on " + address.to_string(), errno);
  }
  if (!bound.is_unix()) {
    // Accepted sockets inherit it, which saves a system call a connection.
    set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  }
  ListenSocket made(std::move(fd), bound);
  struct stat status{};
  if (is_ours && bound.is_unix() && lstat(bound.to_string().c_str(), &status) == 0) {
    made.file_device_ = status.st_dev;
    made.file_inode_ = status.st_ino;
  }
  return made;
}

ListenSocket::~ListenSocket() {
  if (!fd_.is_set() || file_inode_ == 0) {
    return;
  }
  const std::string path = address_.to_string();
  struct stat status{};
  if (lstat(path.c_str(), &status) == 0 && status.st_dev == file_device_ &&
      status.st_ino == file_inode_) {
    unlink(path.c_str());
  }
}

base::Result<ConnectAttempt> start_connect(const Address& address, const ConnectOptions& options) {
  ConnectAttempt attempt;
  attempt.fd = Fd(socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int fd = attempt.fd.get();
  if (fd < 0) {
    return Error::from_errno("cannot make a socket for " + address.to_string(), errno);
  }
  if (!address.is_unix()) {
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (options.keepalive) {
      set_keepalive(fd);
    }
  }
  if (::connect(fd, address.get(), address.size()) != 0) {
    // An interrupted connect goes on by itself.
    attempt.error = errno == EINTR ? EINPROGRESS : errno;
  }
  return attempt;
}

int take_socket_error(int fd) noexcept {
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

Address peer_address(int fd) noexcept {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return {};
  }
  return {reinterpret_cast<const sockaddr*>(&storage), size};
}

void set_non_blocking(int fd, bool non_blocking) noexcept {
  const int flags = fcntl(fd, F_GETFL);
  const int wanted = non_blocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
  if (flags >= 0 && wanted != flags) {
    fcntl(fd, F_SETFL, wanted);
  }
}

bool is_accept_of_lost_peer(int error) noexcept {
  // accept() hands over what the network had to say about the connection.
  switch (error) {
    case ECONNABORTED:
    case ECONNRESET:
    case EINTR:
    case EPROTO:
    case EPERM:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

}  // namespace kvferry::net
