// kvferry-hits: plays a generated trace against a memcached server, reading through it: a get, and
// on a miss a set. Prints the share of hits.
//
//   kvferry-hits --port PORT --trace NAME [--keys N] [--accesses N] [--seed N]
//
// Gets travel in batches that hold no key twice, so that each sees what the one before it has
// stored. A trace with TTLs is played at its own speed, since servers go by real seconds.
#include <arpa/inet.h>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <unordered_set>
#include <vector>

#include "hits/trace.h"

namespace kvferry::hits {
namespace {

constexpr std::size_t kBatch = 48;
constexpr std::size_t kReadBytes = std::size_t{256} * 1024;

struct Options {
  std::uint16_t port = 0;
  std::string trace;
  std::uint32_t keys = 1'000'000;
  std::uint64_t accesses = 4'000'000;
  std::uint64_t seed = 1;
};

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "kvferry-hits: %s\n", what);
  std::exit(1);
}

/// One connection that blocks.
class Server {
 public:
  explicit Server(std::uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      die("cannot connect");
    }
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() { close(socket_); }

  void send_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) {
        die("the server closed the connection");
      }
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  /// Whether the next get was a hit.
  bool read_reply() {
    std::string_view line = read_line();
    if (line == "END") {
      return false;
    }
    if (!line.starts_with("VALUE ")) {
      die("neither a value nor an end");
    }
    std::size_t value_bytes = 0;
    const std::string_view length = line.substr(line.rfind(' ') + 1);
    std::from_chars(length.data(), length.data() + length.size(), value_bytes);
    while (input_.size() - at_ < value_bytes + 2) {
      receive();
    }
    at_ += value_bytes + 2;
    if (read_line() != "END") {
      die("no end behind a value");
    }
    return true;
  }

 private:
  std::string_view read_line() {
    std::size_t end = 0;
    while ((end = input_.find("\r\n", at_)) == std::string::npos) {
      receive();
    }
    const std::string_view line = std::string_view(input_).substr(at_, end - at_);
    at_ = end + 2;
    return line;
  }
  void receive() {
    input_.erase(0, at_);
    at_ = 0;
    const std::size_t old_bytes = input_.size();
    input_.resize(old_bytes + kReadBytes);
    const ssize_t got = recv(socket_, input_.data() + old_bytes, kReadBytes, 0);
    if (got <= 0) {
      die("the server closed the connection");
    }
    input_.resize(old_bytes + static_cast<std::size_t>(got));
  }

  int socket_;
  std::string input_;
  std::size_t at_ = 0;
};

/// Counts what comes after the first third, which fills the cache.
class Player {
 public:
  Player(const Options& options, const TraceSpec& spec)
      : options_(options),
        spec_(spec),
        trace_(spec, options.seed),
        server_(options.port),
        filler_(64 * 1024, 'v') {}

  void play() {
    const auto began = std::chrono::steady_clock::now();
    std::uint32_t second = 0;
    for (std::uint64_t i = 0; i < options_.accesses; ++i) {
      const Access access = trace_.next();
      if (batch_.size() == kBatch || !in_batch_.insert(access.key).second) {
        finish_batch();
        in_batch_.insert(access.key);
      }
      if (spec_.has_ttls && access.second != second) {
        second = access.second;
        std::this_thread::sleep_until(began + std::chrono::seconds(second));
      }
      batch_.push_back({access, i >= options_.accesses / 3});
    }
    finish_batch();
    std::printf(
        "{\"trace\": \"%s\", \"counted\": %llu, \"hits\": %llu, \"hit_percent\": %.3f, "
        "\"seconds\": %.1f}\n",
        spec_.name.c_str(), static_cast<unsigned long long>(counted_),
        static_cast<unsigned long long>(hits_),
        100.0 * static_cast<double>(hits_) / static_cast<double>(counted_),
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }

 private:
  struct Asked {
    Access access;
    bool is_counted;
  };

  void finish_batch() {
    output_.swap(stores_);
    stores_.clear();
    for (const Asked& each : batch_) {
      output_ += "get ";
      append_key(each.access.key, output_);
      output_ += "\r\n";
    }
    server_.send_all(output_);
    for (const Asked& each : batch_) {
      const bool is_hit = server_.read_reply();
      counted_ += each.is_counted ? 1 : 0;
      hits_ += each.is_counted && is_hit ? 1 : 0;
      if (!is_hit) {
        append_set(each.access);
      }
    }
    output_.clear();
    batch_.clear();
    in_batch_.clear();
  }

  void append_set(const Access& access) {
    stores_ += "set ";
    append_key(access.key, stores_);
    stores_ += " 0 " + std::to_string(access.ttl_seconds) + " " +
               std::to_string(access.value_bytes) + " noreply\r\n";
    stores_.append(filler_, 0, access.value_bytes).append("\r\n");
  }

  const Options& options_;
  const TraceSpec& spec_;
  Trace trace_;
  Server server_;
  std::string filler_;
  std::vector<Asked> batch_;
  std::unordered_set<std::uint64_t> in_batch_;
  std::string output_;
  std::string stores_;  // For the misses of the last batch; they go out in front of the next.
  std::uint64_t counted_ = 0;
  std::uint64_t hits_ = 0;
};

std::optional<Options> read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const char* const text = argv[i + 1];
    const std::uint64_t number = std::strtoull(text, nullptr, 10);
    if (name == "--port") {
      options.port = static_cast<std::uint16_t>(number);
    } else if (name == "--trace") {
      options.trace = text;
    } else if (name == "--keys") {
      options.keys = static_cast<std::uint32_t>(number);
    } else if (name == "--accesses") {
      options.accesses = number;
    } else if (name == "--seed") {
      options.seed = number;
    } else {
      return std::nullopt;
    }
  }
  const bool is_sound = argc % 2 == 1 && options.port != 0 && options.keys > 0;
  return is_sound ? std::optional(options) : std::nullopt;
}

int run(int argc, char** argv) {
  const std::optional<Options> options = read_options(argc, argv);
  if (!options.has_value()) {
    std::fputs(
        "usage: kvferry-hits --port PORT --trace NAME [--keys N] [--accesses N] [--seed N]\n",
        stderr);
    return 2;
  }
  for (const TraceSpec& spec : standard_traces(options->keys)) {
    if (spec.name == options->trace) {
      Player(*options, spec).play();
      return 0;
    }
  }
  std::fputs("kvferry-hits: no such trace\n", stderr);
  return 2;
}

}  // namespace
}  // namespace kvferry::hits

int main(int argc, char** argv) {
  return kvferry::hits::run(argc, argv);
}
