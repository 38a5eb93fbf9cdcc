#include "config/yaml_tree.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>
#include <yaml.h>

namespace kvferry::config {
namespace {

Mark to_mark(const yaml_mark_t& mark) {
  return {static_cast<std::uint32_t>(mark.line + 1), static_cast<std::uint32_t>(mark.column + 1)};
}

std::string_view to_view(const yaml_char_t* text) {
  return text == nullptr ? std::string_view() : reinterpret_cast<const char*>(text);
}

/// One event, released with the object.
class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { yaml_event_delete(&event_); }

  yaml_event_t* get() noexcept { return &event_; }
  const yaml_event_t* operator->() const noexcept { return &event_; }

 private:
  yaml_event_t event_{};
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) {
    is_ready_ = yaml_parser_initialize(&parser_) != 0;
    if (is_ready_) {
      yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
      yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                   text.size());
    }
  }
  Scanner(const Scanner&) = delete;
  Scanner& operator=(const Scanner&) = delete;
  ~Scanner() {
    if (is_ready_) {
      yaml_parser_delete(&parser_);
    }
  }

  bool next(Event& event) { return is_ready_ && yaml_parser_parse(&parser_, event.get()) != 0; }
  const yaml_parser_t& state() const noexcept { return parser_; }

 private:
  yaml_parser_t parser_{};
  bool is_ready_ = false;
};

}  // namespace

std::string_view Node::kind_text() const noexcept {
  switch (kind) {
    case Kind::Scalar:
      return "text";
    case Kind::Sequence:
      return "a list";
    case Kind::Mapping:
      break;
  }
  return "a mapping";
}

std::uint32_t Node::width() const noexcept {
  return end.line == start.line && end.column > start.column ? end.column - start.column : 1;
}

const Node::Entry* Node::find(std::string_view key) const noexcept {
  for (const Entry& entry : entries) {
    if (entry.key->text == key) {
      return &entry;
    }
  }
  return nullptr;
}

/// Turns libyaml's events into nodes. Each handler returns false after it has set problem_.
class TreeBuilder {
 public:
  explicit TreeBuilder(const Source& source) : source_(source), scanner_(source.text()) {}

  TreeOutcome build() {
    if (source_.text().size() > kFileBytesMax) {
      fail({1, 1}, fmt::format("the file has {} bytes; at most {} are read", source_.text().size(),
                               kFileBytesMax));
      return {std::nullopt, std::move(problem_)};
    }
    while (!is_done_) {
      Event event;
      if (!scanner_.next(event)) {
        fail_syntax();
      }
      if (problem_ || !on_event(event)) {
        return {std::nullopt, std::move(problem_)};
      }
    }
    return {std::move(tree_), std::nullopt};
  }

 private:
  struct Open {
    Node* node = nullptr;
    std::string anchor;
    const Node* key = nullptr;  // Key of a mapping that waits for its value.
  };

  bool on_event(const Event& event) {
    switch (event->type) {
      case YAML_DOCUMENT_START_EVENT:
        return on_document(event);
      case YAML_SCALAR_EVENT:
        return on_scalar(event);
      case YAML_ALIAS_EVENT:
        return on_alias(event);
      case YAML_SEQUENCE_START_EVENT:
        return on_open(event, Node::Kind::Sequence, to_view(event->data.sequence_start.tag),
                       to_view(event->data.sequence_start.anchor));
      case YAML_MAPPING_START_EVENT:
        return on_open(event, Node::Kind::Mapping, to_view(event->data.mapping_start.tag),
                       to_view(event->data.mapping_start.anchor));
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        return on_close(event);
      case YAML_STREAM_END_EVENT:
        is_done_ = true;
        return true;
      case YAML_NO_EVENT:
      case YAML_STREAM_START_EVENT:
      case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return true;
  }

  bool on_document(const Event& event) {
    if (std::exchange(has_document_, true)) {
      return fail(to_mark(event->start_mark), "a second document begins here; one file holds one",
                  3);
    }
    return true;
  }

  bool on_scalar(const Event& event) {
    const auto& scalar = event->data.scalar;
    if (!check_tag(event, to_view(scalar.tag))) {
      return false;
    }
    Node& node = add_node(event, Node::Kind::Scalar);
    node.text.assign(reinterpret_cast<const char*>(scalar.value), scalar.length);
    node.is_quoted = scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return remember(to_view(scalar.anchor), node) && place(node, node.start);
  }

  bool on_alias(const Event& event) {
    const std::string name(to_view(event->data.alias.anchor));
    const auto found = anchors_.find(name);
    const Mark mark = to_mark(event->start_mark);
    const auto width = static_cast<std::uint32_t>(name.size() + 1);
    if (found == anchors_.end()) {
      return fail(mark, fmt::format("alias '*{}' has no anchor that ends before it", name), width);
    }
    if (open_.size() + found->second->depth > kDepthMax) {
      return fail_depth(mark);
    }
    return place(*found->second, mark);
  }

  bool on_open(const Event& event, Node::Kind kind, std::string_view tag, std::string_view anchor) {
    if (!check_tag(event, tag)) {
      return false;
    }
    if (open_.size() >= kDepthMax) {
      return fail_depth(to_mark(event->start_mark));
    }
    Node& node = add_node(event, kind);
    node.depth = 1;
    open_.push_back({&node, std::string(anchor), nullptr});
    return true;
  }

  bool on_close(const Event& event) {
    const Open closed = std::move(open_.back());
    open_.pop_back();
    closed.node->end = to_mark(event->end_mark);
    return remember(closed.anchor, *closed.node) && place(*closed.node, closed.node->start);
  }

  /// Puts `node` where the innermost open container, or the document, expects it.
  bool place(const Node& node, Mark mark) {
    if (open_.empty()) {
      tree_.root_ = &node;
      return true;
    }
    Open& parent = open_.back();
    parent.node->depth = std::max(parent.node->depth, node.depth + 1);
    parent.node->expanded_nodes += node.expanded_nodes;
    if (parent.node->expanded_nodes > kExpandedNodesMax) {
      return fail(mark, fmt::format("aliases expand to more than {} values", kExpandedNodesMax));
    }
    if (parent.node->is_sequence()) {
      parent.node->items.push_back(&node);
      return true;
    }
    if (parent.key == nullptr) {
      parent.key = &node;
      return check_key(node, mark);
    }
    parent.node->entries.push_back({std::exchange(parent.key, nullptr), &node});
    return true;
  }

  bool check_key(const Node& key, Mark mark) {
    if (!key.is_scalar()) {
      return fail(mark, fmt::format("a key must be text, found {}", key.kind_text()));
    }
    if (key.text == "<<" && !key.is_quoted) {
      return fail(mark, "merge keys (<<) are not supported; write the keys out", 2);
    }
    const std::string_view line = source_.raw_line(mark.line);
    const std::string_view indent = line.substr(0, line.find_first_not_of(" \t"));
    if (indent.find('\t') != std::string_view::npos && indent.size() < mark.column) {
      return fail_tab(mark.line, indent);
    }
    return true;
  }

  bool check_tag(const Event& event, std::string_view tag) {
    return tag.empty() ||
           fail(to_mark(event->start_mark), "tags (!x) are not supported; leave the tag out");
  }

  bool remember(std::string_view anchor, const Node& node) {
    if (!anchor.empty()) {
      anchors_.insert_or_assign(std::string(anchor), &node);
    }
    return true;
  }

  Node& add_node(const Event& event, Node::Kind kind) {
    Node& node = tree_.nodes_.emplace_back();
    node.kind = kind;
    node.start = to_mark(event->start_mark);
    node.end = to_mark(event->end_mark);
    return node;
  }

  bool fail(Mark mark, std::string_view what, std::uint32_t width = 1) {
    Problem problem;
    problem.code = "E-yaml";
    problem.where = {source_.name(), mark.line, mark.column};
    problem.width = width;
    problem.message = "cannot read YAML: ";
    problem.message += what;
    problem.source_line = source_.line(mark.line);
    problem_ = std::move(problem);
    return false;
  }

  bool fail_depth(Mark mark) {
    return fail(mark, fmt::format("nested deeper than {} levels", kDepthMax));
  }

  bool fail_tab(std::uint32_t line, std::string_view indent) {
    const auto column = static_cast<std::uint32_t>(indent.find('\t') + 1);
    return fail({line, column}, "tab used for indentation; use blanks");
  }

  /// Words libyaml's own error, which has several shapes.
  void fail_syntax() {
    const yaml_parser_t& state = scanner_.state();
    if (state.error == YAML_READER_ERROR) {
      const std::uint32_t line = source_.line_of(state.problem_offset);
      fail({line, 1}, fmt::format("{} (byte {} of the file)", to_text(state.problem, "bad text"),
                                  state.problem_offset));
      return;
    }
    const Mark mark = to_mark(state.problem_mark);
    const std::string_view line = source_.raw_line(mark.line);
    const std::string_view indent = line.substr(0, line.find_first_not_of(" \t"));
    if (indent.find('\t') != std::string_view::npos) {
      fail_tab(mark.line, indent);
      return;
    }
    std::string what = to_text(state.problem, "not enough memory");
    if (state.context != nullptr) {
      what += fmt::format(", {}", state.context);
      const Mark context = to_mark(state.context_mark);
      if (context.line != mark.line) {
        what += fmt::format(" that begins at line {}", context.line);
      }
    }
    fail(mark, what);
  }

  static std::string to_text(const char* text, std::string_view otherwise) {
    return std::string(text == nullptr ? otherwise : std::string_view(text));
  }

  const Source& source_;
  Scanner scanner_;
  Tree tree_;
  std::optional<Problem> problem_;
  std::vector<Open> open_;
  std::map<std::string, const Node*, std::less<>> anchors_;
  bool has_document_ = false;
  bool is_done_ = false;
};

TreeOutcome parse_tree(const Source& source) {
  return TreeBuilder(source).build();
}

}  // namespace kvferry::config
