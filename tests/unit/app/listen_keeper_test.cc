#include "app/listen_keeper.h"

#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace kvferry::app {
namespace {

config::ListenerOptions on_port(std::uint16_t port) {
  config::ListenerOptions listener;
  listener.endpoint.host = "127.0.0.1";
  listener.endpoint.port = port;
  return listener;
}

config::Model model_of(std::vector<config::ListenerOptions> listeners) {
  config::Model model;
  config::PoolConfig pool;
  pool.name = "alpha";
  pool.listeners = std::move(listeners);
  model.pools.push_back(std::move(pool));
  return model;
}

bool is_open(int fd) {
  return fcntl(fd, F_GETFD) != -1;
}

void close_all(const std::vector<int>& sockets) {
  for (const int socket : sockets) {
    if (socket >= 0) {
      close(socket);
    }
  }
}

TEST(ListenSet, OpensASocketOfOnePortForEachWorkerAndHandsEachOutOnce) {
  auto set = ListenSet::open(model_of({on_port(0)}), 3, ListenSet());
  ASSERT_TRUE(set.has_value()) << set.error().text();
  ASSERT_EQ(set->plans().size(), 1U);
  const ListenerPlan& plan = set->plans()[0];
  EXPECT_NE(plan.address.port(), 0) << "the bound port must be read back";
  EXPECT_EQ(plan.pool, "alpha");
  std::set<int> distinct;
  for (std::size_t worker = 0; worker < 3; ++worker) {
    const std::vector<int> sockets = set->take_sockets(worker);
    ASSERT_EQ(sockets.size(), 1U);
    sockaddr_storage storage{};
    socklen_t size = sizeof(storage);
    ASSERT_EQ(getsockname(sockets[0], reinterpret_cast<sockaddr*>(&storage), &size), 0);
    EXPECT_EQ(net::Address(reinterpret_cast<sockaddr*>(&storage), size), plan.address);
    distinct.insert(sockets[0]);
    EXPECT_EQ(set->take_sockets(worker), std::vector<int>{-1});
    close_all(sockets);
  }
  EXPECT_FALSE(distinct.empty());
}

// An assignment would overwrite sockets that were not handed out.
static_assert(!std::is_move_assignable_v<ListenSet> && !std::is_copy_assignable_v<ListenSet>);

TEST(ListenSet, ClosesWhatWasNotHandedOut) {
  int socket = -1;
  std::uint16_t port = 0;
  {
    auto set = ListenSet::open(model_of({on_port(0)}), 2, ListenSet());
    ASSERT_TRUE(set.has_value());
    port = set->plans()[0].address.port();
    socket = set->take_sockets(0)[0];
  }
  EXPECT_TRUE(is_open(socket)) << "it belongs to the worker";
  close(socket);
  // Nobody listens any more, so the port can be had alone.
  auto again = ListenSet::open(model_of({on_port(port)}), 1, ListenSet());
  EXPECT_TRUE(again.has_value());
}

TEST(ListenSet, KeepsListenersThatAreThereAlready) {
  config::Model model = model_of({on_port(0)});
  model.pools[0].listeners[0].max_clients = 10;
  auto before = ListenSet::open(model, 1, ListenSet());
  ASSERT_TRUE(before.has_value());
  close_all(before->take_sockets(0));
  model.pools[0].listeners.push_back(on_port(0));
  model.pools[0].listeners[1].endpoint.host = "127.0.0.2";
  auto after = ListenSet::open(model, 1, *before);
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(after->plans()[0].address, before->plans()[0].address);
  EXPECT_EQ(after->plans()[0].clients, before->plans()[0].clients) << "clients are counted on";
  const std::vector<int> sockets = after->take_sockets(0);
  EXPECT_EQ(sockets[0], -1);
  EXPECT_GE(sockets[1], 0);
  close_all(sockets);
}

TEST(ListenSet, AnAddressThatIsTakenRefusesTheWholeAndChangesNothing) {
  config::Model model = model_of({on_port(0)});
  model.pools[0].listeners[0].max_clients = 1;
  auto before = ListenSet::open(model, 1, ListenSet());
  ASSERT_TRUE(before.has_value());
  auto stranger = ListenSet::open(model_of({on_port(0)}), 1, ListenSet());
  ASSERT_TRUE(stranger.has_value());
  config::Model wanted = model;
  wanted.pools[0].listeners[0].max_clients = 2;
  wanted.pools[0].listeners.push_back(on_port(stranger->plans()[0].address.port()));
  EXPECT_FALSE(ListenSet::open(wanted, 1, *before).has_value());
  front::ClientLimit& limit = *before->plans()[0].clients;
  EXPECT_TRUE(limit.try_enter());
  EXPECT_FALSE(limit.try_enter()) << "the limit of a configuration that was refused holds";
}

TEST(ListenSet, ANewLimitOfClientsHoldsOnceItIsAdopted) {
  config::Model model = model_of({on_port(0)});
  model.pools[0].listeners[0].max_clients = 1;
  auto before = ListenSet::open(model, 1, ListenSet());
  ASSERT_TRUE(before.has_value());
  model.pools[0].listeners[0].max_clients = 2;
  auto after = ListenSet::open(model, 1, *before);
  ASSERT_TRUE(after.has_value());
  after->adopt();
  front::ClientLimit& limit = *before->plans()[0].clients;
  EXPECT_TRUE(limit.try_enter());
  EXPECT_TRUE(limit.try_enter());
  EXPECT_FALSE(limit.try_enter());
}

TEST(ListenSet, UnixSocketsAreSharedAndHaveTheirMode) {
  const test::TempFolder folder;
  config::ListenerOptions listener;
  listener.endpoint.path = folder.file("s");
  listener.endpoint.mode = 0620;
  auto set = ListenSet::open(model_of({listener}), 2, ListenSet());
  ASSERT_TRUE(set.has_value()) << set.error().text();
  struct stat status{};
  ASSERT_EQ(stat(listener.endpoint.path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0620U);
  EXPECT_TRUE(set->plans()[0].address.is_unix());
  const int first = set->take_sockets(0)[0];
  const int second = set->take_sockets(1)[0];
  EXPECT_NE(first, second);
  EXPECT_TRUE(is_open(first) && is_open(second));
  close_all({first, second});
}

TEST(ListenSet, AHostThatIsNoAddressIsRefused) {
  config::ListenerOptions listener = on_port(0);
  listener.endpoint.host = "no-such-name.invalid";
  EXPECT_FALSE(ListenSet::open(model_of({listener}), 1, ListenSet()).has_value());
  listener.endpoint.host = "localhost";
  EXPECT_TRUE(ListenSet::open(model_of({listener}), 1, ListenSet()).has_value());
}

TEST(ListenSet, ServiceOptionsFollowThePool) {
  config::Model model = model_of({on_port(0), on_port(0)});
  model.pools[0].listeners[1].endpoint.host = "127.0.0.2";
  model.pools[0].listeners[1].is_admin = true;
  model.pools[0].client_idle_timeout = base::Millis(5000);
  model.pools[0].options.stall_timeout = base::Millis(123);
  model.pools[0].options.body_timeout = base::Millis(456);
  model.process.item_bytes_max = 77;
  config::PoolConfig store;
  store.name = "cache";
  store.protocol = config::PoolProtocol::Store;
  store.listeners = {on_port(0)};
  store.listeners[0].endpoint.host = "127.0.0.3";
  model.process.store.item_bytes_max = 55;
  model.pools.push_back(store);
  auto set = ListenSet::open(model, 1, ListenSet());
  ASSERT_TRUE(set.has_value());
  const front::ServiceOptions& plain = set->plans()[0].service;
  EXPECT_FALSE(plain.allows_admin);
  EXPECT_EQ(plain.words, memcache::ErrorWords::Proxy);
  EXPECT_EQ(plain.parser.value_bytes_max, 77U);
  EXPECT_EQ(plain.stall_timeout, base::Millis(123));
  EXPECT_EQ(plain.body_timeout, base::Millis(456));
  EXPECT_EQ(plain.idle_timeout, base::Seconds(5));
  EXPECT_TRUE(set->plans()[1].service.allows_admin);
  const ListenerPlan& cache = set->plans()[2];
  EXPECT_EQ(cache.pool, "");
  EXPECT_TRUE(cache.service.allows_admin);
  EXPECT_EQ(cache.service.words, memcache::ErrorWords::Store);
  EXPECT_EQ(cache.service.parser.value_bytes_max, 55U);
}

}  // namespace
}  // namespace kvferry::app
