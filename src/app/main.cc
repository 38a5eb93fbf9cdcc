// Entry point: decides between serving and the commands that only read configuration.
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include "app/cli_check.h"
#include "app/cli_config.h"
#include "app/cli_explain.h"
#include "app/command_line.h"
#include "app/memcached_mode.h"
#include "app/server.h"

namespace {

/// The commands of `kvferry <word> ...`; a value is the exit status.
std::optional<int> run_word(std::string_view word, const std::vector<std::string>& arguments) {
  if (word == "check") {
    return kvferry::app::run_check(arguments);
  }
  if (word == "config") {
    return kvferry::app::run_config(arguments);
  }
  if (word == "explain") {
    return kvferry::app::run_explain(arguments);
  }
  if (word == "memcached") {
    return kvferry::app::run_memcached(arguments);
  }
  return std::nullopt;
}

/// Called through a link of that name, the program takes memcached's place.
bool is_called_memcached(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1) == "memcached";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 0 && is_called_memcached(argv[0])) {
    return kvferry::app::run_memcached(std::vector<std::string>(argv + 1, argv + argc));
  }
  if (argc > 1) {
    if (const auto status = run_word(argv[1], std::vector<std::string>(argv + 2, argv + argc))) {
      return *status;
    }
  }
  kvferry::app::CommandLine line = kvferry::app::parse_command_line(argc, argv);
  switch (line.action) {
    case kvferry::app::CommandLine::Action::Exit:
      return line.exit_status;
    case kvferry::app::CommandLine::Action::Check:
      return kvferry::app::run_check(kvferry::app::CheckOptions{.paths = line.server.config_paths},
                                     stdout, stderr);
    case kvferry::app::CommandLine::Action::Serve:
      break;
  }
  if (line.is_daemon && daemon(1, 0) != 0) {
    std::perror("kvferry: cannot run in the background");
    return 1;
  }
  return kvferry::app::Server(std::move(line.server)).run();
}
