#include "app/command_line.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <getopt.h>
#include <string_view>

#include "app/version.h"
#include "config/address_text.h"

namespace kvferry::app {
namespace {

constexpr const char* kUsage =
    "Usage: kvferry [options]\n"
    "       kvferry check FILE...            is a configuration right?\n"
    "       kvferry explain -c FILE KEY...   where does a key go, and why?\n"
    "\n"
    "Without a configuration an in-memory cache is served on 127.0.0.1:11211.\n"
    "\n"
    "  -c, --config FILE      configuration file or folder of *.yml; may be repeated\n"
    "      --listen ADDRESS   without a configuration: where to listen (127.0.0.1:11211)\n"
    "      --memory SIZE      memory of the embedded store, e.g. 256mb (64mb)\n"
    "      --workers N        worker threads (one per processor)\n"
    "      --io ENGINE        auto, uring or epoll (auto)\n"
    "  -t, --test-conf        check the configuration, then exit\n"
    "  -d, --daemonize        run in the background\n"
    "  -o, --output FILE      write the log to FILE\n"
    "  -v, --verbose N        log level: 0 to 4 errors and warnings, 5 notices, 6 information, "
    "more: everything\n"
    "  -p, --pid-file FILE    write the process id to FILE\n"
    "  -h, --help             print this\n"
    "  -V, --version          print the version\n"
    "\n"
    "Accepted for twemproxy's and Dynomite's service files, without effect: -m, -s, -i, -a, -D, "
    "-g, -M, -x, -y.\n";

enum LongOnly : int { kListen = 256, kMemory, kWorkers, kIo };

constexpr std::array<option, 14> kOptions{{{"config", required_argument, nullptr, 'c'},
                                           {"conf-file", required_argument, nullptr, 'c'},
                                           {"listen", required_argument, nullptr, kListen},
                                           {"memory", required_argument, nullptr, kMemory},
                                           {"workers", required_argument, nullptr, kWorkers},
                                           {"io", required_argument, nullptr, kIo},
                                           {"test-conf", no_argument, nullptr, 't'},
                                           {"daemonize", no_argument, nullptr, 'd'},
                                           {"output", required_argument, nullptr, 'o'},
                                           {"verbose", required_argument, nullptr, 'v'},
                                           {"pid-file", required_argument, nullptr, 'p'},
                                           {"help", no_argument, nullptr, 'h'},
                                           {"version", no_argument, nullptr, 'V'},
                                           {nullptr, 0, nullptr, 0}}};

template <typename T>
std::optional<T> to_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

/// "64mb", "1gb", "1024"; units count in 1024.
std::optional<std::uint64_t> to_bytes(std::string_view text) {
  std::uint64_t unit = 1;
  for (const auto& [suffix, bytes] :
       {std::pair{"kb", std::uint64_t{1} << 10}, std::pair{"mb", std::uint64_t{1} << 20},
        std::pair{"gb", std::uint64_t{1} << 30}}) {
    if (text.ends_with(suffix)) {
      unit = bytes;
      text.remove_suffix(2);
      break;
    }
  }
  const auto value = to_number<std::uint64_t>(text);
  if (!value || *value > (std::uint64_t{1} << 50) / unit) {
    return std::nullopt;
  }
  return *value * unit;
}

base::LogLevel to_level(unsigned verbosity) {
  if (verbosity <= 4) {
    return base::LogLevel::Warning;
  }
  return verbosity == 5   ? base::LogLevel::Notice
         : verbosity == 6 ? base::LogLevel::Info
                          : base::LogLevel::Debug;
}

CommandLine exit_with(int status) {
  CommandLine line;
  line.action = CommandLine::Action::Exit;
  line.exit_status = status;
  return line;
}

CommandLine refuse(const char* what, const char* value, const char* allowed) {
  static_cast<void>(
      std::fprintf(stderr, "kvferry: %s must be %s, found '%s'\n", what, allowed, value));
  return exit_with(2);
}

/// Takes one option over; a value is what to do instead of going on.
std::optional<CommandLine> take(CommandLine& line, int option) {
  switch (option) {
    case 'c':
      line.server.config_paths.emplace_back(optarg);
      return std::nullopt;
    case 't':
      line.action = CommandLine::Action::Check;
      return std::nullopt;
    case 'd':
      line.is_daemon = true;
      return std::nullopt;
    case 'o':
      line.server.log_file = optarg;
      return std::nullopt;
    case 'p':
      line.server.pid_file = optarg;
      return std::nullopt;
    case 'v': {
      const auto level = to_number<unsigned>(optarg);
      if (!level) {
        return refuse("-v", optarg, "a number from 0 to 11");
      }
      line.server.log_level = to_level(*level);
      return std::nullopt;
    }
    case kListen: {
      const auto error = config::parse_endpoint(
          optarg, config::AddressRules{.port_zero_allowed = true}, line.server.listen);
      return error.is_set()
                 ? std::optional(refuse("--listen", optarg, "host:port, [v6]:port or /path"))
                 : std::nullopt;
    }
    case kMemory:
      line.server.store_memory_bytes = to_bytes(optarg);
      return line.server.store_memory_bytes
                 ? std::nullopt
                 : std::optional(refuse("--memory", optarg, "a size such as 64mb or 2gb"));
    case kWorkers:
      line.server.workers = to_number<std::uint32_t>(optarg);
      return line.server.workers && *line.server.workers <= 256
                 ? std::nullopt
                 : std::optional(refuse("--workers", optarg, "a number from 0 to 256"));
    case kIo:
      line.server.io = config::parse_io_engine(optarg);
      return line.server.io ? std::nullopt
                            : std::optional(refuse("--io", optarg, "auto, uring or epoll"));
    case 'h':
      static_cast<void>(std::fputs(kUsage, stdout));
      return exit_with(0);
    case 'V':
      static_cast<void>(
          std::printf("kvferry %.*s\n", static_cast<int>(kVersion.size()), kVersion.data()));
      return exit_with(0);
    case '?':
      static_cast<void>(std::fputs("Try 'kvferry --help'.\n", stderr));
      return exit_with(2);
    default: {
      // A flag of twemproxy or Dynomite that means nothing here; the log says so.
      std::string& flags = line.server.idle_flags;
      flags += flags.empty() ? "-" : " -";
      flags += static_cast<char>(option);
      return std::nullopt;
    }
  }
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv) {
  CommandLine line;
  for (;;) {
    const int option = getopt_long(argc, argv, "hVtdDgyc:o:v:p:m:s:i:a:M:x:", kOptions.data(),
                                   nullptr);  // NOLINT(concurrency-mt-unsafe): no thread yet
    if (option == -1) {
      break;
    }
    if (auto other = take(line, option)) {
      return *other;
    }
  }
  if (optind < argc) {
    static_cast<void>(std::fprintf(stderr, "kvferry: unknown command '%s'\nTry 'kvferry --help'.\n",
                                   argv[optind]));
    return exit_with(2);
  }
  return line;
}

}  // namespace kvferry::app
