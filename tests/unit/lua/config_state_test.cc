#include "lua/config_state.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace kvferry::lua {
namespace {

constexpr base::SteadyTime kStart{base::Seconds(1000)};

class ConfigStateTest : public testing::Test, private ConfigHost {
 protected:
  base::Result<LoadedScripts> load(const std::string& code) {
    folder_.write("main.lua", code);
    if (state_ == nullptr) {
      state_ = std::make_unique<ConfigState>(ConfigState::Setup{.files = {folder_.file("main.lua")},
                                                                .start_argument = argument_,
                                                                .host = this,
                                                                .limits = {}});
    }
    base::Result<LoadedScripts> loaded = state_->load(kStart);
    if (loaded) {
      state_->settle();
    }
    return loaded;
  }
  /// The value that mcp_config_pools, whose body is `body`, returns.
  ConfigValue value_of(const std::string& body) {
    base::Result<LoadedScripts> loaded = load("function mcp_config_pools() " + body + " end");
    EXPECT_TRUE(loaded) << loaded.error().text();
    return loaded ? std::move(loaded).value().value : ConfigValue{};
  }
  std::string error_of(const std::string& code) {
    const base::Result<LoadedScripts> loaded = load(code);
    return loaded ? "no error" : loaded.error().text();
  }

  bool wants_messages() const override { return true; }
  void on_message(std::string_view text) override { messages_.emplace_back(text); }
  void on_cron_error(std::string_view text) override { errors_.emplace_back(text); }
  bool compose_stats(std::string_view words, std::string& out) override {
    if (words == "items") {
      out = "STAT items:3:number 7\r\nSTAT items:3:age 1\r\nSTAT flat x y\r\nEND\r\n";
      return true;
    }
    return false;
  }

  test::TempFolder folder_;
  StartArgument argument_;
  std::unique_ptr<ConfigState> state_;
  std::vector<std::string> messages_;
  std::vector<std::string> errors_;
};

TEST_F(ConfigStateTest, CopiesEachKindOfValue) {
  const ConfigValue value = value_of("return { 1, 1.5, true, 'a\\0b', { deep = {} } }");
  const auto& table = std::get<ConfigValue::Table>(value.value);
  ASSERT_EQ(table.size(), 5U);
  EXPECT_EQ(std::get<std::int64_t>(table[0].value.value), 1);
  EXPECT_EQ(std::get<double>(table[1].value.value), 1.5);
  EXPECT_TRUE(std::get<bool>(table[2].value.value));
  EXPECT_EQ(std::get<std::string>(table[3].value.value), std::string("a\0b", 3));
}

TEST_F(ConfigStateTest, NamesTheEntryThatCannotBeCopied) {
  EXPECT_EQ(
      error_of("function mcp_config_pools() return { a = { [2] = print } } end"),
      "Failed to execute mcp_config_pools: unhandled data type in configuration table at .a[2]");
  EXPECT_EQ(
      error_of("function mcp_config_pools() return { [true] = 1 } end"),
      "Failed to execute mcp_config_pools: configuration table keys must be strings or numbers "
      "at the returned value");
  EXPECT_NE(error_of("function mcp_config_pools() local t = {} t.x = t return t end")
                .find("holds itself"),
            std::string::npos);
}

TEST_F(ConfigStateTest, SaysWhatIsWrongWithAFile) {
  EXPECT_NE(error_of("function (").find("Failed to load proxy_startfile: "), std::string::npos);
  EXPECT_NE(error_of("error('top')").find("Failed to load data into lua config state: "),
            std::string::npos);
  EXPECT_EQ(error_of("x = 1"), "Configuration file missing 'mcp_config_pools' function");
}

TEST_F(ConfigStateTest, AFailedLoadChangesNothing) {
  ASSERT_TRUE(load("mcp.backend_failure_limit(7) function mcp_config_pools() end"));
  EXPECT_FALSE(load("mcp.backend_failure_limit(1) mark = 1 error('no')"));
  EXPECT_EQ(state_->settings().backend.failure_limit, 7U);
  EXPECT_EQ(error_of("assert(mark == nil)"), "no error")
      << "mcp_config_pools is still there, mark is not";
}

TEST_F(ConfigStateTest, BackendsTakeTheTunablesOfTheirTime) {
  const ConfigValue value = value_of(R"(
    mcp.backend_connect_timeout(0.5) mcp.backend_retry_waittime(1.4)
    local one = mcp.backend("one", "127.0.0.1", 11211)
    mcp.backend_connect_timeout(2)
    local two = mcp.backend({ label = "two", host = "h", port = "1", readtimeout = 0.25,
      retrywaittime = 0.2, connections = 8, log = { rate = 2, tag = "t" } })
    return mcp.pool({ one, two }, { seed = "hello", filter = "tags", filter_conf = "{}" }))");
  const pool::McpPoolOptions& pool = *std::get<ConfigValue::Pool>(value.value);
  ASSERT_EQ(pool.backends.size(), 2U);
  EXPECT_EQ(pool.backends[0]->connect_timeout, base::Millis(500));
  EXPECT_EQ(pool.backends[0]->port, "11211");
  EXPECT_EQ(pool.backends[0]->retry_waittime, base::Seconds(1));
  EXPECT_EQ(pool.backends[1]->connect_timeout, base::Seconds(2));
  EXPECT_EQ(pool.backends[1]->read_timeout, base::Millis(250));
  EXPECT_EQ(pool.backends[1]->retry_waittime, base::Seconds(1));
  EXPECT_EQ(pool.backends[1]->connections, 8U);
  EXPECT_TRUE(pool.backends[1]->logging.is_on);
  EXPECT_EQ(pool.backends[1]->logging.tag, "t");
  EXPECT_EQ(pool.placement.hash_seed, 0x9555e8555c62dcfdU);
  EXPECT_EQ(pool.placement.filter, pool::KeyFilter::MemcachedTags);
}

TEST_F(ConfigStateTest, CronRunsWhenItsTimeHasComeAndIsNotMadeUpFor) {
  ASSERT_TRUE(load(R"(
    runs = 0
    function mcp_config_pools()
      mcp.register_cron("each", { every = 2, func = function() runs = runs + 1 mcp.log("run " .. runs) end })
      mcp.register_cron("once", { every = 1, rerun = false, func = function() error("once") end })
    end)"));
  EXPECT_EQ(state_->run_cron(kStart).runs, 0U);
  const ConfigState::CronRuns first = state_->run_cron(kStart + base::Seconds(1));
  EXPECT_EQ(first.runs, 1U);
  EXPECT_EQ(first.fails, 1U);
  EXPECT_EQ(errors_.size(), 1U);
  EXPECT_EQ(state_->run_cron(kStart + base::Seconds(20)).runs, 1U);
  EXPECT_EQ(state_->run_cron(kStart + base::Seconds(21)).runs, 0U);
  EXPECT_EQ(state_->run_cron(kStart + base::Seconds(22)).runs, 1U);
  EXPECT_EQ(messages_, (std::vector<std::string>{"run 1", "run 2"}));
  ASSERT_TRUE(load("function mcp_config_pools() end"));
  EXPECT_EQ(state_->run_cron(kStart + base::Seconds(100)).runs, 0U) << "registered no more";
}

TEST_F(ConfigStateTest, StatisticsBecomeTables) {
  ASSERT_TRUE(load(R"(
    function mcp_config_pools()
      local t = mcp.server_stats("items")
      mcp.log(t[3].number .. t[3].age .. t.flat)
      mcp.log(select(2, pcall(mcp.server_stats, "what")))
    end)"));
  EXPECT_EQ(messages_,
            (std::vector<std::string>{"71x y", "unknown subcommand passed to server_stats"}));
}

TEST(StartArgument, IsATextOrATable) {
  const std::string text = "words";
  EXPECT_EQ(StartArgument::parse(nullptr).kind, StartArgument::Kind::None);
  EXPECT_EQ(StartArgument::parse(&text).text, "words");
  const std::string table = "a_1:b::c_x_y:_:__d";
  const StartArgument parsed = StartArgument::parse(&table);
  ASSERT_EQ(parsed.entries.size(), 4U);
  EXPECT_EQ(parsed.entries[0].key + "=" + parsed.entries[0].value, "a=1");
  EXPECT_FALSE(parsed.entries[1].has_value);
  EXPECT_EQ(parsed.entries[2].key + "=" + parsed.entries[2].value, "c=x");
  EXPECT_EQ(parsed.entries[3].key, "d");
}

}  // namespace
}  // namespace kvferry::lua
