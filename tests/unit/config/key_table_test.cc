#include "config/key_table.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "config/loader.h"

namespace kvferry::config {
namespace {

std::string pool_text(std::string_view dialect, std::string_view extra) {
  return "a:\n  dialect: " + std::string(dialect) +
         "\n  listen: 127.0.0.1:1\n  servers:\n    - 10.0.0.1:11211:1\n" + std::string(extra);
}

/// Before the line of a key: all keys may stand in a Redis pool, those aside that say what the pool
/// is.
std::string redis_before(std::string_view key) {
  return key == "redis" || key == "protocol" ? "" : "  redis: true\n";
}

Model model_of(const std::string& text) {
  Loaded loaded = load_text("t.yml", text);
  EXPECT_TRUE(loaded.model) << text << loaded.text();
  return loaded.model.value_or(Model{});
}

/// The documented default, written out, changes nothing.
TEST(KeyTable, DefaultsOfPoolsAreWhatTheTableSays) {
  for (const Key<PoolDraft>& key : pool_keys()) {
    const KeyInfo& info = key.info;
    if (info.default_text.empty()) {
      continue;
    }
    const Model ours = model_of(pool_text("kvferry", redis_before(info.name)));
    const Model nutcracker = model_of(pool_text("nutcracker", redis_before(info.name)));
    const std::string line = redis_before(info.name) + "  " + std::string(info.name) + ": ";
    EXPECT_EQ(model_of(pool_text("kvferry", line + std::string(info.default_text) + "\n")), ours)
        << info.name;
    const std::string_view other =
        info.nutcracker_default_text.empty() ? info.default_text : info.nutcracker_default_text;
    EXPECT_EQ(model_of(pool_text("nutcracker", line + std::string(other) + "\n")), nutcracker)
        << info.name;
  }
}

template <typename Target>
void expect_process_defaults(std::span<const Key<Target>> keys, const std::string& head,
                             const std::string& indent, const Model& plain) {
  for (const Key<Target>& key : keys) {
    if (!key.info.default_text.empty()) {
      EXPECT_EQ(model_of(head + indent + std::string(key.info.name) + ": " +
                         std::string(key.info.default_text) + "\n"),
                plain)
          << key.info.name;
    }
  }
}

TEST(KeyTable, DefaultsOfTheProcessAreWhatTheTableSays) {
  const Model plain = model_of("kvferry: {}\n");
  expect_process_defaults(process_keys(), "kvferry:\n", "  ", plain);
  expect_process_defaults(log_keys(), "kvferry:\n  log:\n", "    ", plain);
  expect_process_defaults(store_keys(), "kvferry:\n  store:\n", "    ", plain);
}

/// Both ends of a range are accepted, and one step beyond is not.
TEST(KeyTable, RangesOfNumbersHoldAtBothEnds) {
  for (const Key<PoolDraft>& key : pool_keys()) {
    if (key.info.type != ValueType::Int) {
      continue;
    }
    const auto code = [&key](std::int64_t value) {
      const Loaded loaded =
          load_text("t.yml", pool_text("kvferry", redis_before(key.info.name) + "  " +
                                                      std::string(key.info.name) + ": " +
                                                      std::to_string(value) + "\n"));
      return loaded.model ? "" : loaded.problems.at(0).code;
    };
    EXPECT_EQ(code(key.info.least), "") << key.info.name;
    EXPECT_EQ(code(key.info.most), "") << key.info.name;
    EXPECT_EQ(code(key.info.least - 1), "E-range") << key.info.name;
    EXPECT_EQ(code(key.info.most + 1), "E-range") << key.info.name;
  }
}

TEST(KeyTable, EveryChoiceIsAccepted) {
  for (const Key<PoolDraft>& key : pool_keys()) {
    for (const std::string_view choice : key.info.choices) {
      if (key.info.name == "dialect" || choice == "store") {
        continue;  // These change which other keys must be there.
      }
      const std::string text = "a:\n  listen: 127.0.0.1:1\n  servers:\n    - 10.0.0.1:11211:1\n" +
                               redis_before(key.info.name) + "  " + std::string(key.info.name) +
                               ": " + std::string(choice) + "\n";
      EXPECT_TRUE(load_text("t.yml", text).model) << text;
    }
  }
}

TEST(KeyTable, NoNameIsThereTwice) {
  std::set<std::string_view> names;
  for (const Key<PoolDraft>& key : pool_keys()) {
    EXPECT_TRUE(names.insert(key.info.name).second) << key.info.name;
    EXPECT_FALSE(key.info.doc.empty()) << key.info.name;
  }
  for (const ReservedKey& key : reserved_pool_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
  }
}

TEST(KeyTable, EveryReservedKeyGetsAClearAnswer) {
  for (const ReservedKey& key : reserved_pool_keys()) {
    const Loaded loaded =
        load_text("t.yml", pool_text("nutcracker", "  " + std::string(key.name) + ": 1\n"));
    ASSERT_FALSE(loaded.model) << key.name;
    EXPECT_EQ(loaded.problems.at(0).code,
              key.dialect == Dialect::Dynomite ? "E-dialect" : "E-unsupported")
        << key.name;
  }
}

}  // namespace
}  // namespace kvferry::config
