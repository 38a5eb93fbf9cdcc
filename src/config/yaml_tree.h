// A YAML document as a tree of nodes that know where they stand.
//
// Source:    YAML 1.2 as libyaml reads it; less is accepted, see docs/configuration.md.
// Units:     lines and columns from 1, columns in characters.
// Lifetime:  nodes live as long as their Tree; aliases share the node of their anchor.
// Errors:    the first syntax error ends the reading.
// Threads:   plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/problem.h"
#include "config/source.h"

namespace kvferry::config {

inline constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;
inline constexpr std::uint32_t kDepthMax = 16;
/// Nodes of a document after all aliases are expanded. A file of 1 MiB without aliases stays below.
inline constexpr std::size_t kExpandedNodesMax = std::size_t{1} << 20;

struct Mark {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
};

class Node {
 public:
  enum class Kind : std::uint8_t { Scalar, Sequence, Mapping };
  struct Entry {
    const Node* key = nullptr;  // Always a scalar.
    const Node* value = nullptr;
  };

  Kind kind = Kind::Scalar;
  bool is_quoted = false;  // Quoted or block scalar: an empty one is a value.
  Mark start;
  Mark end;
  std::string text;                // Of a scalar.
  std::vector<const Node*> items;  // Of a sequence.
  std::vector<Entry> entries;      // Of a mapping, duplicates included.
  std::uint32_t depth = 0;         // Containers from here to the deepest leaf, itself included.
  std::size_t expanded_nodes = 1;  // Nodes below and including this one, aliases expanded.

  bool is_scalar() const noexcept { return kind == Kind::Scalar; }
  bool is_sequence() const noexcept { return kind == Kind::Sequence; }
  bool is_mapping() const noexcept { return kind == Kind::Mapping; }
  /// A key with nothing behind its colon.
  bool is_absent() const noexcept { return is_scalar() && !is_quoted && text.empty(); }
  /// "text", "a list" or "a mapping".
  std::string_view kind_text() const noexcept;
  /// Characters to mark on the first line.
  std::uint32_t width() const noexcept;
  /// The first entry of a mapping with this key; null when there is none.
  const Entry* find(std::string_view key) const noexcept;
};

class Tree {
 public:
  /// Null for a document without content.
  const Node* root() const noexcept { return root_; }
  /// Every node of the document once, in no special order.
  const std::deque<Node>& nodes() const noexcept { return nodes_; }

 private:
  friend class TreeBuilder;

  std::deque<Node> nodes_;  // A deque keeps addresses when it grows.
  const Node* root_ = nullptr;
};

struct TreeOutcome {
  std::optional<Tree> tree;
  std::optional<Problem> problem;  // Set when tree is not.
};

/// Reads the one document of `source`.
TreeOutcome parse_tree(const Source& source);

}  // namespace kvferry::config
