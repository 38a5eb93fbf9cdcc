#include "app/cli_explain.h"

#include <cerrno>
#include <cstdint>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <string_view>

#include "base/json_text.h"
#include "base/result.h"
#include "config/loader.h"
#include "config/model.h"
#include "pool/key_hash.h"
#include "pool/placement.h"

namespace kvferry::app {
namespace {

constexpr int kExitUsage = 2;
constexpr std::size_t kReadBytes = std::size_t{64} << 10;
constexpr std::string_view kUsage =
    "usage: kvferry explain -c FILE [--pool NAME] [--hex] [--tsv] KEY... | -\n"
    "       kvferry explain -c FILE [--pool NAME] [--hex] --keys FILE\n"
    "Shows for each key the bytes that are hashed, the hash, the point on the ring and the "
    "backend.\n"
    "  -           read keys from standard input, one a line\n"
    "  --hex       keys are written in hexadecimal digits\n"
    "  --tsv       one line a key: key in hex, hashed bytes in hex, hash in decimal, index of the\n"
    "              server in the file from 0, its label, separated by tabs; - where there is none\n"
    "  --keys FILE count the keys of a file by backend\n";

/// A pool and the placement its traffic would have.
struct Explainer {
  const config::PoolConfig* pool = nullptr;
  std::shared_ptr<const pool::Placement> placement;  // Null for the embedded store.
};

std::string to_hex(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return out;
}

int digit_value(char digit) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const char lower = digit >= 'A' && digit <= 'F' ? static_cast<char>(digit - 'A' + 'a') : digit;
  const std::size_t value = kDigits.find(lower);
  return value == std::string_view::npos ? -1 : static_cast<int>(value);
}

std::optional<std::string> from_hex(std::string_view digits) {
  if (digits.size() % 2 != 0) {
    return std::nullopt;
  }
  std::string out;
  for (std::size_t at = 0; at < digits.size(); at += 2) {
    const int high = digit_value(digits[at]);
    const int low = digit_value(digits[at + 1]);
    if (high < 0 || low < 0) {
      return std::nullopt;
    }
    out.push_back(static_cast<char>(high * 16 + low));
  }
  return out;
}

/// Shows `bytes` in quotes, escaped where a terminal would not show them.
std::string shown(std::string_view bytes) {
  std::string out;
  base::append_json_string(out, bytes);
  return out;
}

std::string backend_text(const config::PoolConfig& pool, std::uint32_t index) {
  if (index == pool::kNoServer) {
    return "a new choice for every request";
  }
  const pool::ServerOptions& server = pool.options.servers[index];
  const std::string address =
      server.is_unix ? server.host : fmt::format("{}:{}", server.host, server.port);
  return fmt::format("{} ({}, weight {}; entry {} of the list, line {})", server.label, address,
                     server.weight, index, server.line);
}

/// Writes what `options` ask for; keys come one by one, so a long list is never held.
class Printer {
 public:
  Printer(const ExplainOptions& options, std::vector<Explainer> explainers, std::FILE* out,
          std::FILE* err)
      : options_(options), explainers_(std::move(explainers)), out_(out), err_(err) {
    for (const Explainer& explainer : explainers_) {
      counts_.emplace_back(explainer.pool->options.servers.size());
    }
  }

  /// False after a key that cannot be read.
  bool on_key(std::string_view text) {
    std::string decoded;
    if (options_.hex) {
      std::optional<std::string> bytes = from_hex(text);
      if (!bytes) {
        fmt::print(err_, "kvferry explain: '{}' is not a key in hexadecimal digits\n", text);
        return false;
      }
      decoded = std::move(*bytes);
    }
    const std::string_view key = options_.hex ? std::string_view(decoded) : text;
    ++key_count_;
    if (!options_.spread_file.empty()) {
      count(key);
    } else if (options_.tsv) {
      print_row(explainers_.front(), key);
    } else {
      fmt::print(out_, "key {}\n", shown(key));
      for (const Explainer& explainer : explainers_) {
        print_for_people(explainer, key);
      }
    }
    return true;
  }

  void print_spread() {
    for (std::size_t which = 0; which < explainers_.size(); ++which) {
      const Explainer& explainer = explainers_[which];
      fmt::print(out_, "pool {}: {} keys\n", explainer.pool->name, key_count_);
      if (explainer.placement == nullptr || !explainer.placement->is_stable()) {
        fmt::print(out_, "  {}\n",
                   explainer.placement == nullptr ? "all of them in the embedded store"
                                                  : "each request chooses its backend anew");
        continue;
      }
      const std::vector<pool::Placement::Share> shares = explainer.placement->shares();
      fmt::print(out_, "  {:>10} {:>8} {:>8} {:>8}  backend\n", "keys", "share", "ring", "weight");
      for (std::size_t index = 0; index < shares.size(); ++index) {
        const double part = key_count_ == 0 ? 0
                                            : static_cast<double>(counts_[which][index]) /
                                                  static_cast<double>(key_count_);
        fmt::print(out_, "  {:>10} {:>6.2f} % {:>6.2f} % {:>6.2f} %  {}\n", counts_[which][index],
                   part * 100, shares[index].actual * 100, shares[index].expected * 100,
                   explainer.pool->options.servers[index].label);
      }
    }
  }

 private:
  void count(std::string_view key) {
    for (std::size_t which = 0; which < explainers_.size(); ++which) {
      const auto& placement = explainers_[which].placement;
      if (placement == nullptr || !placement->is_stable()) {
        continue;
      }
      const std::uint32_t index = placement->select(key, random_state_);
      if (index != pool::kNoServer) {
        ++counts_[which][index];
      }
    }
  }

  void print_row(const Explainer& explainer, std::string_view key) {
    if (explainer.placement == nullptr) {
      fmt::print(out_, "{}\t-\t-\t-\t-\n", to_hex(key));
      return;
    }
    const pool::Placement::Explained found = explainer.placement->explain(key);
    const bool is_found = found.index != pool::kNoServer;
    fmt::print(out_, "{}\t{}\t{}\t{}\t{}\n", to_hex(key), to_hex(found.hashed_part), found.hash,
               is_found ? fmt::format("{}", found.index) : "-",
               is_found ? explainer.pool->options.servers[found.index].label : "-");
  }

  void print_for_people(const Explainer& explainer, std::string_view key) {
    const config::PoolConfig& pool = *explainer.pool;
    fmt::print(out_, "  pool     {}\n", pool.name);
    if (explainer.placement == nullptr) {
      fmt::print(out_, "  backend  the embedded store\n");
      return;
    }
    const pool::Placement::Explained found = explainer.placement->explain(key);
    const bool is_whole = found.hashed_part.size() == key.size();
    fmt::print(out_, "  hashed   {}{}\n", shown(found.hashed_part),
               is_whole
                   ? ", the whole key"
                   : fmt::format(", the part inside {}", shown(pool.options.placement.hash_tag)));
    fmt::print(out_, "  hash     {} ({})\n", found.hash,
               pool::name_of(pool.options.placement.hash));
    if (found.ring_point) {
      fmt::print(out_, "  point    {}\n", *found.ring_point);
    }
    fmt::print(out_, "  backend  {}\n", backend_text(pool, found.index));
    fmt::print(out_, "  why      {}\n", found.reason);
  }

  const ExplainOptions& options_;
  std::vector<Explainer> explainers_;
  std::vector<std::vector<std::uint64_t>> counts_;  // By explainer, then by server.
  std::uint64_t key_count_ = 0;
  std::uint64_t random_state_ = 1;
  std::FILE* out_;
  std::FILE* err_;
};

/// Hands every complete line of `rest` to `printer` and keeps what is left; false after a bad key.
bool take_lines(std::string& rest, Printer& printer) {
  std::size_t start = 0;
  for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', start)) {
    if (!printer.on_key(std::string_view(rest).substr(start, end - start))) {
      return false;
    }
    start = end + 1;
  }
  rest.erase(0, start);
  return true;
}

/// Hands every line of `in` to `printer`; false after a bad key or when reading failed.
bool read_keys(std::FILE* in, Printer& printer) {
  std::string rest;
  std::string block(kReadBytes, '\0');
  bool is_open = true;
  while (is_open) {
    const std::size_t size = std::fread(block.data(), 1, block.size(), in);
    is_open = size == block.size();
    rest.append(block, 0, size);
    if (!take_lines(rest, printer)) {
      return false;
    }
  }
  return (rest.empty() || printer.on_key(rest)) && std::ferror(in) == 0;
}

std::string pool_names(const config::Model& model) {
  std::string out;
  for (const config::PoolConfig& pool : model.pools) {
    out += out.empty() ? "" : ", ";
    out += pool.name;
  }
  return out;
}

/// The pools that `options` name; empty after a message.
std::vector<Explainer> choose_pools(const ExplainOptions& options, const config::Model& model,
                                    std::FILE* err) {
  std::vector<Explainer> chosen;
  for (const config::PoolConfig& pool : model.pools) {
    if (options.pool.empty() || pool.name == options.pool) {
      chosen.push_back({&pool, nullptr});
    }
  }
  if (chosen.empty()) {
    fmt::print(err, "kvferry explain: pool '{}' is not defined; pools are: {}\n", options.pool,
               pool_names(model));
    return {};
  }
  if (options.tsv && chosen.size() > 1) {
    fmt::print(err, "kvferry explain: --tsv shows one pool; choose it with --pool: {}\n",
               pool_names(model));
    return {};
  }
  for (Explainer& explainer : chosen) {
    if (explainer.pool->protocol == config::PoolProtocol::Store) {
      continue;
    }
    const pool::PoolOptions& pool = explainer.pool->options;
    auto placement = pool::Placement::make(pool.placement, pool.servers,
                                           std::vector<bool>(pool.servers.size(), true));
    if (!placement) {
      fmt::print(err, "kvferry explain: pool '{}': {}\n", pool.name, placement.error().text());
      return {};
    }
    explainer.placement = *placement;
  }
  return chosen;
}

/// Prints what is wrong with a configuration; notices belong to `check`.
void print_errors(const config::Loaded& loaded, std::FILE* err) {
  for (const config::Problem& problem : loaded.problems) {
    if (problem.severity == config::Severity::Error) {
      fmt::print(err, "{}", config::to_text(problem));
    }
  }
}

bool explain_spread_file(const std::string& path, Printer& printer, std::FILE* err) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             &std::fclose);
  if (file == nullptr) {
    const base::Error error =
        base::Error::from_errno(fmt::format("kvferry explain: cannot read '{}'", path), errno);
    fmt::print(err, "{}\n", error.text());
    return false;
  }
  if (!read_keys(file.get(), printer)) {
    return false;
  }
  printer.print_spread();
  return true;
}

/// Options that take the next word.
std::string* value_of(std::string_view option, ExplainOptions& options) {
  if (option == "--pool") {
    return &options.pool;
  }
  return option == "--keys" ? &options.spread_file : nullptr;
}

/// One word of the command line that is not an option's value. False when it is not understood.
bool take_word(const std::string& word, ExplainOptions& options) {
  if (word == "--tsv") {
    options.tsv = true;
  } else if (word == "--hex") {
    options.hex = true;
  } else if (word == "-") {
    options.keys_from_input = true;
  } else if (word.starts_with("--")) {
    return false;
  } else {
    options.keys.push_back(word);
  }
  return true;
}

int usage_error(std::string_view what) {
  fmt::print(stderr, "kvferry explain: {}\n{}", what, kUsage);
  return kExitUsage;
}

}  // namespace

int run_explain(const ExplainOptions& options, std::FILE* in, std::FILE* out, std::FILE* err) {
  const config::Loaded loaded = config::load(options.paths);
  if (!loaded.model) {
    print_errors(loaded, err);
    return 1;
  }
  std::vector<Explainer> chosen = choose_pools(options, *loaded.model, err);
  if (chosen.empty()) {
    return 1;
  }
  Printer printer(options, std::move(chosen), out, err);
  if (!options.spread_file.empty()) {
    return explain_spread_file(options.spread_file, printer, err) ? 0 : 1;
  }
  for (const std::string& key : options.keys) {
    if (!printer.on_key(key)) {
      return 1;
    }
  }
  return options.keys_from_input && !read_keys(in, printer) ? 1 : 0;
}

int run_explain(const std::vector<std::string>& arguments) {
  ExplainOptions options;
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    const std::string& word = arguments[index];
    if (word == "-h" || word == "--help") {
      fmt::print(stdout, "{}", kUsage);
      return 0;
    }
    if (word == "--") {
      options.keys.insert(options.keys.end(),
                          arguments.begin() + static_cast<std::ptrdiff_t>(index) + 1,
                          arguments.end());
      break;
    }
    std::string* value = value_of(word, options);
    if (value == nullptr && word != "-c") {
      if (!take_word(word, options)) {
        return usage_error(fmt::format("unknown option '{}'", word));
      }
      continue;
    }
    if (++index == arguments.size()) {
      return usage_error(fmt::format("'{}' needs a value", word));
    }
    if (value == nullptr) {
      options.paths.push_back(arguments[index]);
    } else {
      *value = arguments[index];
    }
  }
  if (options.paths.empty()) {
    return usage_error("no configuration given; add -c FILE");
  }
  if (options.keys.empty() && !options.keys_from_input && options.spread_file.empty()) {
    return usage_error("no keys given");
  }
  return run_explain(options, stdin, stdout, stderr);
}

}  // namespace kvferry::app
