#include "base/log.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace kvferry::base {
namespace {

using std::string_view_literals::operator""sv;

WallTime moment() {
  const std::chrono::sys_days day = std::chrono::year(2026) / 1 / 2;
  return WallTime(day) + std::chrono::hours(3) + std::chrono::minutes(4) + Seconds(5) +
         Millis(678) + Micros(999);
}

std::string composed(LogFormat format, LogLevel level, std::string_view message,
                     std::initializer_list<LogField> fields) {
  std::string out;
  compose_log_line(out, format,
                   {.time = moment(),
                    .level = level,
                    .room = "pool",
                    .message = message,
                    .fields = {fields.begin(), fields.size()}});
  return out;
}

std::string text_line(std::string_view message, std::initializer_list<LogField> fields = {}) {
  return composed(LogFormat::Text, LogLevel::Notice, message, fields);
}

std::string json_line(std::string_view message, std::initializer_list<LogField> fields = {}) {
  return composed(LogFormat::Json, LogLevel::Error, message, fields);
}

/// A directory that goes away with the test.
class LogFile : public testing::Test {
 protected:
  std::unique_ptr<Log> open_log(LogLevel level = LogLevel::Info) const {
    Result<std::unique_ptr<Log>> log = Log::open(LogOptions{.file = path_, .level = level});
    EXPECT_TRUE(log.has_value());
    return std::move(log).value();
  }
  static std::vector<std::string> lines_of(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) {
      lines.push_back(line);
    }
    return lines;
  }

  const test::TempFolder folder_;
  const std::string path_ = folder_.file("kvferry.log");
};

TEST(LogLine, TextHasTimeLevelRoomMessageAndFields) {
  EXPECT_EQ(text_line("backend connect refused", {{"pool", "alpha"}, {"backend", "10.0.0.1:1"}}),
            "2026-01-02T03:04:05.678Z notice pool: backend connect refused pool=alpha "
            "backend=10.0.0.1:1\n");
}

TEST(LogLine, TextQuotesValuesThatWouldReadAsSomethingElse) {
  struct Case {
    std::string_view value;
    std::string_view shown;
  };
  const Case cases[] = {
      {"", R"("")"},
      {"a b", R"("a b")"},
      {"a=b", R"("a=b")"},
      {"a\"b", R"("a\"b")"},
      {"a\\b", R"("a\\b")"},
      {"a\nb\r\t", R"("a\nb\r\t")"},
      {"\x1b[31m\0"sv, R"("\x1b[31m\x00")"},
      {"\x7f", R"("\x7f")"},
      {"\xff", R"("\xff")"},
      {"caf\xC3\xA9", "\"caf\xC3\xA9\""},
      {"\xC2\x9B", R"("\xc2\x9b")"},  // CSI, as UTF-8.
      {"[::1]:80", "[::1]:80"},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(text_line("m", {{"k", one.value}}),
              "2026-01-02T03:04:05.678Z notice pool: m k=" + std::string(one.shown) + "\n");
  }
}

TEST(LogLine, MessageCannotStartALineOfItsOwn) {
  EXPECT_EQ(text_line("a\n2026 error x: \"fake\""),
            "2026-01-02T03:04:05.678Z notice pool: a\\n2026 error x: \"fake\"\n");
}

TEST(LogLine, JsonIsOneObject) {
  EXPECT_EQ(json_line("it \"broke\"", {{"pool", "a\nb"}}),
            R"({"time":"2026-01-02T03:04:05.678Z","level":"error","room":"pool",)"
            R"("message":"it \"broke\"","pool":"a\nb"})"
            "\n");
}

TEST(LogLine, CutsLongValuesAtTheLimit) {
  const std::string fits(kLogValueBytesMax, 'v');
  EXPECT_TRUE(text_line("m", {{"k", fits}}).ends_with("=" + fits + "\n"));
  EXPECT_TRUE(text_line("m", {{"k", fits + "v"}}).ends_with("=" + fits + "...\n"));
  EXPECT_TRUE(text_line(fits + "v").ends_with(": " + fits + "...\n"));
  EXPECT_TRUE(json_line("m", {{"k", fits + "v"}}).ends_with(":\"" + fits + "...\"}\n"));
}

TEST(LogLevelName, RoundTripsAndRefusesOthers) {
  for (const LogLevel level :
       {LogLevel::Error, LogLevel::Warning, LogLevel::Notice, LogLevel::Info, LogLevel::Debug}) {
    EXPECT_EQ(parse_log_level(log_level_name(level)), level);
  }
  EXPECT_EQ(parse_log_level("Error"), std::nullopt);
  EXPECT_EQ(parse_log_level(""), std::nullopt);
}

TEST_F(LogFile, WritesOnFlushAndAppends) {
  {
    const auto log = open_log();
    log->write(LogLevel::Notice, "app", "first");
    EXPECT_TRUE(lines_of(path_).empty());
    log->flush();
    EXPECT_EQ(lines_of(path_).size(), 1U);
  }
  {
    const auto log = open_log();
    log->write(LogLevel::Notice, "app", "second");
  }  // The destructor flushes.
  const std::vector<std::string> lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(lines[0].ends_with(" notice app: first"));
  EXPECT_TRUE(lines[1].ends_with(" notice app: second"));
}

TEST_F(LogFile, MakesAFileThatOthersCannotRead) {
  const mode_t before = umask(0);
  const auto log = open_log();
  umask(before);
  struct stat status{};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST_F(LogFile, KeepsLinesOfItsLevelAndAbove) {
  const auto log = open_log(LogLevel::Warning);
  log->write(LogLevel::Warning, "app", "shown");
  log->write(LogLevel::Notice, "app", "hidden");
  EXPECT_FALSE(log->is_on(LogLevel::Notice));
  log->set_level(LogLevel::Debug);
  EXPECT_TRUE(log->is_on(LogLevel::Debug));
  log->write(LogLevel::Debug, "app", "shown too");
  log->flush();
  const std::vector<std::string> lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(lines[1].ends_with(" debug app: shown too"));
}

TEST_F(LogFile, ReopensAfterRotation) {
  const auto log = open_log();
  log->write(LogLevel::Info, "app", "old");
  ASSERT_EQ(std::rename(path_.c_str(), (path_ + ".1").c_str()), 0);
  ASSERT_TRUE(log->reopen().has_value());
  log->write(LogLevel::Info, "app", "new");
  log->flush();
  EXPECT_EQ(lines_of(path_ + ".1").size(), 1U);
  EXPECT_EQ(lines_of(path_).size(), 1U);
}

TEST_F(LogFile, KeepsTheOldFileWhenReopenFails) {
  const auto log = open_log();
  ASSERT_EQ(std::rename(path_.c_str(), (path_ + ".1").c_str()), 0);
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);  // A directory cannot be opened for writing.
  EXPECT_FALSE(log->reopen().has_value());
  ASSERT_EQ(rmdir(path_.c_str()), 0);
  log->write(LogLevel::Info, "app", "still here");
  log->flush();
  EXPECT_EQ(lines_of(path_ + ".1").size(), 1U);
}

TEST_F(LogFile, FullQueueLosesAndCountsLinesAndSaysSo) {
  const auto log = open_log();
  const std::string message(kLogValueBytesMax, 'm');
  const std::size_t written = 2 * kLogQueueBytesMax / kLogValueBytesMax;
  for (std::size_t i = 0; i < written; ++i) {
    log->write(LogLevel::Info, "app", message);
  }
  const std::uint64_t lost = log->lost_lines();
  EXPECT_GT(lost, 0U);
  log->flush();
  const std::vector<std::string> lines = lines_of(path_);
  ASSERT_EQ(lines.size(), written - lost + 1);
  EXPECT_TRUE(
      lines.back().ends_with(" warning log: lines were lost count=" + std::to_string(lost)));
  log->write(LogLevel::Info, "app", "room again");
  log->flush();
  EXPECT_EQ(lines_of(path_).size(), lines.size() + 1);
}

TEST(Log, CountsLinesThatTheDiskRefuses) {
  Result<std::unique_ptr<Log>> log = Log::open(LogOptions{.file = "/dev/full"});
  ASSERT_TRUE(log.has_value());
  log.value()->write(LogLevel::Info, "app", "one");
  log.value()->write(LogLevel::Info, "app", "two");
  log.value()->flush();
  EXPECT_EQ(log.value()->lost_lines(), 2U);
}

TEST(Log, ReportsAFileThatCannotBeOpened) {
  const Result<std::unique_ptr<Log>> log = Log::open(LogOptions{.file = "/nonexistent/x.log"});
  ASSERT_FALSE(log.has_value());
  EXPECT_NE(log.error().text().find("/nonexistent/x.log"), std::string::npos);
}

TEST_F(LogFile, LinesOfSeveralThreadsStayWhole) {
  const auto log = open_log();
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kLines = 200;
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&log] {
        for (std::size_t i = 0; i < kLines; ++i) {
          log->write(LogLevel::Info, "worker", "says hello", {{"to", "everyone here"}});
        }
      });
    }
    for (std::size_t i = 0; i < 20; ++i) {
      log->flush();
    }
  }
  log->flush();
  const std::vector<std::string> lines = lines_of(path_);
  EXPECT_EQ(lines.size(), kThreads * kLines);
  for (const std::string& line : lines) {
    EXPECT_TRUE(line.ends_with("Z info worker: says hello to=\"everyone here\"")) << line;
  }
}

TEST(LogThrottle, LetsOneLineAPassThroughPerSecond) {
  LogThrottle throttle;
  const SteadyTime start{Seconds(1000)};
  EXPECT_TRUE(throttle.allows(start));
  EXPECT_EQ(throttle.suppressed(), 0U);
  EXPECT_FALSE(throttle.allows(start + Millis(1)));
  EXPECT_FALSE(throttle.allows(start + Millis(999)));
  EXPECT_TRUE(throttle.allows(start + Millis(1000)));
  EXPECT_EQ(throttle.suppressed(), 2U);
  EXPECT_TRUE(throttle.allows(start + Seconds(5)));
  EXPECT_EQ(throttle.suppressed(), 0U);
}

}  // namespace
}  // namespace kvferry::base
