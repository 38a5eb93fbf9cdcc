// Reads mappings by their tables of keys and reports what does not fit.
//
// Threads: one reader, one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/key_table.h"
#include "config/model.h"
#include "config/problem.h"
#include "config/source.h"
#include "config/tls_reader.h"
#include "config/yaml_tree.h"

namespace kvferry::config {

/// State that outlives one file.
struct LoadState {
  ProblemList problems;
  /// Leaf keys of `kvferry:` ("log.file") and where they were given.
  std::map<std::string, Position, std::less<>> process_keys_seen;
  /// Pools that routes name, with what to say when there is none. Known when all files are read.
  struct PoolReference {
    std::string name;
    Problem problem;
  };
  std::vector<PoolReference> pool_references;
  /// Pools without listeners, with what to say when no route names them.
  std::vector<PoolReference> pools_without_listener;
  /// Codes of notices that are given once.
  std::set<std::string, std::less<>> codes_noted;
  /// Every `tls`, in the order of the files.
  std::vector<TlsUse> tls_uses;
};

/// What a mapping is called in messages and what it may hold.
struct MappingShape {
  std::string_view noun;                    // "a nutcracker pool", "'log'".
  std::string_view path;                    // "log." inside `kvferry: log:`; empty in pools.
  std::span<const ReservedKey> reserved{};  // Refused as not available yet.
  bool is_process = false;                  // Keys may not repeat over files either.
};

class Reader {
 public:
  Reader(const Source& source, LoadState& state) : source_(source), state_(state) {}

  /// Context of the messages that follow. `dialect_is_written` tells whether the pool has the key.
  void enter_pool(std::string name, Dialect dialect, bool dialect_is_written);
  void leave_pool();
  Dialect dialect() const noexcept { return dialect_; }
  const Source& source() const noexcept { return source_; }
  std::size_t error_count() const noexcept { return state_.problems.error_count(); }
  bool is_full() const noexcept { return state_.problems.is_full(); }

  Position position(const Node& node) const;

  /// Adds an error about `node`. `key` is for machines and may be empty.
  void fail(const Node& node, std::string_view code, std::string_view key, std::string message,
            std::string_view hint = {});
  void note(Severity severity, const Node& node, std::string_view code, std::string_view key,
            std::string message, std::string_view hint = {});
  /// As note(), the first time for this code only.
  void note_once(Severity severity, const Node& node, std::string_view code, std::string_view key,
                 std::string message);
  /// A route names the pool `node`.
  void refer_to_pool(const Node& node);
  /// The pool `name` has no listener; this is wrong unless a route names it.
  void expect_reference(const std::string& name, const Node& node);
  /// What a problem about `node` that is found later has to say, but for its message.
  Problem place_of(const Node& node, std::string_view key) const;
  void remember_tls(TlsUse use) { state_.tls_uses.push_back(std::move(use)); }
  /// For values whose type is right and whose content is not.
  void fail_value(const Value& value, std::string_view code, std::string message);

  /// Reads every entry of `node` into `target`. Reports unknown, repeated, empty, reserved keys.
  template <typename Target>
  void read_mapping(const Node& node, std::span<const Key<Target>> keys, const MappingShape& shape,
                    Target& target) {
    std::vector<const KeyInfo*> infos;
    infos.reserve(keys.size());
    for (const Key<Target>& key : keys) {
      infos.push_back(&key.info);
    }
    read_entries(node, infos, shape, [&](std::size_t index, const Value& value) {
      keys[index].set(target, value, *this);
    });
  }

  /// Checks `value_node` against `info`.
  std::optional<Value> read_value(const KeyInfo& info, const Node& key_node,
                                  const Node& value_node);

 private:
  Problem make_problem(Severity severity, const Node& node, std::string_view code,
                       std::string_view key, std::string message, std::string_view hint) const;

  using Setter = std::function<void(std::size_t index, const Value& value)>;

  void read_entries(const Node& node, std::span<const KeyInfo* const> infos,
                    const MappingShape& shape, const Setter& set);
  bool check_repeated(const Node& key, bool is_group, const MappingShape& shape,
                      std::map<std::string_view, std::uint32_t>& seen);
  void fail_unknown(const Node& key, std::span<const KeyInfo* const> infos,
                    const MappingShape& shape);
  bool fail_reserved(const Node& key, const MappingShape& shape);
  bool check_node_kind(const KeyInfo& info, const Node& key_node, const Node& value_node);
  bool convert(const KeyInfo& info, Value& value);
  bool convert_number(const KeyInfo& info, Value& value);
  bool convert_enum(const KeyInfo& info, Value& value);
  bool convert_secret(Value& value);

  const Source& source_;
  LoadState& state_;
  std::string pool_;
  Dialect dialect_ = Dialect::Nutcracker;
  bool dialect_is_written_ = false;
};

/// "a, b, c" of the choices.
std::string join(std::span<const std::string_view> words);

}  // namespace kvferry::config
