#include "net/resolver.h"

#include <algorithm>
#include <ares.h>
#include <map>
#include <netinet/in.h>
#include <poll.h>
#include <string_view>
#include <sys/time.h>
#include <utility>

#include "net/loop.h"

namespace kvferry::net {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

ErrorCode code_of(int status) noexcept {
  switch (status) {
    case ARES_ENOTFOUND:
    case ARES_ENODATA:
    case ARES_EBADNAME:
      return ErrorCode::NotFound;
    case ARES_ETIMEOUT:
      return ErrorCode::TimedOut;
    case ARES_EREFUSED:
    case ARES_ECONNREFUSED:
      return ErrorCode::Refused;
    default:
      return ErrorCode::System;
  }
}

Address with_port(const ares_addrinfo_node& node, std::uint16_t port) {
  sockaddr_storage storage{};
  const auto* bytes = reinterpret_cast<const char*>(node.ai_addr);
  std::copy_n(bytes, std::min<std::size_t>(node.ai_addrlen, sizeof(storage)),
              reinterpret_cast<char*>(&storage));
  if (node.ai_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port);
  }
  return {reinterpret_cast<const sockaddr*>(&storage), node.ai_addrlen};
}

Result<Resolution> resolution_of(const ares_addrinfo& info, std::uint16_t port) {
  Resolution resolution;
  int ttl = -1;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const auto* node = info.nodes; node != nullptr; node = node->ai_next) {
      if (node->ai_family == family) {
        resolution.addresses.push_back(with_port(*node, port));
        ttl = ttl < 0 ? node->ai_ttl : std::min(ttl, node->ai_ttl);
      }
    }
  }
  if (resolution.addresses.empty()) {
    return Error(ErrorCode::NotFound, "the name has no address");
  }
  resolution.ttl = base::Seconds(std::max(ttl, 0));
  return resolution;
}

class AresResolver final : public Resolver {
 public:
  explicit AresResolver(Loop& loop)
      : loop_(loop), timer_(Timer::Callback::to<&AresResolver::on_timer>(this)) {}
  ~AresResolver() override {
    if (channel_ != nullptr) {
      ares_destroy(channel_);  // Ends the lookups that are left, and closes the sockets.
    }
    if (is_library_open_) {
      ares_library_cleanup();
    }
  }

  Result<void> start(const ResolverOptions& options);
  void resolve(const std::string& host, std::uint16_t port, Callback callback) override;

 private:
  /// A socket of c-ares that it wants to hear of.
  struct Socket {
    AresResolver* resolver;
    int fd;
    std::unique_ptr<FdWatch> watch;
    // May destroy this; nothing of it is used afterwards.
    void on_ready(unsigned events) const { resolver->process(fd, events); }
  };
  struct Query {
    std::string host;
    std::uint16_t port;
    Callback callback;
  };

  static void on_socket_state(void* self, ares_socket_t fd, int readable, int writable) {
    static_cast<AresResolver*>(self)->watch(fd, readable != 0, writable != 0);
  }
  static void on_answer(void* query, int status, int timeouts, ares_addrinfo* info);

  void watch(int fd, bool readable, bool writable);
  void process(int fd, unsigned events);
  void on_timer();
  void arm_timer();

  Loop& loop_;
  Timer timer_;
  ares_channel channel_ = nullptr;
  bool is_library_open_ = false;
  std::map<int, std::unique_ptr<Socket>> sockets_;
};

Result<void> AresResolver::start(const ResolverOptions& options) {
  int status = ares_library_init(ARES_LIB_INIT_ALL);
  is_library_open_ = status == ARES_SUCCESS;
  ares_options settings{};
  settings.timeout = static_cast<int>(options.timeout.count());
  settings.tries = options.tries;
  settings.sock_state_cb = &AresResolver::on_socket_state;
  settings.sock_state_cb_data = this;
  if (status == ARES_SUCCESS) {
    status = ares_init_options(&channel_, &settings,
                               ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB);
  }
  if (status == ARES_SUCCESS && !options.servers.empty()) {
    status = ares_set_servers_ports_csv(channel_, options.servers.c_str());
  }
  if (status != ARES_SUCCESS) {
    return Error(ErrorCode::System,
                 std::string("cannot set up name resolution: ") + ares_strerror(status));
  }
  return {};
}

void AresResolver::resolve(const std::string& host, std::uint16_t port, Callback callback) {
  if (auto numeric = Address::from_ip(host, port); numeric.has_value()) {
    callback(Resolution{{*numeric}, base::Seconds(0)});
    return;
  }
  auto* query = std::make_unique<Query>(Query{host, port, std::move(callback)}).release();
  ares_addrinfo_hints hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = ARES_AI_NOSORT;  // The order of the answer; sorting would open sockets.
  ares_getaddrinfo(channel_, query->host.c_str(), nullptr, &hints, &AresResolver::on_answer, query);
  arm_timer();
}

void AresResolver::on_answer(void* query_pointer, int status, int, ares_addrinfo* info) {
  const std::unique_ptr<Query> query(static_cast<Query*>(query_pointer));
  const std::unique_ptr<ares_addrinfo, decltype(&ares_freeaddrinfo)> owned(info,
                                                                           &ares_freeaddrinfo);
  if (status == ARES_EDESTRUCTION || status == ARES_ECANCELLED) {
    return;
  }
  if (status != ARES_SUCCESS || info == nullptr) {
    query->callback(
        Error(code_of(status), "cannot resolve \"" + query->host + "\": " + ares_strerror(status)));
    return;
  }
  query->callback(resolution_of(*info, query->port));
}

void AresResolver::watch(int fd, bool readable, bool writable) {
  sockets_.erase(fd);
  if (!readable && !writable) {
    return;
  }
  auto socket = std::make_unique<Socket>(Socket{this, fd, nullptr});
  const unsigned events = (readable ? POLLIN : 0U) | (writable ? POLLOUT : 0U);
  auto watch = loop_.watch_fd(fd, events,
                              base::Delegate<void(unsigned)>::to<&Socket::on_ready>(socket.get()));
  if (watch.has_value()) {
    socket->watch = std::move(watch).value();
    sockets_.emplace(fd, std::move(socket));
  }
  // Without a watch the lookup runs into its time limit, which reports it.
}

void AresResolver::process(int fd, unsigned events) {
  // Errors and hang-ups are found out by reading.
  const bool reads = (events & ~unsigned{POLLOUT}) != 0;
  const bool writes = (events & POLLOUT) != 0;
  ares_process_fd(channel_, reads ? fd : ARES_SOCKET_BAD, writes ? fd : ARES_SOCKET_BAD);
  arm_timer();
}

void AresResolver::on_timer() {
  ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  arm_timer();
}

void AresResolver::arm_timer() {
  timeval left{};
  const timeval* next = ares_timeout(channel_, nullptr, &left);
  if (next == nullptr) {
    timer_.cancel();  // Nothing is being looked up.
    return;
  }
  const auto delay = base::Seconds(next->tv_sec) + base::Micros(next->tv_usec);
  loop_.timers().arm(timer_, loop_.now() + delay);
}

}  // namespace

Result<std::unique_ptr<Resolver>> Resolver::open(Loop& loop, const ResolverOptions& options) {
  auto resolver = std::make_unique<AresResolver>(loop);
  if (auto started = resolver->start(options); !started) {
    return std::move(started).error();
  }
  return std::unique_ptr<Resolver>(std::move(resolver));
}

}  // namespace kvferry::net
