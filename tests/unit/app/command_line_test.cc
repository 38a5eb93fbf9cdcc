#include "app/command_line.h"

#include <getopt.h>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace kvferry::app {
namespace {

CommandLine parse(std::vector<std::string> words) {
  words.insert(words.begin(), "kvferry");
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  optind = 0;  // Makes getopt begin anew.
  return parse_command_line(static_cast<int>(words.size()), pointers.data());
}

/// What is printed, and with which status the program would end.
struct Printed {
  int status = -1;
  std::string out;
  std::string err;
};
Printed print(const std::vector<std::string>& words) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const CommandLine line = parse(words);
  Printed printed{.out = testing::internal::GetCapturedStdout(),
                  .err = testing::internal::GetCapturedStderr()};
  if (line.action == CommandLine::Action::Exit) {
    printed.status = line.exit_status;
  }
  return printed;
}

TEST(CommandLine, ServesByDefault) {
  const CommandLine line = parse({});
  EXPECT_EQ(line.action, CommandLine::Action::Serve);
  EXPECT_FALSE(line.is_daemon);
  EXPECT_TRUE(line.server.config_paths.empty());
  EXPECT_EQ(line.server.listen.to_string(), "127.0.0.1:11211");
  EXPECT_EQ(line.server.idle_flags, "");
  EXPECT_FALSE(line.server.workers || line.server.io || line.server.store_memory_bytes ||
               line.server.log_file || line.server.log_level);
}

TEST(CommandLine, TakesOurLongOptions) {
  const CommandLine line =
      parse({"--config", "a.yml", "--config=b.yml", "--listen", "[::1]:0", "--memory", "256mb",
             "--workers", "3", "--io", "epoll", "--pid-file", "p", "--output", "o", "--daemonize"});
  EXPECT_EQ(line.action, CommandLine::Action::Serve);
  EXPECT_EQ(line.server.config_paths, (std::vector<std::string>{"a.yml", "b.yml"}));
  EXPECT_EQ(line.server.listen.to_string(), "[::1]:0");
  EXPECT_EQ(line.server.store_memory_bytes, std::uint64_t{256} << 20);
  EXPECT_EQ(line.server.workers, 3U);
  EXPECT_EQ(line.server.io, config::IoEngine::Epoll);
  EXPECT_EQ(line.server.pid_file, "p");
  EXPECT_EQ(line.server.log_file, "o");
  EXPECT_TRUE(line.is_daemon);
}

TEST(CommandLine, TakesTheFlagsOfServiceFilesAsTheyAre) {
  const CommandLine line = parse({"-d",    "-c",         "/etc/nutcracker.yml",
                                  "-o",    "/var/log/x", "-v",
                                  "5",     "-p",         "/run/x.pid",
                                  "-m",    "16384",      "-s",
                                  "22222", "-i",         "30000",
                                  "-a",    "0.0.0.0",    "-g",
                                  "-M",    "1000",       "-x",
                                  "5",     "-y",         "-D"});
  EXPECT_EQ(line.action, CommandLine::Action::Serve);
  EXPECT_TRUE(line.is_daemon);
  EXPECT_EQ(line.server.config_paths, std::vector<std::string>{"/etc/nutcracker.yml"});
  EXPECT_EQ(line.server.log_level, base::LogLevel::Notice);
  EXPECT_EQ(line.server.idle_flags, "-m -s -i -a -g -M -x -y -D");
}

TEST(CommandLine, LevelsOfVerbosity) {
  const struct {
    const char* text;
    base::LogLevel level;
  } table[] = {{"0", base::LogLevel::Warning}, {"4", base::LogLevel::Warning},
               {"5", base::LogLevel::Notice},  {"6", base::LogLevel::Info},
               {"7", base::LogLevel::Debug},   {"11", base::LogLevel::Debug}};
  for (const auto& row : table) {
    EXPECT_EQ(parse({"-v", row.text}).server.log_level, row.level) << row.text;
  }
}

TEST(CommandLine, SizesOfMemory) {
  const struct {
    const char* text;
    std::uint64_t bytes;
  } table[] = {{"1024", 1024},
               {"1kb", 1024},
               {"64mb", std::uint64_t{64} << 20},
               {"2gb", std::uint64_t{2} << 30},
               {"1125899906842624", std::uint64_t{1} << 50},
               {"1048576gb", std::uint64_t{1} << 50}};
  for (const auto& row : table) {
    EXPECT_EQ(parse({"--memory", row.text}).server.store_memory_bytes, row.bytes) << row.text;
  }
  for (const char* text : {"", "mb", "-1", "1.5gb", "64 mb", "64MB", "1125899906842625",
                           "1048577gb", "99999999999999999999"}) {
    const Printed printed = print({"--memory", text});
    EXPECT_EQ(printed.status, 2) << text;
    EXPECT_EQ(printed.err, "kvferry: --memory must be a size such as 64mb or 2gb, found '" +
                               std::string(text) + "'\n");
  }
}

TEST(CommandLine, WorkersWithinTheirLimit) {
  EXPECT_EQ(parse({"--workers", "0"}).server.workers, 0U);
  EXPECT_EQ(parse({"--workers", "256"}).server.workers, 256U);
  for (const char* text : {"257", "x", "", "-1", "4294967297"}) {
    EXPECT_EQ(print({"--workers", text}).status, 2) << text;
  }
}

TEST(CommandLine, RefusesWhatItCannotUse) {
  EXPECT_EQ(print({"--io", "kqueue"}).err,
            "kvferry: --io must be auto, uring or epoll, found 'kqueue'\n");
  EXPECT_EQ(print({"--listen", "nonsense"}).status, 2);
  EXPECT_EQ(print({"-v", "loud"}).status, 2);
  const Printed unknown = print({"--no-such-option"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("Try 'kvferry --help'."), std::string::npos);
  const Printed missing = print({"-c"});
  EXPECT_EQ(missing.status, 2);
  const Printed word = print({"chekc"});
  EXPECT_EQ(word.status, 2);
  EXPECT_EQ(word.err, "kvferry: unknown command 'chekc'\nTry 'kvferry --help'.\n");
}

TEST(CommandLine, HelpAndVersionEndWell) {
  const Printed help = print({"-h"});
  EXPECT_EQ(help.status, 0);
  for (const char* option : {"--config", "--listen", "--memory", "--workers", "--io", "-t", "-d",
                             "-o", "-v", "-p", "-h", "-V"}) {
    EXPECT_NE(help.out.find(option), std::string::npos) << option;
  }
  const Printed version = print({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out, "kvferry " KVFERRY_VERSION "\n");
}

TEST(CommandLine, TestConfChecksOnly) {
  EXPECT_EQ(parse({"-t", "-c", "x.yml"}).action, CommandLine::Action::Check);
}

}  // namespace
}  // namespace kvferry::app
