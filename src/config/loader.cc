#include "config/loader.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <set>
#include <system_error>

#include "base/result.h"
#include "config/key_table.h"
#include "config/pool_reader.h"
#include "config/route_reader.h"
#include "config/rules.h"
#include "config/secret.h"
#include "config/source.h"
#include "config/suggest.h"
#include "config/text_file.h"
#include "config/yaml_tree.h"

namespace kvferry::config {
namespace {

constexpr std::string_view kProcessKey = "kvferry";

/// Reads the files of one configuration one after the other into one model.
class Loading {
 public:
  void read(const NamedText& file) {
    if (state_.problems.is_full()) {
      return;
    }
    Source source(file.name, file.text);
    TreeOutcome outcome = parse_tree(source);
    if (!outcome.tree) {
      state_.problems.add(std::move(outcome.problem).value_or(Problem{}));
      return;
    }
    hide_long_secrets(*outcome.tree, source);
    Reader reader(source, state_);
    read_root(*outcome.tree, source, reader);
  }

  void fail_file(const std::string& path, std::string message) {
    Problem problem;
    problem.code = "E-file";
    problem.where.file = path;
    problem.message = std::move(message);
    state_.problems.add(std::move(problem));
  }

  /// W40. Looks at the files that hold secrets, so load_text() leaves it out.
  void warn_of_exposed_secrets() {
    if (model_.process.admin) {
      warn_if_exposed(model_.process.admin->token, "", "token",
                      state_.process_keys_seen["admin.token"]);
    }
    for (const PoolConfig& pool : model_.pools) {
      warn_if_exposed(pool.redis_auth, pool.name, "redis_auth", pool.where);
    }
  }

  /// Looks at the files of certificates and keys, so load_text() leaves it out.
  void check_tls() {
    for (const TlsUse& use : state_.tls_uses) {
      check_tls_files(use, state_.problems);
    }
  }

  Loaded finish() {
    check_references();
    Loaded loaded;
    if (!state_.problems.has_errors()) {
      loaded.model = std::move(model_);
    }
    loaded.problems = state_.problems.take();
    return loaded;
  }

 private:
  void warn_if_exposed(const Secret& secret, const std::string& pool, std::string_view key,
                       const Position& where) {
    if (!is_exposed(secret)) {
      return;
    }
    Problem problem;
    problem.severity = Severity::Warning;
    problem.code = "W40";
    problem.where = where;
    problem.pool = pool;
    problem.key = std::string(key);
    problem.message = fmt::format("others may read the secret in '{}'", secret.text);
    problem.hint = fmt::format("chmod 600 {}", secret.text);
    state_.problems.add(std::move(problem));
  }

  /// The value of a secret may continue on lines that do not name its key.
  static void hide_long_secrets(const Tree& tree, Source& source) {
    for (const Node& node : tree.nodes()) {
      for (const Node::Entry& entry : node.entries) {
        // A pool may be called "users"; secrets are never mappings.
        if (is_secret_key(entry.key->text) && !entry.value->is_mapping() &&
            entry.value->end.line > entry.key->start.line) {
          source.hide_lines(entry.key->start.line + 1, entry.value->end.line);
        }
      }
    }
  }

  void read_root(const Tree& tree, const Source& source, Reader& reader) {
    reader.leave_pool();
    const Node* root = tree.root();
    if (root == nullptr || root->is_absent()) {
      fail_empty(source);
      return;
    }
    if (!root->is_mapping()) {
      reader.fail(*root, "E-root", "",
                  fmt::format("the file must be a mapping of pools, found {}",
                              root->is_sequence() ? "a sequence" : "text"),
                  "begin with the name of a pool and a colon");
      return;
    }
    for (const Node::Entry& entry : root->entries) {
      if (reader.is_full()) {
        return;
      }
      if (entry.key->text == kProcessKey) {
        reader.leave_pool();
        read_process(entry, reader);
      } else {
        read_one_pool(entry, reader);
      }
    }
  }

  void fail_empty(const Source& source) {
    Problem problem;
    problem.code = "E-root";
    problem.where = {source.name(), 1, 1};
    problem.message = "no pools in this file";
    problem.source_line = source.line(1);
    state_.problems.add(std::move(problem));
  }

  void read_one_pool(const Node::Entry& entry, Reader& reader) {
    std::optional<PoolDraft> pool = read_pool(*entry.key, *entry.value, reader);
    if (pool) {
      finish_pool(*pool, reader, taken_);
      model_.pools.push_back(std::move(pool->config));
    }
  }

  void read_process(const Node::Entry& entry, Reader& reader) {
    if (!entry.value->is_mapping()) {
      const bool is_absent = entry.value->is_absent();
      reader.fail(
          is_absent ? *entry.key : *entry.value, is_absent ? "E-empty" : "E-type", kProcessKey,
          is_absent
              ? "'kvferry' has no value"
              : fmt::format("'kvferry' must be a mapping, found {}", entry.value->kind_text()));
      return;
    }
    reader.read_mapping(
        *entry.value, process_keys(),
        {.noun = "'kvferry'", .path = {}, .reserved = reserved_process_keys(), .is_process = true},
        model_.process);
    check_admin(entry, reader);
    if (const Node::Entry* routes = entry.value->find("routes");
        routes != nullptr && routes->value->is_sequence()) {
      read_routes(*routes->value, reader, taken_, model_.process.routes);
    }
  }

  void check_admin(const Node::Entry& entry, Reader& reader) {
    const Node::Entry* admin = entry.value->find("admin");
    if (admin == nullptr || !admin->value->is_mapping()) {
      return;
    }
    const bool is_known = state_.process_keys_seen.contains("admin.listen");
    if (!is_known) {
      reader.fail(*admin->key, "E-missing", "listen", "'listen' is missing in 'admin'",
                  "add an address such as listen: 127.0.0.1:9115");
      return;
    }
    const Node::Entry* listen = admin->value->find("listen");
    if (model_.process.admin && listen != nullptr) {
      check_admin_address(*listen->value, model_.process.admin->endpoint, reader);
    }
  }

  void check_admin_address(const Node& node, const Endpoint& endpoint, Reader& reader) {
    if (endpoint == Endpoint{} || (!endpoint.is_unix() && endpoint.port == 0)) {
      return;
    }
    const auto [other, is_new] = taken_.addresses.emplace(
        endpoint.to_string(), TakenNames::Address{"pool 'kvferry: admin'", reader.position(node)});
    if (!is_new) {
      reader.fail(node, "E-dup", "listen",
                  fmt::format("address {} is already used by {} ({})", endpoint.to_string(),
                              other->second.owner, other->second.where.to_string()));
    }
  }

  /// Routes and pools may stand in any order and in several files, so this comes last.
  void check_references() {
    std::map<std::string_view, const PoolConfig*> pools;
    for (const PoolConfig& pool : model_.pools) {
      pools.emplace(pool.name, &pool);
    }
    for (const RouteConfig& entry : model_.process.routes) {
      if (pools.contains(entry.name)) {
        Problem problem;
        problem.code = "E-dup";
        problem.where = entry.where;
        problem.key = "name";
        problem.message =
            fmt::format("an entry of 'routes' and a pool are both called '{}'", entry.name);
        problem.hint = "metrics would not tell them apart; give the entry a name of its own";
        state_.problems.add(std::move(problem));
      }
    }
    std::set<std::string_view> referenced;
    for (LoadState::PoolReference& reference : state_.pool_references) {
      referenced.insert(reference.name);
      const auto pool = pools.find(reference.name);
      if (pool == pools.end()) {
        fail_reference(reference, pools);
      } else if (pool->second->is_redis()) {
        reference.problem.code = "E-unsupported";
        reference.problem.message =
            fmt::format("pool '{}' speaks redis; routes are for memcached pools", reference.name);
        state_.problems.add(std::move(reference.problem));
      }
    }
    for (LoadState::PoolReference& lonely : state_.pools_without_listener) {
      if (!referenced.contains(lonely.name)) {
        state_.problems.add(std::move(lonely.problem));
      }
    }
  }

  void fail_reference(LoadState::PoolReference& reference,
                      const std::map<std::string_view, const PoolConfig*>& pools) {
    if (taken_.pools.contains(reference.name)) {
      return;  // It is there and could not be read, which has been told.
    }
    std::vector<std::string_view> names;
    names.reserve(pools.size());
    for (const auto& [name, pool] : pools) {
      names.push_back(name);
    }
    reference.problem.hint = hint_for(reference.name, names);
    state_.problems.add(std::move(reference.problem));
  }

  static std::string hint_for(std::string_view name, const std::vector<std::string_view>& pools) {
    if (name == "null") {
      return "write {null: {}} for the route of this name";
    }
    const std::string_view near = suggest(name, pools);
    return near.empty() ? "a route is the name of a pool, or a mapping with the kind of a route"
                        : fmt::format("did you mean '{}'?", near);
  }

  LoadState state_;
  TakenNames taken_;
  Model model_;
};

/// The *.yml files of a directory, sorted; the path itself for anything else.
std::vector<std::string> expand(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return {path};
  }
  std::vector<std::string> files;
  std::filesystem::directory_iterator entry(path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".yml") {
      files.push_back(entry->path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string Loaded::text() const {
  std::string out;
  for (const Problem& problem : problems) {
    out += to_text(problem);
  }
  return out;
}

Loaded load_texts(std::vector<NamedText> texts) {
  Loading loading;
  std::vector<std::string> files;
  for (NamedText& file : texts) {
    loading.read(file);
    files.push_back(std::move(file.name));
  }
  Loaded loaded = loading.finish();
  loaded.files = std::move(files);
  return loaded;
}

Loaded load_text(std::string name, std::string text) {
  return load_texts({{std::move(name), std::move(text)}});
}

Loaded load(const std::vector<std::string>& paths) {
  Loading loading;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    const std::vector<std::string> expanded = expand(path);
    if (expanded.empty()) {
      loading.fail_file(path, fmt::format("no file in directory '{}' ends with .yml", path));
    }
    for (const std::string& file : expanded) {
      // One byte more than is allowed, so that the reader can tell and refuse it.
      base::Result<std::string> text = read_text_file(file, kFileBytesMax + 1);
      files.push_back(file);
      if (text) {
        loading.read({file, std::move(*text)});
      } else {
        loading.fail_file(file, text.error().text());
      }
    }
  }
  loading.warn_of_exposed_secrets();
  loading.check_tls();
  Loaded loaded = loading.finish();
  loaded.files = std::move(files);
  return loaded;
}

}  // namespace kvferry::config
