#include "app/memcached_mode.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace kvferry::app {
namespace {

config::ListenerOptions listener(std::string host, std::uint16_t port) {
  config::ListenerOptions made;
  made.endpoint.host = std::move(host);
  made.endpoint.port = port;
  return made;
}

TEST(MemcachedMode, ResolvesWhereToListen) {
  const auto kept = resolve_listeners({listener("127.0.0.1", 5), listener("::1", 6)});
  ASSERT_TRUE(kept.has_value());
  ASSERT_EQ(kept->size(), 2U);
  EXPECT_EQ((*kept)[0].endpoint.to_string(), "127.0.0.1:5");
  EXPECT_EQ((*kept)[1].endpoint.to_string(), "[::1]:6");

  const auto everywhere = resolve_listeners({listener("", 5)});
  ASSERT_TRUE(everywhere.has_value());
  EXPECT_EQ(everywhere->front().endpoint.to_string(), "0.0.0.0:5");

  const auto any_port = resolve_listeners({listener("", 0)});
  ASSERT_TRUE(any_port.has_value());
  EXPECT_EQ(any_port->size(), 1U);
}

TEST(MemcachedMode, MakesOneStoreOfTheOptions) {
  MemcachedOptions options;
  options.workers = 2;
  options.idle_timeout_seconds = 7;
  options.listeners = {listener("127.0.0.1", 5)};
  options.listeners.front().protocol = config::ListenerProtocol::Memcache;
  const config::Model model = memcached_model(options);
  EXPECT_EQ(model.process.workers, 2U);
  EXPECT_EQ(model.process.store.memory_bytes, options.memory_bytes);
  ASSERT_EQ(model.pools.size(), 1U);
  EXPECT_EQ(model.pools.front().protocol, config::PoolProtocol::Store);
  EXPECT_EQ(model.pools.front().client_idle_timeout, base::Seconds(7));
  EXPECT_EQ(model.pools.front().listeners, options.listeners);
}

TEST(MemcachedMode, ReadsCredentials) {
  const test::TempFolder folder;
  const std::string path = folder.file("users");
  EXPECT_FALSE(read_credentials(path));
  folder.write("users", "alice\n");
  EXPECT_FALSE(read_credentials(path));
  folder.write("users", "alice:secret\n");
  const auto credentials = read_credentials(path);
  ASSERT_TRUE(credentials);
  EXPECT_TRUE((*credentials)->allow("alice secret"));
}

}  // namespace
}  // namespace kvferry::app
