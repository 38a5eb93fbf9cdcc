#include "app/cli_config.h"

#include <fmt/format.h>
#include <string_view>

#include "config/document.h"
#include "config/loader.h"
#include "config/show.h"

namespace kvferry::app {
namespace {

constexpr int kExitUsage = 2;
constexpr std::string_view kUsage =
    "usage: kvferry config show -c FILE      every setting, defaults included\n"
    "       kvferry config convert -c FILE   the file in kvferry's own form\n"
    "       kvferry config keys              the reference of all keys, in Markdown\n";

int usage_error(std::string_view what) {
  fmt::print(stderr, "kvferry config: {}\n{}", what, kUsage);
  return kExitUsage;
}

config::Loaded load_or_complain(const std::vector<std::string>& paths, std::FILE* err) {
  config::Loaded loaded = config::load(paths);
  if (!loaded.model) {
    fmt::print(err, "{}", loaded.text());
  }
  return loaded;
}

}  // namespace

int run_config_show(const std::vector<std::string>& paths, std::FILE* out, std::FILE* err) {
  const config::Loaded loaded = load_or_complain(paths, err);
  if (!loaded.model) {
    return 1;
  }
  fmt::print(out, "{}", config::to_yaml(*loaded.model, config::YamlForm::Everything));
  return 0;
}

int run_config_convert(const std::vector<std::string>& paths, std::FILE* out, std::FILE* err) {
  const config::Loaded loaded = load_or_complain(paths, err);
  if (!loaded.model) {
    return 1;
  }
  for (const config::Problem& problem : loaded.problems) {
    fmt::print(out, "# {} {}\n", problem.code, config::headline(problem));
  }
  fmt::print(out, "{}", config::to_yaml(*loaded.model, config::YamlForm::Changes));
  return 0;
}

int run_config(const std::vector<std::string>& arguments) {
  const std::string_view what = arguments.empty() ? std::string_view() : arguments.front();
  if (what == "-h" || what == "--help") {
    fmt::print(stdout, "{}", kUsage);
    return 0;
  }
  if (what == "keys" && arguments.size() == 1) {
    fmt::print(stdout, "{}", config::configuration_document());
    return 0;
  }
  if (what != "show" && what != "convert") {
    return usage_error("expected show, convert or keys");
  }
  std::vector<std::string> paths;
  for (std::size_t index = 1; index < arguments.size(); ++index) {
    if (arguments[index] == "-c") {
      continue;
    }
    if (arguments[index].starts_with('-')) {
      return usage_error(fmt::format("unknown option '{}'", arguments[index]));
    }
    paths.push_back(arguments[index]);
  }
  if (paths.empty()) {
    return usage_error("no configuration given; add -c FILE");
  }
  return what == "show" ? run_config_show(paths, stdout, stderr)
                        : run_config_convert(paths, stdout, stderr);
}

}  // namespace kvferry::app
