// kvferry-load: closed-loop load on a memcached server or proxy, from one thread.
//
// Every connection keeps `depth` requests in flight. A read is followed by one write that fills the
// window again, so the generator itself stays cheap. With --verify it also proves that each reply
// belongs to its request, which the system tests use while servers freeze and die.
// Status: 0 done, 1 wrong arguments, 2 cannot connect, 3 wrong reply or lost connection when
// neither
// --verify nor --reconnect allows it, 4 nothing came for --stall seconds.
#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <string_view>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "load/options.h"
#include "load/report.h"
#include "load/traffic.h"

namespace kvferry::load {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} * 1024;
constexpr std::size_t kErrorKeysMax = 200'000;
constexpr std::uint64_t kNanosPerSecond = 1'000'000'000;
constexpr std::uint64_t kReconnectPause = kNanosPerSecond / 20;
constexpr std::uint64_t kDrainTime = 3 * kNanosPerSecond;
constexpr int kWaitMillis = 20;

std::uint64_t now_nanos() {
  timespec time{};
  static_cast<void>(clock_gettime(CLOCK_MONOTONIC, &time));
  return static_cast<std::uint64_t>(time.tv_sec) * kNanosPerSecond +
         static_cast<std::uint64_t>(time.tv_nsec);
}

std::uint64_t nanos_of(double seconds) {
  return static_cast<std::uint64_t>(seconds * static_cast<double>(kNanosPerSecond));
}

double own_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// The oldest request first. A ring, so that its parts are used again and nothing is allocated.
class Window {
 public:
  explicit Window(std::size_t depth) : requests_(depth) {}
  bool is_full() const { return size_ == requests_.size(); }
  std::size_t size() const { return size_; }
  Pending& oldest() { return requests_[first_]; }
  Pending& next_free() { return requests_[(first_ + size_) % requests_.size()]; }
  void push() { ++size_; }
  void pop() {
    first_ = (first_ + 1) % requests_.size();
    --size_;
  }
  void clear() { size_ = 0; }

 private:
  std::vector<Pending> requests_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

struct Connection {
  explicit Connection(std::size_t depth) : window(depth) {}

  int fd = -1;
  bool wants_write = false;
  std::uint64_t retry_ns = 0;  // When to connect again; only while fd is -1.
  Window window;
  std::string unread;  // Bytes of a reply that is not yet complete.
  std::string unsent;
  std::size_t sent_bytes = 0;  // Of `unsent`.
};

class Generator {
 public:
  explicit Generator(const Options& options)
      : options_(options),
        dataset_(options),
        maker_(options, dataset_),
        epoll_(epoll_create1(0)),
        input_(kReadBytes, '\0') {}
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;
  ~Generator() { close(epoll_); }

  int run();

 private:
  enum class Phase : std::uint8_t { WarmUp, Measure, Drain };

  bool connect_all();
  bool open(Connection& connection);
  void turn();
  void advance_phase();
  void finish_measuring();
  void reopen_closed();
  void on_readable(Connection& connection);
  void on_end(Connection& connection);
  void read_replies(Connection& connection);
  bool take_step(Connection& connection, const ReplyStep& step);
  void on_answer(Connection& connection, bool is_good);
  void note_bad();
  void note_refusal(const Pending& pending, std::string_view text);
  void refill(Connection& connection);
  void flush(Connection& connection) const;
  bool is_idle() const;
  bool is_done() const;
  bool is_measured() const {
    return phase_ == Phase::Measure || options_.operation == Operation::Fill;
  }

  const Options options_;
  const Dataset dataset_;
  RequestMaker maker_;
  int epoll_;
  std::deque<Connection> connections_;
  std::string input_;
  Report report_;
  Phase phase_ = Phase::WarmUp;
  int status_ = 0;
  bool has_more_ = true;
  std::uint64_t made_ = 0;
  std::uint64_t in_flight_ = 0;
  std::uint64_t now_ = 0;
  std::uint64_t start_ = 0;  // Of the run.
  std::uint64_t measure_start_ = 0;
  std::uint64_t measure_end_ = 0;  // Planned, then real.
  std::uint64_t last_byte_ = 0;
  double cpu_start_ = 0;
};

bool Generator::open(Connection& connection) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return false;
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(options_.port);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // A sockaddr_in is passed as a sockaddr; that is how the interface of sockets is meant.
  if (inet_pton(AF_INET, options_.host.c_str(), &address.sin_addr) != 1 ||
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
    close(fd);
    return false;
  }
  connection.fd = fd;
  connection.wants_write = false;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &connection;
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool Generator::connect_all() {
  for (std::size_t i = 0; i < options_.connections; ++i) {
    Connection& connection = connections_.emplace_back(options_.depth);
    if (!open(connection)) {
      ++report_.connect_failures;
      if (!options_.reconnect) {
        static_cast<void>(
            std::fprintf(stderr, "kvferry-load: connection %zu: %s\n", i, std::strerror(errno)));
        return false;
      }
      connection.retry_ns = now_nanos() + kReconnectPause;
    }
  }
  return true;
}

// An interval of the timeline also counts what happened while warming up and draining, since the
// tests that read it look at the whole run.
void Generator::on_answer(Connection& connection, bool is_good) {
  const Pending& pending = connection.window.oldest();
  if (is_measured()) {
    ++report_.answered;
    report_.hits += pending.hits;
    if (is_good && !pending.is_set) {
      report_.misses += pending.keys.size() - pending.hits;
    }
    report_.latencies.record(now_ - pending.sent_ns);
  }
  if (options_.timeline_seconds > 0) {
    const auto index =
        static_cast<std::size_t>((now_ - start_) / nanos_of(options_.timeline_seconds));
    if (index >= report_.timeline.size()) {
      report_.timeline.resize(index + 1);
    }
    ++(is_good ? report_.timeline[index].good : report_.timeline[index].bad);
  }
  connection.window.pop();
  --in_flight_;
}

void Generator::note_bad() {
  report_.last_bad_s = static_cast<double>(now_ - start_) / static_cast<double>(kNanosPerSecond);
}

void Generator::note_refusal(const Pending& pending, std::string_view text) {
  note_bad();
  ++report_.refused;
  count_text(report_.refusals, text);
  for (const std::uint32_t number : pending.keys) {
    if (options_.error_keys && report_.error_keys.size() < kErrorKeysMax) {
      report_.error_keys.insert(dataset_.key_of(number));
    }
  }
}

// False when the connection has ended.
bool Generator::take_step(Connection& connection, const ReplyStep& step) {
  switch (step.event) {
    case ReplyEvent::NeedMore:
    case ReplyEvent::Partial:
      return true;
    case ReplyEvent::Answered:
      on_answer(connection, true);
      return true;
    case ReplyEvent::Refused:
      note_refusal(connection.window.oldest(), step.text);
      on_answer(connection, false);
      return true;
    case ReplyEvent::Wrong:
      ++report_.wrong;
      count_text(report_.wrongs, step.text);
      if (!options_.verify) {
        status_ = 3;
      }
      on_end(connection);
      return false;
  }
  return true;
}

void Generator::read_replies(Connection& connection) {
  const std::string_view all = connection.unread;
  std::size_t used = 0;
  while (used < all.size()) {
    if (connection.window.size() == 0) {
      take_step(
          connection,
          {.event = ReplyEvent::Wrong, .used_bytes = 0, .text = "bytes that no request asked for"});
      return;
    }
    const ReplyStep step =
        read_reply(all.substr(used), options_.verify, dataset_, connection.window.oldest());
    if (step.event == ReplyEvent::NeedMore) {
      break;
    }
    used += step.used_bytes;
    if (!take_step(connection, step)) {
      return;
    }
  }
  connection.unread.erase(0, used);
}

void Generator::on_end(Connection& connection) {
  close(connection.fd);
  connection.fd = -1;
  connection.retry_ns = now_ + kReconnectPause;
  report_.lost += connection.window.size();
  in_flight_ -= connection.window.size();
  note_bad();
  ++report_.closed;
  if (!options_.reconnect && status_ == 0) {
    status_ = 3;
  }
  connection.window.clear();
  connection.unread.clear();
  connection.unsent.clear();
  connection.sent_bytes = 0;
}

void Generator::on_readable(Connection& connection) {
  const ssize_t size = recv(connection.fd, input_.data(), input_.size(), 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  now_ = now_nanos();
  if (size <= 0) {
    on_end(connection);
    return;
  }
  last_byte_ = now_;
  connection.unread.append(input_.data(), static_cast<std::size_t>(size));
  read_replies(connection);
  if (connection.fd >= 0) {
    refill(connection);
  }
}

void Generator::refill(Connection& connection) {
  if (phase_ == Phase::Drain || !connection.unsent.empty()) {
    return;
  }
  while (!connection.window.is_full()) {
    if (options_.requests_max != 0 && made_ == options_.requests_max) {
      has_more_ = false;
    }
    Pending& pending = connection.window.next_free();
    if (!has_more_ || !maker_.make(connection.unsent, pending)) {
      has_more_ = false;
      break;
    }
    pending.sent_ns = now_;
    connection.window.push();
    ++made_;
    ++in_flight_;
  }
  flush(connection);
}

void Generator::flush(Connection& connection) const {
  while (connection.sent_bytes < connection.unsent.size()) {
    const ssize_t size = send(connection.fd, connection.unsent.data() + connection.sent_bytes,
                              connection.unsent.size() - connection.sent_bytes, MSG_NOSIGNAL);
    if (size < 0) {
      // A broken connection also shows when it is read; it is handled there.
      break;
    }
    connection.sent_bytes += static_cast<std::size_t>(size);
  }
  const bool wants_write = connection.sent_bytes < connection.unsent.size();
  if (!wants_write) {
    connection.unsent.clear();
    connection.sent_bytes = 0;
  }
  if (wants_write != connection.wants_write) {
    epoll_event event{};
    event.events = EPOLLIN | (wants_write ? EPOLLOUT : 0U);
    event.data.ptr = &connection;
    epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.fd, &event);
    connection.wants_write = wants_write;
  }
}

void Generator::reopen_closed() {
  for (Connection& connection : connections_) {
    if (connection.fd >= 0 || now_ < connection.retry_ns) {
      continue;
    }
    if (open(connection)) {
      refill(connection);
    } else {
      ++report_.connect_failures;
      note_bad();
      connection.retry_ns = now_ + kReconnectPause;
    }
  }
}

bool Generator::is_idle() const {
  return in_flight_ == 0;
}

void Generator::finish_measuring() {
  measure_end_ = now_;
  report_.seconds =
      static_cast<double>(now_ - measure_start_) / static_cast<double>(kNanosPerSecond);
  report_.cpu_s = own_cpu_seconds() - cpu_start_;
  phase_ = Phase::Drain;
  if (options_.marks) {
    static_cast<void>(std::puts(R"({"mark":"stop"})"));
    static_cast<void>(std::fflush(stdout));
  }
}

void Generator::advance_phase() {
  if (phase_ == Phase::WarmUp && now_ >= measure_start_) {
    phase_ = Phase::Measure;
    measure_start_ = now_;
    cpu_start_ = own_cpu_seconds();
    if (options_.marks) {
      static_cast<void>(std::puts(R"({"mark":"start"})"));
      static_cast<void>(std::fflush(stdout));
    }
  }
  const bool ends_by_time = options_.operation != Operation::Fill && now_ >= measure_end_;
  if (phase_ == Phase::Measure && (ends_by_time || (!has_more_ && is_idle()))) {
    finish_measuring();
  }
}

bool Generator::is_done() const {
  return status_ != 0 ||
         (phase_ == Phase::Drain && (is_idle() || now_ >= measure_end_ + kDrainTime));
}

void Generator::turn() {
  std::array<epoll_event, 256> events{};
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), kWaitMillis);
  now_ = now_nanos();
  for (int i = 0; i < count && status_ == 0; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    Connection& connection = *static_cast<Connection*>(event.data.ptr);
    if (connection.fd >= 0 && (event.events & EPOLLOUT) != 0) {
      flush(connection);
    }
    if (connection.fd >= 0 && (event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) {
      on_readable(connection);
    }
  }
  if (options_.reconnect && phase_ != Phase::Drain) {
    reopen_closed();
  }
  if (phase_ != Phase::Drain && now_ - last_byte_ > nanos_of(options_.stall_seconds)) {
    static_cast<void>(
        std::fprintf(stderr, "kvferry-load: nothing came for %.1f s\n", options_.stall_seconds));
    status_ = 4;
  }
}

int Generator::run() {
  if (!connect_all()) {
    return 2;
  }
  now_ = last_byte_ = start_ = now_nanos();
  measure_start_ =
      start_ + (options_.operation == Operation::Fill ? 0 : nanos_of(options_.warmup_seconds));
  measure_end_ = measure_start_ + nanos_of(options_.seconds);
  advance_phase();
  for (Connection& connection : connections_) {
    if (connection.fd >= 0) {
      refill(connection);
    }
  }
  while (!is_done()) {
    turn();
    advance_phase();
  }
  report_.unanswered = in_flight_;
  static_cast<void>(std::puts(report_.to_json().c_str()));
  return status_;
}

}  // namespace
}  // namespace kvferry::load

int main(int argc, char** argv) {
  const auto options = kvferry::load::parse_options(argc, argv);
  return options ? kvferry::load::Generator(*options).run() : 1;
}
