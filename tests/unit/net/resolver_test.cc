#include "net/resolver.h"

#include <array>
#include <map>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <sys/socket.h>

#include "net/socket.h"
#include "tests/unit/net/loop_fixture.h"

namespace kvferry::net {
namespace {

constexpr std::size_t kDnsHeaderBytes = 12;
constexpr char kTypeA = 1;
constexpr char kTypeAaaa = 28;

/// A name server on the loop that knows what the test tells it.
class FakeServer {
 public:
  std::map<std::string, std::string> v4;  // Name to 4 bytes.
  std::map<std::string, std::string> v6;
  char ttl = 60;
  bool is_silent = false;
  int questions = 0;

  void start(Loop& loop) {
    fd_ = Fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const Address any = Address::from_ip("127.0.0.1", 0).value();
    ASSERT_EQ(bind(fd_.get(), any.get(), any.size()), 0);
    auto watch = loop.watch_fd(fd_.get(), POLLIN,
                               base::Delegate<void(unsigned)>::to<&FakeServer::on_question>(this));
    ASSERT_TRUE(watch.has_value());
    watch_ = std::move(watch).value();
  }
  std::string servers() const {
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }

 private:
  void on_question(unsigned) {
    std::array<char, 512> packet{};
    sockaddr_storage peer{};
    socklen_t peer_size = sizeof(peer);
    const ssize_t size = recvfrom(fd_.get(), packet.data(), packet.size(), 0,
                                  reinterpret_cast<sockaddr*>(&peer), &peer_size);
    ++questions;
    if (size <= static_cast<ssize_t>(kDnsHeaderBytes) || is_silent) {
      return;
    }
    const std::string answer = answer_to({packet.data(), static_cast<std::size_t>(size)});
    sendto(fd_.get(), answer.data(), answer.size(), 0, reinterpret_cast<sockaddr*>(&peer),
           peer_size);
  }

  std::string answer_to(std::string_view question) const {
    std::string name;
    std::size_t at = kDnsHeaderBytes;
    while (question[at] != 0) {
      const auto length = static_cast<std::size_t>(question[at]);
      name += (name.empty() ? "" : ".") + std::string(question.substr(at + 1, length));
      at += length + 1;
    }
    const char type = question[at + 2];
    const auto& known = type == kTypeA ? v4 : v6;
    const auto found = known.find(name);
    const bool exists = v4.contains(name) || v6.contains(name);
    std::string answer(question.substr(0, at + 5));
    answer[2] = static_cast<char>(0x81);                  // An answer.
    answer[3] = static_cast<char>(exists ? 0x80 : 0x83);  // Recursion available; NXDOMAIN.
    answer[7] = found != known.end() ? 1 : 0;
    answer[9] = answer[11] = 0;  // No additional records (the question may have had EDNS).
    if (found != known.end()) {
      answer += std::string("\xc0\x0c\0", 3) + type + std::string("\0\1\0\0\0", 5) + ttl + '\0' +
                static_cast<char>(found->second.size()) + found->second;
    }
    return answer;
  }

  Fd fd_;
  std::unique_ptr<FdWatch> watch_;
};

class ResolverTest : public LoopTest {
 protected:
  void SetUp() override {
    server_.start(*loop_);
    options_.servers = server_.servers();
    open();
  }
  void open() {
    auto made = Resolver::open(*loop_, options_);
    ASSERT_TRUE(made.has_value()) << made.error().text();
    resolver_ = std::move(made).value();
  }
  base::Result<Resolution> resolve(const std::string& host) {
    std::optional<base::Result<Resolution>> result;
    resolver_->resolve(host, 11211, [&](base::Result<Resolution> got) { result = std::move(got); });
    if (!result) {
      EXPECT_TRUE(run_until([&] { return result.has_value(); }));
    }
    return std::move(*result);
  }
  static std::vector<std::string> texts(const Resolution& resolution) {
    std::vector<std::string> all;
    for (const Address& address : resolution.addresses) {
      all.push_back(address.to_string());
    }
    return all;
  }

  FakeServer server_;
  ResolverOptions options_;
  std::unique_ptr<Resolver> resolver_;
};

TEST_P(ResolverTest, AnswersNumericHostsAtOnceWithoutAsking) {
  for (const char* host : {"10.1.2.3", "::1"}) {
    bool called = false;
    resolver_->resolve(host, 7, [&](base::Result<Resolution> got) {
      called = true;
      ASSERT_TRUE(got.has_value());
      EXPECT_EQ(got->addresses.size(), 1U);
      EXPECT_EQ(got->addresses[0], Address::from_ip(host, 7).value());
    });
    EXPECT_TRUE(called);
  }
  EXPECT_EQ(server_.questions, 0);
}

TEST_P(ResolverTest, GivesIpv4FirstThePortAndTheTtl) {
  server_.v4["cache.test"] = std::string("\x0a\0\0\x07", 4);
  server_.v6["cache.test"] = std::string(15, '\0') + "\x09";
  server_.ttl = 42;
  auto result = resolve("cache.test");
  ASSERT_TRUE(result.has_value()) << result.error().text();
  EXPECT_EQ(texts(*result), (std::vector<std::string>{"10.0.0.7:11211", "[::9]:11211"}));
  EXPECT_EQ(result->ttl, base::Seconds(42));
}

TEST_P(ResolverTest, OneFamilyIsEnough) {
  server_.v6["six.test"] = std::string(15, '\0') + "\x05";
  auto result = resolve("six.test");
  ASSERT_TRUE(result.has_value()) << result.error().text();
  EXPECT_EQ(texts(*result), (std::vector<std::string>{"[::5]:11211"}));
}

TEST_P(ResolverTest, UnknownNamesAreNotFound) {
  auto result = resolve("nowhere.test");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), base::ErrorCode::NotFound);
  EXPECT_NE(result.error().text().find("nowhere.test"), std::string::npos);
}

TEST_P(ResolverTest, TheHostsFileIsAskedFirst) {
  auto result = resolve("localhost");
  ASSERT_TRUE(result.has_value()) << result.error().text();
  EXPECT_EQ(result->addresses[0].to_string(), "127.0.0.1:11211");
  EXPECT_EQ(server_.questions, 0);
}

TEST_P(ResolverTest, SilentServersTimeOut) {
  server_.is_silent = true;
  options_.timeout = base::Millis(30);
  options_.tries = 2;
  open();
  auto result = resolve("slow.test");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), base::ErrorCode::TimedOut);
  EXPECT_GE(server_.questions, 2);
}

TEST_P(ResolverTest, ManyLookupsAtOnceAllEnd) {
  constexpr int kLookups = 50;
  int done = 0;
  for (int i = 0; i < kLookups; ++i) {
    const std::string host = "host" + std::to_string(i) + ".test";
    server_.v4[host] = std::string("\x0a\0\0", 3) + static_cast<char>(i);
    resolver_->resolve(host, 1, [&, i](base::Result<Resolution> got) {
      ASSERT_TRUE(got.has_value()) << got.error().text();
      EXPECT_EQ(got->addresses[0].to_string(), "10.0.0." + std::to_string(i) + ":1");
      ++done;
    });
  }
  ASSERT_TRUE(run_until([&] { return done == kLookups; }));
}

TEST_P(ResolverTest, LookupsOnTheirWayEndSilentlyWithTheResolver) {
  server_.is_silent = true;
  bool called = false;
  resolver_->resolve("slow.test", 1, [&](base::Result<Resolution>) { called = true; });
  loop_->run_turn(false);
  resolver_.reset();
  run_for(base::Millis(5));
  EXPECT_FALSE(called);
}

INSTANTIATE_TEST_SUITE_P(Engines, ResolverTest, testing::ValuesIn(kEngines), engine_name_of);

}  // namespace
}  // namespace kvferry::net
