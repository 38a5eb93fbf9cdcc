#include "app/cli_check.h"

#include <fmt/format.h>
#include <string_view>

#include "config/loader.h"
#include "config/problem.h"

namespace kvferry::app {
namespace {

constexpr int kExitUsage = 2;
constexpr std::string_view kUsage =
    "usage: kvferry check [--json] FILE|DIRECTORY...\n"
    "Reads the files as one configuration and reports what is wrong with it.\n";

}  // namespace

int run_check(const CheckOptions& options, std::FILE* out, std::FILE* err) {
  const config::Loaded loaded = config::load(options.paths);
  if (options.json) {
    fmt::print(out, "{}", config::to_json(loaded.problems));
    return loaded.model ? 0 : 1;
  }
  fmt::print(err, "{}", loaded.text());
  const std::string_view verdict = loaded.model ? "ok" : "invalid";
  for (const std::string& path : options.paths) {
    fmt::print(err, "{}: configuration file '{}' syntax is {}\n", options.program, path, verdict);
  }
  return loaded.model ? 0 : 1;
}

int run_check(const std::vector<std::string>& arguments) {
  CheckOptions options;
  bool words_are_paths = false;
  for (const std::string& word : arguments) {
    if (!words_are_paths && word == "--") {
      words_are_paths = true;
    } else if (!words_are_paths && word == "--json") {
      options.json = true;
    } else if (!words_are_paths && word == "-c") {
      continue;  // The file follows; `check -c FILE` is what hands used to `-t -c FILE` type.
    } else if (!words_are_paths && (word == "-h" || word == "--help")) {
      fmt::print(stdout, "{}", kUsage);
      return 0;
    } else if (!words_are_paths && word.starts_with('-')) {
      fmt::print(stderr, "kvferry check: unknown option '{}'\n{}", word, kUsage);
      return kExitUsage;
    } else {
      options.paths.push_back(word);
    }
  }
  if (options.paths.empty()) {
    fmt::print(stderr, "kvferry check: no file given\n{}", kUsage);
    return kExitUsage;
  }
  return run_check(options, stdout, stderr);
}

}  // namespace kvferry::app
