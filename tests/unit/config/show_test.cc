#include "config/show.h"

#include <string>

#include <gtest/gtest.h>

#include "config/document.h"
#include "config/key_table.h"
#include "config/loader.h"
#include "config/text_file.h"

namespace kvferry::config {
namespace {

constexpr const char* kFiles[] = {
    "a:\n  listen: 127.0.0.1:1\n  servers:\n    - 10.0.0.1:11211:1\n",
    "a:\n  listen: \"[::1]:1\"\n  servers:\n    - ::1:11211:3 n1\n    - /tmp/x.sock:2\n"
    "  hash_tag: \"\\\"\\\\\"\n  timeout: 90s\n  auto_eject_hosts: true\n  reuseport: true\n",
    "a:\n  listen: /run/a\"\\b.sock 0660\n  servers:\n    - /run/c\"d.sock:1 e\"f\n",
    "a:\n  protocol: store\n  listen:\n    - {address: /run/a.sock 0660, admin: true}\n"
    "    - {address: 127.0.0.1:0, max_clients: 3, backlog: 9}\n  client_idle_timeout: 90s\n",
    "\"odd name: #1\":\n  protocol: redis\n  redis_auth: file:/etc/pw\n  redis_db: 3\n"
    "  listen: h:1\n  servers: [h:1, i:2, \"j:3 \\u00e9\"]\n  distribution: rendezvous\n"
    "  hash: xxh3\n  ketama_naming: libmemcached\n  on_down: rehash\n  on_partial: null\n"
    "  max_queue_bytes: 1536kb\n  max_inflight: 1\n  backoff_min: 1ms\n  backoff_max: 1h\n"
    "  connect_timeout: 1500ms\n  stall_timeout: 1s\n  body_timeout: 2s\n  timeout: 0\n  "
    "preconnect: true\n",
    "kvferry:\n  workers: 3\n  io: uring\n  memory_limit: 1025mb\n  item_size_max: 1kb\n"
    "  log: {file: \"/tmp/a b\", level: warning, format: json}\n"
    "  admin: {listen: /run/admin.sock 0600, token: env:T}\n  store: {memory: 1mb, snapshot: \"/a "
    "b\",\n"
    "    on_bad_snapshot: start_empty, snapshot_timeout: 1500ms}\n"
    "  drain_timeout: 0s\n  watch: true\n  reload_on_hup: false\n",
    "a:\n  protocol: store\nb:\n  protocol: store\n  listen: h:9\n"
    "kvferry:\n  routes:\n"
    "    - listen: [h:1, {address: h:2, max_clients: 3}]\n      client_idle_timeout: 3s\n"
    "      map:\n        \"u: #\": {direct: {child: b}}\n"
    "        f: {failover: {children: {e: a, w: b}, local_zone: w, miss: true, wait: 2s,\n"
    "          failover_count: 1, shuffle: true, stats_name: \"x y\"}}\n"
    "        g: {failover: {children: {e: a, w: b}, stats: false}}\n"
    "        z: {zfailover: {children: {e: a, w: b}, local_zone: w, miss: false}}\n"
    "        q: {allfastest: {children: [a, b], miss: true, wait: 1ms}}\n"
    "        s: {allsync: {children: [a, {allasync: {children: [a, b]}}]}}\n"
    "        p: {split: {child_a: a, child_b: {random: {children: [a, b]}}}}\n"
    "        t: {ttl: {child: a, ttl: 60}}\n"
    "        r: {ratelim: {child: a, limit: 5, fillrate: 2, tickrate: 50, global: true,\n"
    "          fail_until_limit: true}}\n"
    "        n: {nearcache: {child: {coalesce: {child: a, stats: false}}, ttl: 1500ms,\n"
    "          max_value: 3kb, memory: 5mb, stats_name: near}}\n        o: {null: {}}\n        e: "
    "{error: "
    "{text: \"not: here\"}}\n"
    "        c: {commands: {get: a, mg: b, all: {null: {}}}}\n"
    "    - {name: second, listen: h:3, default: a, reuseport: true}\n",
};

TEST(Show, WritesWhatReadsBackEqual) {
  for (const char* text : kFiles) {
    const Loaded first = load_text("t.yml", text);
    ASSERT_TRUE(first.model) << text << first.text();
    for (const YamlForm form : {YamlForm::Everything, YamlForm::Changes}) {
      const std::string shown = to_yaml(*first.model, form);
      if (shown.empty()) {
        continue;
      }
      const Loaded second = load_text("s.yml", shown);
      ASSERT_TRUE(second.model) << shown << second.text();
      EXPECT_EQ(*first.model, *second.model) << shown;
      EXPECT_EQ(to_yaml(*second.model, form), shown);
    }
  }
}

TEST(Show, LeavesOutNoKey) {
  const Loaded loaded = load_text(
      "t.yml",
      "a:\n  protocol: redis\n  redis_auth: x\n  redis_user: u\n  hash_tag: \"{}\"\n  listen: h:1\n"
      "  servers: [h:1]\n  tls: {verify: none}\n");
  ASSERT_TRUE(loaded.model) << loaded.text();
  const std::string shown = to_yaml(*loaded.model, YamlForm::Everything);
  for (const Key<PoolDraft>& key : pool_keys()) {
    // Other keys say the same: protocol, db_base, the entries of listen, on_down.
    const bool has_twin = key.info.name == "redis" || key.info.name == "redis_db" ||
                          key.info.name == "backlog" || key.info.name == "client_connections" ||
                          key.info.name == "auto_eject_hosts";
    if (!has_twin) {
      EXPECT_NE(shown.find("\n  " + std::string(key.info.name) + ":"), std::string::npos)
          << key.info.name;
    }
  }
}

TEST(Show, HidesSecretsAndKeepsWhereTheyAre) {
  const Loaded loaded =
      load_text("t.yml",
                "kvferry: {admin: {listen: h:2, token: env:TOKEN}}\na:\n  redis: true\n"
                "  redis_auth: hunter2\n  listen: h:1\n  servers: [\"h:1:1\"]\n");
  ASSERT_TRUE(loaded.model) << loaded.text();
  const std::string shown = to_yaml(*loaded.model, YamlForm::Changes);
  EXPECT_EQ(shown.find("hunter2"), std::string::npos);
  EXPECT_NE(shown.find("redis_auth: \"***\""), std::string::npos);
  EXPECT_NE(shown.find("token: env:TOKEN"), std::string::npos);
}

TEST(Document, FileEqualsTheTables) {
  const std::string path = std::string(KVF_TEST_DATA) + "/../docs/configuration.md";
  const base::Result<std::string> text = read_text_file(path, std::size_t{1} << 20);
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_EQ(*text, configuration_document())
      << "write the output of `kvferry config keys` to docs/configuration.md";
}

TEST(Document, NamesEveryKeyOfAPool) {
  const std::string document = configuration_document();
  for (const Key<PoolDraft>& key : pool_keys()) {
    EXPECT_NE(document.find("| `" + std::string(key.info.name) + "` |"), std::string::npos)
        << key.info.name;
  }
}

}  // namespace
}  // namespace kvferry::config
