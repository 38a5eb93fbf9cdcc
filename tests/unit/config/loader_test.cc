#include "config/loader.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "config/text_file.h"
#include "tests/support/temp_folder.h"

namespace kvferry::config {
namespace {

using base::Millis;

constexpr std::string_view kMinimal =
    "alpha:\n  listen: 127.0.0.1:22121\n  servers:\n    - 10.0.0.1:11211:1\n";

Loaded read(std::string_view text) {
  return load_text("t.yml", std::string(text));
}

Model model_of(std::string_view text) {
  Loaded loaded = read(text);
  EXPECT_TRUE(loaded.model) << loaded.text();
  return loaded.model.value_or(Model{});
}

std::vector<std::string> codes_of(const Loaded& loaded) {
  std::vector<std::string> codes;
  for (const Problem& problem : loaded.problems) {
    codes.push_back(problem.code);
  }
  return codes;
}

TEST(Loader, GivesANutcrackerPoolTwemproxysDefaults) {
  const Model model = model_of(kMinimal);
  ASSERT_EQ(model.pools.size(), 1U);
  const PoolConfig& pool = model.pools[0];
  EXPECT_EQ(pool.name, "alpha");
  EXPECT_EQ(pool.dialect, Dialect::Nutcracker);
  EXPECT_EQ(pool.protocol, PoolProtocol::Memcache);
  ASSERT_EQ(pool.listeners.size(), 1U);
  EXPECT_EQ(pool.listeners[0].backlog, 512U);
  EXPECT_EQ(pool.listeners[0].max_clients, 0U);
  EXPECT_FALSE(pool.listeners[0].is_admin);
  EXPECT_FALSE(pool.listeners[0].reuse_port);
  const pool::PoolOptions& options = pool.options;
  EXPECT_EQ(options.placement.hash, pool::HashKind::Fnv1a_64);
  EXPECT_EQ(options.placement.distribution, pool::DistributionKind::Ketama);
  EXPECT_EQ(options.placement.naming, pool::KetamaNaming::Twemproxy);
  EXPECT_EQ(options.placement.hash_tag, "");
  EXPECT_TRUE(options.placement.weights_given);
  EXPECT_EQ(options.timeout, std::nullopt);
  EXPECT_FALSE(options.tcpkeepalive);
  EXPECT_FALSE(options.preconnect);
  EXPECT_EQ(options.server_connections, 1U);
  EXPECT_EQ(options.on_down, pool::OnDown::Keep);
  EXPECT_EQ(options.retry_timeout, Millis(30000));
  EXPECT_EQ(options.failure_limit, 2U);
  EXPECT_EQ(options.on_partial, pool::OnPartial::Error);
  EXPECT_EQ(options.error_style, pool::ErrorStyle::Twemproxy);
}

TEST(Loader, ReadsEveryKeyOfTwemproxy) {
  const Model model = model_of(
      "a:\n  listen: /run/a.sock 0660\n  client_connections: 1000\n  hash: hsieh\n"
      "  hash_tag: \"{}\"\n  distribution: modula\n  timeout: 400\n  backlog: 1024\n"
      "  tcpkeepalive: true\n  reuseport: true\n  preconnect: true\n  redis: false\n"
      "  redis_db: 0\n  server_connections: 3\n  auto_eject_hosts: true\n"
      "  server_retry_timeout: 2000\n  server_failure_limit: 1\n"
      "  servers:\n    - 10.0.0.1:11211:1 r1\n    - 10.0.0.2:11212:2\n    - /tmp/b.sock:3\n");
  const PoolConfig& pool = model.pools.at(0);
  const ListenerOptions& listener = pool.listeners.at(0);
  EXPECT_EQ(listener.endpoint.path, "/run/a.sock");
  EXPECT_EQ(listener.endpoint.mode, 0660U);
  EXPECT_EQ(listener.max_clients, 1000U);
  EXPECT_EQ(listener.backlog, 1024U);
  EXPECT_TRUE(listener.reuse_port);
  const pool::PoolOptions& options = pool.options;
  EXPECT_EQ(options.placement.hash, pool::HashKind::Hsieh);
  EXPECT_EQ(options.placement.distribution, pool::DistributionKind::Modula);
  EXPECT_EQ(options.placement.hash_tag, "{}");
  EXPECT_EQ(options.timeout, Millis(400));
  EXPECT_TRUE(options.tcpkeepalive);
  EXPECT_TRUE(options.preconnect);
  EXPECT_EQ(options.server_connections, 3U);
  EXPECT_EQ(options.on_down, pool::OnDown::Rehash);
  EXPECT_EQ(options.retry_timeout, Millis(2000));
  EXPECT_EQ(options.failure_limit, 1U);
  ASSERT_EQ(options.servers.size(), 3U);
  EXPECT_EQ(options.servers[0].label, "r1");
  EXPECT_EQ(options.servers[1].label, "10.0.0.2:11212");
  EXPECT_EQ(options.servers[1].weight, 2U);
  EXPECT_EQ(options.servers[2].point_label, "/tmp/b.sock:");
  EXPECT_EQ(options.servers[2].line, 21U);
}

TEST(Loader, GivesOurDialectItsOwnDefaults) {
  for (const char* mark : {"dialect: kvferry", "protocol: memcache"}) {
    const Model model = model_of("a:\n  " + std::string(mark) +
                                 "\n  listen: 127.0.0.1:0\n  servers: [10.0.0.1:11211]\n");
    pool::PoolOptions expected;
    expected.name = "a";
    expected.timeout = Millis(1000);
    expected.placement.weights_given = false;
    expected.servers = model.pools.at(0).options.servers;
    EXPECT_EQ(model.pools.at(0).options, expected) << mark;
    EXPECT_EQ(model.pools.at(0).dialect, Dialect::Kvferry);
  }
}

TEST(Loader, KnowsWeightsAsGivenWhenOneServerHasOne) {
  const Model model =
      model_of("a:\n  protocol: memcache\n  listen: 127.0.0.1:1\n  servers: [h:1, \"i:1:2\"]\n");
  EXPECT_TRUE(model.pools.at(0).options.placement.weights_given);
}

TEST(Loader, ZeroTimeoutWaitsForEver) {
  const Loaded loaded = read(std::string(kMinimal) + "  timeout: 0\n");
  ASSERT_TRUE(loaded.model);
  EXPECT_EQ(loaded.model->pools[0].options.timeout, std::nullopt);
  EXPECT_EQ(codes_of(loaded), std::vector<std::string>{"N02"});
  EXPECT_EQ(codes_of(read(std::string(kMinimal) + "  timeout: 1\n")), std::vector<std::string>{});
}

TEST(Loader, OnDownWinsOverAutoEjectHosts) {
  const Model model =
      model_of(std::string(kMinimal) + "  auto_eject_hosts: true\n  on_down: keep\n");
  EXPECT_EQ(model.pools[0].options.on_down, pool::OnDown::Keep);
}

TEST(Loader, OpensSeveralListeners) {
  const Model model = model_of(
      "a:\n  protocol: store\n  backlog: 100\n  client_connections: 7\n  listen:\n"
      "    - 127.0.0.1:1\n    - {address: \"[::1]:2\", admin: true, max_clients: 9, backlog: 5}\n");
  const std::vector<ListenerOptions>& listeners = model.pools.at(0).listeners;
  ASSERT_EQ(listeners.size(), 2U);
  EXPECT_EQ(listeners[0].backlog, 100U);
  EXPECT_EQ(listeners[0].max_clients, 7U);
  EXPECT_FALSE(listeners[0].is_admin);
  EXPECT_EQ(listeners[1].endpoint.host, "::1");
  EXPECT_EQ(listeners[1].backlog, 5U);
  EXPECT_EQ(listeners[1].max_clients, 9U);
  EXPECT_TRUE(listeners[1].is_admin);
  EXPECT_EQ(model.pools[0].protocol, PoolProtocol::Store);
}

TEST(Loader, ReadsTheProcess) {
  const Model model = model_of(
      "kvferry:\n  workers: 4\n  io: epoll\n  memory_limit: 2gb\n  item_size_max: 8mb\n"
      "  drain_timeout: 5s\n  watch: true\n  reload_on_hup: false\n"
      "  log: {file: /var/log/k.log, level: debug, format: json}\n"
      "  admin: {listen: 127.0.0.1:9115, token: env:TOKEN}\n"
      "  store: {memory: 256mb, item_size_max: 4mb}\n");
  const ProcessOptions& process = model.process;
  EXPECT_EQ(process.workers, 4U);
  EXPECT_EQ(process.io, IoEngine::Epoll);
  EXPECT_EQ(process.memory_limit_bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(process.item_bytes_max, std::uint64_t{8} << 20);
  EXPECT_EQ(process.drain_timeout, Millis(5000));
  EXPECT_TRUE(process.watch);
  EXPECT_FALSE(process.reload_on_hup);
  EXPECT_EQ(process.log.file, "/var/log/k.log");
  EXPECT_EQ(process.log.level, base::LogLevel::Debug);
  EXPECT_EQ(process.log.format, base::LogFormat::Json);
  ASSERT_TRUE(process.admin);
  EXPECT_EQ(process.admin->endpoint.to_string(), "127.0.0.1:9115");
  EXPECT_EQ(process.admin->token, (Secret{Secret::Kind::Environment, "TOKEN"}));
  EXPECT_EQ(process.store.memory_bytes, std::uint64_t{256} << 20);
  EXPECT_EQ(process.store.item_bytes_max, std::uint64_t{4} << 20);
}

TEST(Loader, MergesTheProcessOverFilesAndRefusesRepetition) {
  const NamedText first{"a.yml", "kvferry: {workers: 2, log: {level: debug}}\n"};
  const Loaded merged =
      load_texts({first, {"b.yml", "kvferry: {io: epoll, log: {format: json}}\n"}});
  ASSERT_TRUE(merged.model) << merged.text();
  EXPECT_EQ(merged.model->process.workers, 2U);
  EXPECT_EQ(merged.model->process.log.level, base::LogLevel::Debug);
  EXPECT_EQ(merged.model->process.log.format, base::LogFormat::Json);

  const Loaded repeated = load_texts({first, {"b.yml", "kvferry:\n  log: {level: info}\n"}});
  EXPECT_FALSE(repeated.model);
  ASSERT_EQ(repeated.problems.size(), 1U);
  EXPECT_EQ(headline(repeated.problems[0]),
            "b.yml:2:9: error: 'level' is given twice; first at a.yml:1");
}

TEST(Loader, RefusesPoolsAndAddressesThatAreInTwoFiles) {
  const Loaded loaded = load_texts(
      {{"a.yml", std::string(kMinimal)},
       {"b.yml", std::string(kMinimal)},
       {"c.yml", "beta:\n  listen: 127.0.0.1:22121\n  servers:\n    - 10.0.0.1:11211:1\n"}});
  std::vector<std::string> lines;
  for (const Problem& problem : loaded.problems) {
    if (problem.severity == Severity::Error) {
      lines.push_back(headline(problem));
    }
  }
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "b.yml:1:1: error: pool 'alpha' is defined twice; first at a.yml:1",
                       "c.yml:2:11: error: pool 'beta': address 127.0.0.1:22121 is already used "
                       "by pool 'alpha' (a.yml:2)"}));
}

TEST(Loader, ReadsRedisPoolsAsTwemproxyMeansThem) {
  const std::string text =
      std::string(kMinimal) + "  redis: true\n  redis_auth: pw\n  redis_db: 3\n";
  const Loaded loaded = load_text("t.yml", text);
  ASSERT_TRUE(loaded.model) << loaded.text();
  EXPECT_TRUE(loaded.model->pools[0].is_redis());
  EXPECT_EQ(loaded.model->pools[0].redis_auth, (Secret{Secret::Kind::Text, "pw"}));
  EXPECT_EQ(loaded.model->pools[0].options.protocol, pool::Protocol::Redis);
  EXPECT_EQ(loaded.model->pools[0].options.redis.databases, 1U);
  EXPECT_EQ(loaded.model->pools[0].options.redis.db_base, 3U);
}

TEST(Loader, PoolsAreEqualWhereverTheyStand) {
  const Model here = model_of(kMinimal);
  const Model there = model_of("# moved\n\n" + std::string(kMinimal));
  EXPECT_EQ(here, there);
  EXPECT_NE(here, model_of(std::string(kMinimal) + "    - 10.0.0.2:11211:1\n"));
  EXPECT_NE(here, model_of(std::string(kMinimal) + "  backlog: 511\n"));
}

TEST(Loader, BoundsTheNumberOfServers) {
  const auto pool_of = [](std::size_t servers) {
    std::string text = "a:\n  listen: 127.0.0.1:1\n  distribution: modula\n  servers:\n";
    for (std::size_t index = 0; index < servers; ++index) {
      text += "    - h" + std::to_string(index) + ":1:1\n";
    }
    return text;
  };
  EXPECT_TRUE(read(pool_of(4095)).model);
  EXPECT_TRUE(read(pool_of(4096)).model);
  EXPECT_EQ(codes_of(read(pool_of(4097))), std::vector<std::string>{"E-range"});
}

TEST(Loader, ReadsDirectoriesInTheOrderOfNames) {
  const test::TempFolder folder;
  folder.write("b.yml", "beta:\n  listen: 127.0.0.1:2\n  servers: [\"h:1:1\"]\n");
  folder.write("a.yml", "alpha:\n  listen: 127.0.0.1:1\n  servers: [\"h:1:1\"]\n");
  folder.write("c.txt", "not read");
  const Loaded loaded = load({folder.path()});
  ASSERT_TRUE(loaded.model) << loaded.text();
  ASSERT_EQ(loaded.model->pools.size(), 2U);
  EXPECT_EQ(loaded.model->pools[0].name, "alpha");
  EXPECT_EQ(loaded.files, (std::vector<std::string>{folder.file("a.yml"), folder.file("b.yml")}));
  EXPECT_NE(loaded.model->find_pool("beta"), nullptr);
  EXPECT_EQ(loaded.model->find_pool("gamma"), nullptr);
}

TEST(Loader, SaysWhyAFileCannotBeRead) {
  const Loaded loaded = load({"/nonexistent/a.yml"});
  EXPECT_EQ(loaded.text(),
            "/nonexistent/a.yml: error: cannot read '/nonexistent/a.yml': No such file or "
            "directory\n");
  EXPECT_EQ(codes_of(loaded), std::vector<std::string>{"E-file"});
}

TEST(Loader, ReadsTheExamples) {
  const std::string folder = std::string(KVF_TEST_DATA) + "/../examples/";
  const Loaded nutcracker = load({folder + "nutcracker.yml"});
  ASSERT_TRUE(nutcracker.model) << nutcracker.text();
  ASSERT_EQ(nutcracker.model->pools.size(), 4U);
  EXPECT_EQ(nutcracker.model->pools[0].options.placement.distribution,
            pool::DistributionKind::Ketama);
  EXPECT_EQ(nutcracker.model->pools[1].options.placement.distribution,
            pool::DistributionKind::Modula);
  EXPECT_EQ(nutcracker.model->pools[1].options.placement.hash_tag, "{}");
  EXPECT_EQ(nutcracker.model->pools[2].options.placement.distribution,
            pool::DistributionKind::Random);

  const Loaded ours = load({folder + "memcache.yml"});
  ASSERT_TRUE(ours.model) << ours.text();
  EXPECT_TRUE(ours.problems.empty()) << ours.text();
  ASSERT_EQ(ours.model->pools.size(), 2U);
  EXPECT_EQ(ours.model->pools[1].protocol, PoolProtocol::Store);
}

}  // namespace
}  // namespace kvferry::config
