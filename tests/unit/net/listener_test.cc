#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/loop.h"
#include "net/socket.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/net/loop_fixture.h"

namespace kvferry::net {
namespace {

class ListenerTest : public LoopTest {
 protected:
  void expect_echo(const Address& address) {
    acceptor_.echoes = true;
    Recorder client;
    connect(client, address);
    client.stream->write("round trip");
    ASSERT_TRUE(run_until([&] { return client.data == "round trip" || client.closes != 0; }));
    EXPECT_EQ(client.closes, 0) << client.error;
  }
  int connect_error(const Address& address) {
    Recorder client;
    connect(client, address);
    EXPECT_TRUE(run_until([&] { return client.closes == 1 || client.is_connected; }));
    return client.error;
  }

  Acceptor acceptor_;
  test::TempFolder dir_;
};

TEST_P(ListenerTest, BindsTheRealPortAndEchoes) {
  auto listener = listen(loopback(), acceptor_);
  EXPECT_NE(listener->address().port(), 0);
  expect_echo(listener->address());
}

TEST_P(ListenerTest, ServesIpv6BesideIpv4OnOnePort) {
  auto v6 = listen(Address::from_ip("::", 0).value(), acceptor_);
  const std::uint16_t port = v6->address().port();
  auto v4 = listen(Address::from_ip("0.0.0.0", port).value(), acceptor_);
  ASSERT_NE(v4, nullptr);
  expect_echo(Address::from_ip("::1", port).value());
  expect_echo(loopback(port));
  EXPECT_EQ(acceptor_.peers.at(0).family(), AF_INET6);
  EXPECT_EQ(acceptor_.peers.at(1).family(), AF_INET);
}

TEST_P(ListenerTest, UnixSocketHasItsModeAndItsFileGoesWithTheListener) {
  const std::string path = dir_.file("socket");
  const Address address = Address::from_path(path).value();
  ListenOptions options;
  options.unix_mode = 0766;
  auto listener = listen(address, acceptor_, options);
  ASSERT_NE(listener, nullptr);
  struct stat status{};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0766U);
  EXPECT_EQ(listener->address().to_string(), path);
  expect_echo(address);
  listener.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(connect_error(address), ENOENT);
}

TEST_P(ListenerTest, APausedStreamWhoseUnixPeerLeftNeitherSpinsNorLosesBytes) {
  const Address address = Address::from_path(dir_.file("socket")).value();
  auto listener = listen(address, acceptor_);
  Recorder client;
  connect(client, address);
  ASSERT_TRUE(run_until([&] { return client.is_connected && acceptor_.accepted.size() == 1; }));
  Recorder& reader = *acceptor_.accepted[0];
  reader.stream->pause_reading();
  loop_->run_turn(false);
  client.stream->write("still to be read");
  loop_->run_turn(false);
  loop_->run_turn(false);
  client.stream.reset();
  EXPECT_LE(turns_in(base::Millis(60)), 40);
  EXPECT_EQ(reader.data, "");
  reader.stream->resume_reading();
  ASSERT_TRUE(run_until([&] { return reader.ends == 1; }));
  EXPECT_EQ(reader.data, "still to be read");
  EXPECT_LE(turns_in(base::Millis(60)), 40);
}

TEST_P(ListenerTest, AStaleUnixSocketIsReplacedALivingOneIsNot) {
  const Address address = Address::from_path(dir_.file("socket")).value();
  auto first = listen(address, acceptor_);
  auto second = loop_->listen(address, {}, acceptor_);
  ASSERT_FALSE(second.has_value());
  EXPECT_NE(second.error().text().find("in use"), std::string::npos) << second.error().text();
  expect_echo(address);
  first.reset();

  auto stale = open_listening_socket(address, {});
  ASSERT_TRUE(stale.has_value());
  ::close(*stale);
  ASSERT_TRUE(std::filesystem::exists(dir_.file("socket")));
  auto third = listen(address, acceptor_);
  ASSERT_NE(third, nullptr);
  expect_echo(address);
}

TEST_P(ListenerTest, AFileThatIsNoSocketIsNeverRemoved) {
  const std::string path = dir_.file("precious");
  const Fd file(::open(path.c_str(), O_CREAT | O_WRONLY, 0600));
  auto made = loop_->listen(Address::from_path(path).value(), {}, acceptor_);
  EXPECT_FALSE(made.has_value());
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_P(ListenerTest, AFileThatSomebodyElseBoundSinceIsLeftAlone) {
  const std::string path = dir_.file("socket");
  const Address address = Address::from_path(path).value();
  auto first = listen(address, acceptor_);
  std::filesystem::remove(path);
  Acceptor other;
  auto second = listen(address, other);
  first.reset();
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_P(ListenerTest, TwoListenersShareAPortOnlyWhenBothAllowIt) {
  auto first = listen(loopback(), acceptor_);
  auto second = listen(first->address(), acceptor_);
  EXPECT_NE(second, nullptr);
  ListenOptions alone;
  alone.reuse_port = false;
  auto refused = loop_->listen(first->address(), alone, acceptor_);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().text().find(first->address().to_string()), std::string::npos);

  auto exclusive = listen(loopback(), acceptor_, alone);
  EXPECT_FALSE(loop_->listen(exclusive->address(), {}, acceptor_).has_value());
}

TEST_P(ListenerTest, TakesOverAnInheritedSocket) {
  auto socket = open_listening_socket(loopback(), {});
  ASSERT_TRUE(socket.has_value());
  auto listener = loop_->listen(loopback(), {}, acceptor_, *socket);
  ASSERT_TRUE(listener.has_value());
  EXPECT_NE((*listener)->address().port(), 0);
  expect_echo((*listener)->address());
}

TEST_P(ListenerTest, APausedListenerLeavesConnectionsToTheKernel) {
  auto listener = listen(loopback(), acceptor_);
  run_for(base::Millis(2));
  listener->pause();
  run_for(base::Millis(2));
  Recorder client;
  connect(client, listener->address());
  ASSERT_TRUE(run_until([&] { return client.is_connected; }));
  run_for(base::Millis(10));
  EXPECT_EQ(acceptor_.peers.size(), 0U);
  listener->resume();
  ASSERT_TRUE(run_until([&] { return acceptor_.peers.size() == 1; }));
  listener->pause();
  listener->resume();
  expect_echo(listener->address());
}

TEST_P(ListenerTest, RefusedAndUnreachableConnectsAreReportedLater) {
  auto listener = listen(loopback(), acceptor_);
  const Address address = listener->address();
  listener.reset();
  EXPECT_EQ(connect_error(address), ECONNREFUSED);
  EXPECT_EQ(connect_error(Address::from_path(dir_.file("nobody")).value()), ENOENT);
  // A broadcast address refuses a TCP connect on the spot.
  const int error = connect_error(Address::from_ip("255.255.255.255", 1).value());
  EXPECT_NE(error, 0);
}

TEST_P(ListenerTest, HandlersMayDropTheStreamTheyAreGiven) {
  auto listener = listen(loopback(), acceptor_);
  int dropped = 0;
  acceptor_.instead = [&](StreamPtr& stream) {
    stream.reset();
    return ++dropped > 0;
  };
  Recorder client;
  connect(client, listener->address());
  ASSERT_TRUE(run_until([&] { return client.ends + client.closes > 0; }));
  EXPECT_EQ(dropped, 1);
}

TEST_P(ListenerTest, HandlersMayCloseTheListenerThatCalls) {
  auto listener = listen(loopback(), acceptor_);
  int taken = 0;
  acceptor_.instead = [&](StreamPtr& stream) {
    listener.reset();
    stream.reset();
    return ++taken > 0;
  };
  std::array<Recorder, 5> clients;
  for (Recorder& client : clients) {
    connect(client, listener->address());
  }
  ASSERT_TRUE(run_until([&] { return taken > 0; }));
  ASSERT_TRUE(run_until([&] {
    int gone = 0;
    for (Recorder& client : clients) {
      gone += client.ends + client.closes > 0 ? 1 : 0;
    }
    return gone == 5;
  }));
  EXPECT_EQ(taken, 1);
}

TEST_P(ListenerTest, TakesNoMoreThanItsBatchInOneTurn) {
  ListenOptions options;
  options.accepts_per_turn = 3;
  auto listener = listen(loopback(), acceptor_, options);
  std::array<Recorder, 10> clients;
  for (Recorder& client : clients) {
    connect(client, listener->address());
  }
  std::size_t before = 0;
  ASSERT_TRUE(run_until([&] {
    EXPECT_LE(acceptor_.peers.size(), before + 3);
    before = acceptor_.peers.size();
    return before == clients.size();
  }));
}

/// Lowers the limit of open files, and puts it back.
class FileLimit {
 public:
  explicit FileLimit(rlim_t limit) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit lower = before_;
    lower.rlim_cur = limit;
    setrlimit(RLIMIT_NOFILE, &lower);
  }
  ~FileLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// Whether somebody listens cannot be tried without a descriptor.
TEST_P(ListenerTest, ALivingUnixSocketKeepsItsFileAtTheEndOfDescriptors) {
  const std::string path = dir_.file("socket");
  const Address address = Address::from_path(path).value();
  auto first = listen(address, acceptor_);
  {
    Fd lowest(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const FileLimit limit(static_cast<rlim_t>(lowest.get()) + 1);
    lowest.reset();
    // There is one for the new socket alone.
    const auto second = open_listening_socket(address, {});
    ASSERT_FALSE(second.has_value());
    EXPECT_NE(second.error().text().find("in use"), std::string::npos) << second.error().text();
  }
  expect_echo(address);
}

TEST_P(ListenerTest, AnAddressIsUnusedUntilSomebodyListensThere) {
  auto listener = listen(loopback(), acceptor_);
  const Address address = listener->address();
  const auto used = check_unused(address);
  ASSERT_FALSE(used.has_value());
  EXPECT_NE(used.error().text().find("in use"), std::string::npos) << used.error().text();
  listener.reset();
  for (int turn = 0; turn < 4; ++turn) {
    loop_->run_turn(false);
  }
  EXPECT_TRUE(check_unused(address).has_value());
  // It lets nobody in: the address is as unused afterwards as before.
  EXPECT_TRUE(check_unused(address).has_value());
}

TEST_P(ListenerTest, SurvivesTheEndOfDescriptors) {
  // The client is a plain socket, made before descriptors run out; its connection waits in the
  // kernel.
  const Fd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // io_uring notes the limit when an accept is armed, so it is lowered first.
  const FileLimit limit(static_cast<rlim_t>(client.get()) + 20);
  auto listener = listen(loopback(), acceptor_);
  // Everything that runs below has run before: the sanitizer needs descriptors for what it sees
  // first.
  expect_echo(listener->address());
  const std::size_t before = acceptor_.peers.size();
  run_for(base::Millis(2));
  std::vector<Fd> all;
  for (int fd = dup(client.get()); fd >= 0; fd = dup(client.get())) {
    all.emplace_back(fd);
  }
  ASSERT_EQ(errno, EMFILE);
  const Address address = listener->address();
  ASSERT_EQ(::connect(client.get(), address.get(), address.size()), 0);
  EXPECT_LE(turns_in(base::Millis(150)), 60);
  EXPECT_EQ(acceptor_.peers.size(), before);
  all.clear();
  ASSERT_TRUE(run_until([&] { return acceptor_.peers.size() == before + 1; }));
  expect_echo(listener->address());
}

TEST_P(ListenerTest, ThousandsOfConnectionsEchoAndLeaveNothing) {
  constexpr std::size_t kClients = 2000;
  acceptor_.echoes = true;
  auto listener = listen(loopback(), acceptor_);
  std::vector<std::unique_ptr<Recorder>> clients;
  std::size_t answered = 0;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<Recorder>());
    clients.back()->then_data = [&](std::string_view bytes) { answered += bytes.size(); };
    connect(*clients.back(), listener->address());
    clients.back()->stream->write("0123456789");
    if (i % 100 == 99) {
      ASSERT_TRUE(run_until([&] { return answered == (i + 1) * 10; }));
    }
  }
  loop_->run_turn(false);
  EXPECT_EQ(loop_->blocks().live_bytes(), 0U);
  EXPECT_EQ(loop_->stream_count(), 2 * kClients);
  for (auto& client : clients) {
    client->stream->write("again");
  }
  ASSERT_TRUE(run_until([&] { return answered == kClients * 15; }));
  clients.clear();
  ASSERT_TRUE(run_until([&] {
    std::size_t ended = 0;
    for (auto& server : acceptor_.accepted) {
      ended += static_cast<std::size_t>(server->ends);
    }
    return ended == kClients;
  }));
  acceptor_.accepted.clear();
  ASSERT_TRUE(run_until([&] { return loop_->stream_count() == 0; }));
}

INSTANTIATE_TEST_SUITE_P(Engines, ListenerTest, testing::ValuesIn(kEngines), engine_name_of);

}  // namespace
}  // namespace kvferry::net
